"""The tables of a profile as Parquet files."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from npuport.performance.tables import Profile

TABLES = (
    "steps", "events", "kernels", "communication", "memory", "allocations", "collectives", "transfers", "links",
    "frequencies",
)  # fmt: skip


def write_tables(profile: Profile, folder: Path) -> list[Path]:
    """Write each table that has rows, aside and then in place; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in TABLES:
        table: pl.DataFrame = getattr(profile, name)
        if table.is_empty():
            continue
        path = folder / f"{name}.parquet"
        aside = path.with_name(f".new-{path.name}")
        table.write_parquet(aside, compression="zstd")
        aside.replace(path)
        written.append(path)
    return written
