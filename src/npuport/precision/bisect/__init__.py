"""Which operators must compute in higher precision for a difference to go: found by running a training repeatedly."""
