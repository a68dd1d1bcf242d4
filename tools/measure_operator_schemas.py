"""Measure the signatures of torch_npu's own operators, and write src/npuport/facts/data/operator_schemas.csv.

    python tools/measure_operator_schemas.py [OUT.csv]      # "-" prints the table

The signatures are those that the dispatcher has after ``import torch_npu``. Backward and in-graph helpers, which no
program calls, are left out: what is not a function of the module ``torch_npu`` is not in the table.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import on_cann

TABLE = Path(__file__).resolve().parents[1] / "src/npuport/facts/data/operator_schemas.csv"


def measure() -> Iterator[tuple[str, ...]]:
    """A row for each overload: name, schema without the namespace, source, version, certainty."""
    import torch
    import torch_npu

    for schema in sorted(torch._C._jit_get_all_schemas(), key=str):
        namespace, _, name = schema.name.partition("::")
        if namespace == "npu" and hasattr(torch_npu, name):
            text = str(schema).removeprefix("npu::")
            yield (name, text, "dispatcher of torch_npu", torch_npu.__version__.partition("+")[0], "measured")


def main(target: str = str(TABLE)) -> None:
    """Write the table to ``target``, or print it for "-"."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("name", "schema", "source", "version", "certainty"))
    writer.writerows(measure())
    if target == "-":
        print(text.getvalue(), end="")
        return
    aside = Path(target + ".new")
    aside.write_text(text.getvalue(), encoding="utf-8")
    aside.replace(target)


if __name__ == "__main__":
    on_cann.ensure()
    main(*sys.argv[1:])
