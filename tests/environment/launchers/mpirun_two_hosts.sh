#!/bin/bash
cd "$(dirname "$0")" && mpirun -np 16 -H alpha:8,beta:8 -mca pml ob1 -x NCCL_IB_DISABLE=1 -x PATH python -u train.py --steps 2
