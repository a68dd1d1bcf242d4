"""Target "agnostic": the same code runs on CUDA, on an NPU and on the CPU, written in PyTorch's own words.

Each function answers for one construct with the edits that make it so, or None where no edit can.
"""
