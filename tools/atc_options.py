"""Rebuild src/npuport/facts/data/atc_options.csv: the options of ATC, their values, and the chips without them.

    python tools/atc_options.py --ge CHECKOUT --version "August 2026"

The checkout is CANN's ge: api/atc/atc_flags.cc defines the options, api/atc/cmd_flag_info.cc the values that it checks
for, and docs/zh/user_guides/atc_tools/CLI_options says which products do not support an option and which options are
given up. Names and values are taken, no texts.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from pathlib import Path

TABLE = Path(__file__).parent.parent / "src/npuport/facts/data/atc_options.csv"
FAMILIES = {
    "950PR": "950",
    "Atlas A3": "A3",
    "Atlas A2": "A2",
    "200I/500 A2": "310B",
    "Atlas 推理": "310P",
    "Atlas 训练": "910",
}
_FLAG = re.compile(r"DEFINE_(?:string|int32|bool)\(\s*(\w+),")
_VALUES = re.compile(r'\{"(\w+)",\s*\{((?:\s*"[^"]+",?)+)\s*\}\}')
_UNSUPPORTED = re.compile(r"^[-\s]*(.+?)：\s*不支持", re.MULTILINE)


def families_without(document: str) -> list[str]:
    """The families of chips whose products a document says not to support its option."""
    products = " ".join(_UNSUPPORTED.findall(document.partition("功能说明")[0]))
    # "Atlas 200I/500 A2 推理产品" is not one of "Atlas A2" or "Atlas 推理系列产品".
    return [family for words, family in FAMILIES.items() if words in products]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ge", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--version", required=True, help="when the checkout was made")
    arguments = parser.parse_args()
    defined = _FLAG.findall((arguments.ge / "api/atc/atc_flags.cc").read_text(encoding="utf-8"))
    checked = (arguments.ge / "api/atc/cmd_flag_info.cc").read_text(encoding="utf-8")
    values = {name: re.findall(r'"([^"]+)"', listed) for name, listed in _VALUES.findall(checked)}
    folder = arguments.ge / "docs/zh/user_guides/atc_tools/CLI_options"
    # Some that are documented are registered at run time.
    documented = [path.stem.removeprefix("--") for path in folder.glob("--*.md") if path.stem != "--help_or_h"]
    rows = []
    for flag in sorted({*defined, *documented}):
        path = folder / f"--{flag}.md"
        document = path.read_text(encoding="utf-8") if path.is_file() else ""
        rows.append(
            (
                flag,
                " ".join(values.get(flag, ())),
                " ".join(families_without(document)),
                "yes" if "该参数已废弃" in document else "",
                f"CANN ge, {f'CLI_options/--{flag}.md' if document else 'atc_flags.cc'}",
                arguments.version,
                "documented",
            )
        )
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "values", "families_without", "given_up", "source", "version", "certainty"))
        writer.writerows(rows)
    print(f"{len(rows)} options written to {TABLE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
