"""Reading the tables in data/. Tables are small, read once, and never at import."""

from __future__ import annotations

import csv
from pathlib import Path

from npuport.findings import Basis

DATA = Path(__file__).with_name("data")


def rows(name: str) -> list[dict[str, str]]:
    """The rows of ``data/<name>.csv`` as written."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def basis(row: dict[str, str]) -> Basis:
    """Where a row comes from; every table has these three columns."""
    return Basis(source=row["source"], certainty=row["certainty"], version=row["version"])
