"""What operators should give that have no kernel on the CPU: their documented formulas in plain torch.

They are written from the documents alone, to check what a device made; the simulated NPU has its own.
"""
