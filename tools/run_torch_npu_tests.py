"""Run torch_npu's own public tests, from a checkout of its sources, on the simulated NPU.

    python tools/run_torch_npu_tests.py CHECKOUT [--only test/nn/test_pooling.py] [-k pooling] [--json FILE]

The checkout must be of the installed version. What fails is listed in torch_npu_tests_known.csv.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from other_tests import Project, main

# What torch_npu's maintainers leave out on real devices.
DISABLED = "test/unsupported_test_cases/.pytorch-disabled-tests.json"


def variables(checkout: Path, file: str, scratch: Path, devices: int) -> Mapping[str, str]:
    """What torch_npu's own runner sets."""
    folders = (checkout / Path(file).parent, checkout / "test")  # a file finds its neighbours, as when it is a program
    common = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "DISABLED_TESTS_FILE": str(checkout / DISABLED)}
    return common | (_distributed(scratch, devices) if file.startswith("test/distributed/") else {})


def _distributed(scratch: Path, devices: int) -> dict[str, str]:
    for name in ("barrier", "test_dir"):
        (scratch / name).mkdir()
    world = 1 << (devices.bit_length() - 1)
    return {"TEMP_DIR": str(scratch), "BACKEND": "hccl", "INIT_METHOD": "env://", "WORLD_SIZE": str(world)}


PROJECT = Project(
    sources="torch_npu's sources (Ascend/pytorch)",
    folders=("test/nn", "test/npu", "test/optim", "test/custom_ops", "test/contrib", "test/distributed"),
    known=Path(__file__).with_name("torch_npu_tests_known.csv"),
    folder="test",
    outside=("physical device", "graph mode", "profiler data"),  # what no simulation can have
    # Its tests read what is logged themselves, and spawn thousands of processes.
    options=("-p", "no:logging", "-p", "warm_children"),
    variables=variables,
)

if __name__ == "__main__":
    sys.exit(main(PROJECT))
