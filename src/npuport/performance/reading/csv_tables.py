"""The CSV files of torch_npu's profiler, whose columns come and go between releases: asked for by what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from npuport.errors import first_line
from npuport.findings import say
from npuport.performance.tables import Problem

_ABSENT = ("", "N/A", "NA", "None", "null")


def read_csv(path: Path, problems: list[Problem]) -> pl.DataFrame | None:
    """Every column as text, without blanks, tabulators and quotation marks around values; None if it cannot be read."""
    if not path.is_file():
        return None
    try:
        frame = pl.read_csv(path, infer_schema=False, truncate_ragged_lines=True)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        problems.append(Problem(path, say("it cannot be read ({reason})", reason=first_line(error))))
        return None
    text = pl.all().str.strip_chars(' \t"')
    return frame.select(pl.when(text.is_in(_ABSENT)).then(None).otherwise(text).name.keep())


def pick(
    frame: pl.DataFrame, path: Path, names: Mapping[str, Sequence[str]], needed: Sequence[str], problems: list[Problem]
) -> pl.DataFrame | None:
    """The columns by our names, each the first of its possible names that is there.

    None, with a problem that names them, where a column is missing that nothing can be said without.
    """
    found = {ours: next((one for one in theirs if one in frame.columns), None) for ours, theirs in names.items()}
    if missing := [names[ours][0] for ours in needed if found[ours] is None]:
        problems.append(Problem(path, say("columns are missing: {columns}", columns=", ".join(missing))))
        return None
    return frame.select(
        pl.lit(None, dtype=pl.String).alias(ours) if theirs is None else pl.col(theirs).alias(ours)
        for ours, theirs in found.items()
    )


def nanoseconds(column: str) -> pl.Expr:
    """A column of microseconds written as text, such as "1736408883704643.212", as whole nanoseconds.

    Through a float the last digits of a time since 1970 would be lost, so both sides of the point are read apart.
    """
    parts = pl.col(column).str.splitn(".", 2).struct
    whole = parts.field("field_0").cast(pl.Int64, strict=False)
    rest = parts.field("field_1").fill_null("").str.pad_end(4, "0").str.slice(0, 4).cast(pl.Int64, strict=False)
    return whole * 1000 + (rest.fill_null(0) + 5) // 10


def bytes_of(column: str, unit: int) -> pl.Expr:
    """A column of sizes written as text, in ``unit`` bytes."""
    return (pl.col(column).cast(pl.Float64, strict=False) * unit).round().cast(pl.Int64, strict=False)
