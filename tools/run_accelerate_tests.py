"""Run accelerate's own tests, from a checkout of its sources, on the simulated NPU.

    python tools/run_accelerate_tests.py CHECKOUT [--only tests/test_utils.py] [-k gather] [--json FILE]

accelerate is imported from the checkout. Nothing is loaded from the network, so what wants a model or a data set of the
Hub fails; this and everything else that fails is listed in accelerate_tests_known.csv.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from other_tests import Project, main


def variables(checkout: Path, _file: str, scratch: Path, _devices: int) -> Mapping[str, str]:
    """The checkout's accelerate, and a Hub that is empty and out of reach."""
    sources = os.pathsep.join(str(checkout / name) for name in ("src", "."))
    return {"PYTHONPATH": sources, "HF_HOME": str(scratch), "HF_HUB_OFFLINE": "1"}


PROJECT = Project(
    sources="accelerate's sources (huggingface/accelerate)",
    folders=("tests",),
    known=Path(__file__).with_name("accelerate_tests_known.csv"),
    folder=".",
    outside=("network",),
    options=(),
    variables=variables,
)

if __name__ == "__main__":
    sys.exit(main(PROJECT))
