"""``import npuport.auto`` as the first import of a script: its CUDA code runs on the NPU, and no file changes.

The script and the modules of its project are converted in memory as they are imported. On a machine without torch_npu,
and on one with CUDA, nothing happens. ``NPUPORT_DEVICE=npu`` or ``cuda`` or ``cpu`` decides instead.

``python -m npuport.auto script.py …`` does the same without the import.
"""

from __future__ import annotations

from npuport.runtime import entry

if __name__ == "__main__":
    entry.run_command_line()
else:
    entry.take_over()
