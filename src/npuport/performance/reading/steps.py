"""Where the steps of a profile begin and end."""

from __future__ import annotations

import polars as pl

from npuport.performance.tables import STEPS, Category, empty, shaped

_MARK = r"^ProfilerStep\s*#\s*(\d+)"


def steps_of(events: pl.DataFrame, kernel_rows: pl.DataFrame | None = None) -> pl.DataFrame:
    """The steps that the profiler marked, else those that kernels are numbered with, else the whole without a number.

    ``kernel_rows`` may have the columns ``step``, ``start_ns`` and ``end_ns``.
    """
    marked = events.with_columns(pl.col("name").cast(pl.String).str.extract(_MARK).alias("step"))
    marked = marked.filter(pl.col("step").is_not_null() & (pl.col("end_ns") > pl.col("start_ns")))
    if not marked.is_empty():
        # Newer traces hold the mark twice, for the host and for the device.
        return shaped(marked.unique("step", keep="first").sort("start_ns"), STEPS)
    rows = events if kernel_rows is None or kernel_rows.is_empty() else kernel_rows
    if rows.is_empty():
        return empty(STEPS)
    if "step" not in rows.columns or rows["step"].null_count() == rows.height:
        both = pl.concat([rows.select("start_ns", "end_ns"), events.select("start_ns", "end_ns")])
        rows = both.with_columns(pl.lit(None, dtype=pl.Int64).alias("step"))
    else:
        rows = rows.drop_nulls("step")
    spans = rows.group_by("step").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    return shaped(spans.with_columns(pl.lit(_loop(events)).alias("thread")).sort("start_ns"), STEPS)


def _loop(events: pl.DataFrame) -> int | None:
    """The thread that runs the training loop: the first to call an operator, which starts the others."""
    operators = events.filter(pl.col("category").cast(pl.String) == Category.OPERATOR).drop_nulls("thread")
    return None if operators.is_empty() else operators.sort("start_ns")["thread"][0]
