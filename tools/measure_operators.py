"""Measure where each aten operator runs on the npu device, and write src/npuport/facts/data/operators.json.

    python tools/measure_operators.py [OUT.json]      # "-" prints the table

The names are PyTorch's own list (native_functions.yaml in the torch wheel); the answers come from the dispatcher after
``import torch_npu``.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

import on_cann

TABLE = Path(__file__).resolve().parents[1] / "src/npuport/facts/data/operators.json"


def native_functions() -> dict[str, str]:
    """Every aten overload of PyTorch's list, with the structured overload that it delegates to, or ""."""
    text = (files("torchgen") / "packaged/ATen/native/native_functions.yaml").read_text(encoding="utf-8")
    found = {}
    for entry in re.split(r"^- func: ", text, flags=re.MULTILINE)[1:]:
        delegate = re.search(r"^  structured_delegate: (\S+)", entry, flags=re.MULTILINE)
        found[entry.partition("(")[0]] = delegate.group(1) if delegate else ""
    return found


def status(name: str, delegates: dict[str, str]) -> str:
    """Where an overload runs, in the order in which the dispatcher looks for a kernel.

    A structured overload without a kernel of its own allocates its results and calls the one it delegates to.
    """
    import torch

    def has(key: str) -> bool:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key))

    if has("PrivateUse1"):
        return "npu"
    if delegates[name]:
        return status(delegates[name], delegates)
    if has("CompositeImplicitAutograd"):
        return "composite"
    if has("CompositeExplicitAutograd") or has("CompositeExplicitAutogradNonFunctional"):
        return "composite_explicit"
    return "cpu_fallback" if has("CPU") else "other"


def measure() -> dict[str, object]:
    """The table: overloads by status, ordered by name."""
    import torch_npu

    delegates = native_functions()
    by_status: dict[str, list[str]] = defaultdict(list)
    for name in sorted(delegates):
        by_status[status(name, delegates)].append(name)
    return {
        "source": "dispatcher of torch_npu",
        "version": torch_npu.__version__,
        "certainty": "measured",
        "overloads": {kind: by_status[kind] for kind in sorted(by_status)},
    }


def main(target: str = str(TABLE)) -> None:
    """Write the table to ``target``, or print it for "-"."""
    text = json.dumps(measure(), indent=0) + "\n"
    if target == "-":
        print(text, end="")
        return
    aside = Path(target + ".new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(target)


if __name__ == "__main__":
    on_cann.ensure()
    main(*sys.argv[1:])
