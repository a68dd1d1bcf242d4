"""Import-time migration: CUDA code is converted in memory, by the function that also converts files."""
