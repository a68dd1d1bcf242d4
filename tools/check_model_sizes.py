"""Compare src/npuport/facts/data/language_models.csv with the scripts that its sources name, and print what differs.

    python tools/check_model_sizes.py CHECKOUT

CHECKOUT is MindSpeed-LLM's. Ends with 1 where a script says another size, or is gone: then look at the model, for
scripts also train models that were cut or lengthened to fit a cluster.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

TABLE = Path(__file__).parent.parent / "src/npuport/facts/data/language_models.csv"
# Columns by the options of Megatron that say them, the first one that a script has.
OPTIONS = {
    "layers": ("num-layers",),
    "hidden": ("hidden-size",),
    "heads": ("num-attention-heads",),
    "kv_heads": ("num-query-groups", "num-attention-heads"),
    "head_width": ("kv-channels",),
    "ffn": ("moe-ffn-hidden-size", "moe-intermediate-size", "ffn-hidden-size"),
    "vocabulary": ("padded-vocab-size", "vocab-size"),
    "experts": ("num-experts",),
    "top_k": ("moe-router-topk",),
}


def said(script: str, option: str) -> int | None:
    """The number that a script gives an option, directly or by a variable; None where it gives none."""
    found = re.search(rf"--{option}[ =]+\$?\{{?(\w+)\}}?", script)
    if found is None or found[1].isdigit():
        return int(found[1]) if found else None
    variable = re.search(rf"^{found[1]}=(\d+)", script, re.MULTILINE)
    return int(variable[1]) if variable else None


def differences(row: Mapping[str, str], script: str) -> Iterator[str]:
    """What a script says otherwise than the table; what it does not say is no difference."""
    for column, options in OPTIONS.items():
        number = next((one for one in (said(script, option) for option in options) if one is not None), None)
        if number is not None and number != int(row[column]):
            yield f"{row['name']}: {column} {row[column]}, the script says {number}"
    tied = "no" if "--untie-embeddings-and-output-weights" in script else "yes"
    if tied != row["tied"]:
        yield f"{row['name']}: tied {row['tied']}, the script says {tied}"


def main() -> int:
    """Print every difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    checkout: Path = parser.parse_args().checkout
    found: list[str] = []
    with TABLE.open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            named = re.search(r"\S+\.sh", row["source"])
            place = checkout / (named[0].rstrip(";") if named else "")
            if not place.is_file():
                found.append(f"{row['name']}: {place} is not there")
                continue
            found += differences(row, place.read_text(encoding="utf-8"))
    print("\n".join(found) or "the table agrees with the scripts")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
