#!/bin/bash
deepspeed --hostfile hosts.txt --num_gpus 8 train.py --deepspeed ds.json
