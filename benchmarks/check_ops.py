"""How many doubled gradients `npuport precision check-ops` catches, and how many healthy calls it accuses.

PyTorch's own samples (torch.testing's operator database) of every differentiable operator are recorded forward and
backward on the CPU; each call is checked as it is, and each floating result of the backward pass again when doubled.

    python benchmarks/check_ops.py [--samples 2]
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from pathlib import Path

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "precision"))

import torch
from operator_samples import differentiable_operators, doubled, recorded_samples

from npuport.precision.checking.calls import check_call

CASES = (
    ("float32", 1.0),
    ("float32", 1e-10),
    ("bfloat16", 1.0),
    ("bfloat16", 1e-10),
    ("float16", 1.0),
    ("float16", 1e-3),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2, help="samples of each operator")
    samples = parser.parse_args().samples
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, {samples} samples of each operator")
    for name, scale in CASES:
        dtype, seen = getattr(torch, name), Counter[str]()
        for operator in differentiable_operators(dtype):
            for step in recorded_samples(operator, dtype, scale, samples):
                for call in step.calls:
                    status = check_call(call, step).status
                    seen[status] += 1
                    if call.phase == "backward" and status == "pass":
                        for _, one in doubled(call, step):
                            seen["doubled"] += 1
                            seen["caught"] += one.status == "fail"
        judged = seen["pass"] + seen["fail"]
        print(
            f"| {name}, {scale:g} | {seen['fail']} of {judged:,} | {seen['caught']:,} of {seen['doubled']:,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
