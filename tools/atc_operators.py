"""Rebuild src/npuport/facts/data/atc_operators.csv: the ONNX operators that CANN registers a parser for.

    python tools/atc_operators.py --ge CHECKOUT --operators CHECKOUT [CHECKOUT …] --version "August 2026"

ATC looks each node up as domain::operator set::type, exactly, and ends with E16002 where nothing is registered. The
checkouts are CANN's: ge (its parser knows some types in any operator set), ops-math, ops-nn and ops-cv (their plugins
register the rest). Names and numbers are taken, no code.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

TABLE = Path(__file__).parent.parent / "src/npuport/facts/data/atc_operators.csv"
# The types are a list of strings, or the first argument of a macro.
_REGISTERED = re.compile(r"\.OriginOpType\s*\((.*?)\)\s*(?=\.|;)|\bREGISTER_CUSTOM_ONNX_OP\s*\((.*?)\)", re.DOTALL)
_TYPE = re.compile(r"([\w.]+)::(\d+)::(\w+)")
_OF_PARSER = re.compile(r"kOnnxOpMap\s*=\s*\{(.*?)\};", re.DOTALL)
_SOURCES = {".cc", ".cpp"}


def registered(checkouts: Iterable[Path]) -> dict[tuple[str, str], set[int]]:
    """The operator sets of each (domain, type) that a plugin registers."""
    sets: dict[tuple[str, str], set[int]] = defaultdict(set)
    for checkout in checkouts:
        for path in checkout.rglob("*"):
            if path.suffix not in _SOURCES or "tests" in path.relative_to(checkout).parts:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            for match in _REGISTERED.finditer(text):
                for domain, number, name in _TYPE.findall(match[0]):
                    sets[domain, name].add(int(number))
    return sets


def of_parser(ge: Path) -> list[str]:
    """The types that the parser itself turns into operators, whatever the operator set."""
    text = (ge / "parser/parser/onnx/onnx_parser.cc").read_text(encoding="utf-8")
    known = _OF_PARSER.search(text)
    if known is None or "kOpTypeConstant" not in known[1]:
        sys.exit("onnx_parser.cc no longer maps Constant in kOnnxOpMap: the parser has changed, read it again")
    return ["Constant"]


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as ``8-16 18``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ge", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--operators", type=Path, nargs="+", required=True, metavar="CHECKOUT")
    parser.add_argument("--version", required=True, help="when the checkouts were made")
    arguments = parser.parse_args()
    source = "CANN " + ", ".join(path.name for path in arguments.operators) + ", plugins for ONNX"
    rows = [
        (name, domain, ranges(numbers), source, arguments.version, "documented")
        for (domain, name), numbers in registered(arguments.operators).items()
    ]
    rows += [
        (name, "ai.onnx", "", "CANN ge, onnx_parser.cc", arguments.version, "documented")
        for name in of_parser(arguments.ge)
    ]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "domain", "opsets", "source", "version", "certainty"))
        writer.writerows(sorted(rows))
    print(f"{len(rows)} operators written to {TABLE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
