"""Compare the OpInfo database, or a part of it, and print what was found as one JSON object (see ``report.py``).

python tests/sim/opinfo [--every N] [--part I/N] [--samples N] [--dtypes float32,float16,…] [--only NAME,…]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import compare
import torch
from compare import Outcome
from torch.testing._internal.common_methods_invocations import op_db

# Not fixed by their inputs: memory that nobody wrote.
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
CPU_SECONDS = 20  # of one operator in one dtype


@dataclass
class Case:
    """One operator in one dtype: how many variants of samples had which outcome, and each kind of what went wrong."""

    operator: str
    dtype: str
    falls_back: list[str]
    outcomes: Counter[str] = field(default_factory=Counter)
    details: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # (outcome, variant, detail)
    cut: bool = False  # by CPU_SECONDS

    def as_json(self) -> dict[str, Any]:
        details = [[*key, count] for key, count in self.details.items()]
        return {**asdict(self), "outcomes": dict(self.outcomes), "details": details}


def run_case(operator: Any, dtype: torch.dtype, most: int) -> Case:
    case = Case(operator.formatted_name, str(dtype).removeprefix("torch."), [])
    begin = time.process_time()
    for number, sample in enumerate(compare.samples_of(operator, dtype, most)):
        if number == 0:
            case.falls_back = falling_back(operator, sample)
        if time.process_time() - begin > CPU_SECONDS:
            case.cut = True
            break
        for variant in compare.VARIANTS:
            verdict = compare.judge(operator, sample, variant, dtype)
            if verdict is not None:
                case.outcomes[verdict.outcome.value] += 1
                if verdict.outcome is not Outcome.EQUAL:
                    case.details[verdict.outcome.value, variant, verdict.detail] += 1
    return case


def falling_back(operator: Any, sample: Any) -> list[str]:
    """The operators under one call for which torch_npu has no kernel: its own fallback computes them on the CPU."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: set[str] = set()

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(func.name())
            return func(*args, **kwargs or {})

    value, arguments, keywords = compare.on("cpu", (sample.input, sample.args, sample.kwargs))
    try:
        with Listing():
            operator(value, *arguments, **keywords)
    except Exception:
        return []
    return sorted(name for name in seen if name.startswith("aten::") and _falls_back(name))


def _falls_back(name: str) -> bool:
    """Whether the dispatcher leads to torch_npu's fallback, at once or from PyTorch's wrapper of the out= overload."""
    answer = _answer(name)
    if "[default backend kernel]" not in answer:
        return "[backend fallback]" in answer
    base, _, overload = name.partition(".")
    return any("[backend fallback]" in _answer(f"{base}.{out}") for out in ("out", f"{overload}_out"))


def _answer(name: str) -> str:
    """The line of the dispatcher's table that says what answers on the device; empty without such an operator."""
    base, _, overload = name.partition(".")
    if overload not in torch._C._jit_get_operation(base)[1]:
        return ""
    table = torch._C._dispatch_dump_table(name).splitlines()
    return next((line for line in table if line.startswith("PrivateUse1:")), "")


def dtypes_of(operator: Any, wanted: list[torch.dtype]) -> list[torch.dtype]:
    """Those of ``wanted`` that PyTorch has the operator for, on the CPU or on an accelerator."""
    known = operator.supported_dtypes("cpu") | operator.supported_dtypes("cuda")
    return [dtype for dtype in wanted if dtype in known]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth operator")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="the Ith of N parts")
    parser.add_argument("--samples", type=int, default=10**6, metavar="N", help="at most N samples of an operator")
    parser.add_argument("--dtypes", default="float32")
    parser.add_argument("--only", default="", metavar="NAME,…", help="operators by name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    part, parts = map(int, options.part.split("/"))
    names = {name for name in options.only.split(",") if name}
    wanted = [getattr(torch, name) for name in options.dtypes.split(",")]
    chosen = [
        each for each in op_db[:: options.every] if each.name not in UNDEFINED and (not names or each.name in names)
    ]
    torch.ops.npuport_sim.set_large_call(0)  # results of every size are written to the device at once where they can be
    cases = []
    for operator in chosen[part::parts]:
        for dtype in dtypes_of(operator, wanted):
            begin = time.process_time()
            cases.append(run_case(operator, dtype, options.samples).as_json())
            cases[-1]["seconds"] = round(time.process_time() - begin, 2)
        print(f"{operator.formatted_name}", file=sys.stderr, flush=True)
    print(json.dumps(cases))


if __name__ == "__main__":
    main()
