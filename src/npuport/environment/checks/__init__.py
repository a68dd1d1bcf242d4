"""The checks: pure functions from an `Environment` to what is wrong with it, a module for each part of the machine."""
