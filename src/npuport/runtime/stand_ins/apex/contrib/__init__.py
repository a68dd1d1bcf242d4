"""The parts of ``apex.contrib`` that have an equivalent on an NPU."""
