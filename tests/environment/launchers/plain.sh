python train.py --steps 2
