"""Operators that are compiled while the model trains."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from npuport.facts import performance_fact
from npuport.findings import say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, in_milliseconds, milliseconds
from npuport.performance.intervals import total
from npuport.performance.tables import Category

_COMPILING = "^aclopCompileAndExecute"


def compiled_operators(context: Context) -> Iterator[PerformanceFinding]:
    """aclopCompileAndExecute looks an operator up among those compiled before, and compiles it where it is new."""
    runtime = context.events.filter(pl.col("category") == Category.RUNTIME)
    calls = runtime.filter(pl.col("name").str.contains(_COMPILING))
    if calls.is_empty():
        return
    spans = list(calls.select("start_ns", "end_ns").iter_rows())
    cost = context.per_step(total(spans))
    steps = len(context.splits)
    free = context.without_computing(spans)
    operators = _operators(context, calls)
    kinds = context.kernels.filter(pl.col("type").is_in(list(operators)))
    lines = context.lines_of_kernels(kinds)
    yield PerformanceFinding(
        code="NT102",
        name="operators-compiled-in-the-step",
        seen=say(
            "operators are compiled {count} x in a step, {time} ms",
            count=f"{calls.height / steps:,.3g}",
            time=milliseconds(cost),
        ),
        fix=say("call torch.npu.set_compile_mode(jit_compile=False) before the model is built"),
        check=say("aclopCompileAndExecute is gone from the next profile"),
        cost_ns=cost,
        gain_ns=context.gain(free),
        confidence=Confidence.HIGH,
        spans=free,
        events=tuple(calls["id"].to_list()),
        details={"calls": calls.height / steps, "operators": operators, "lines_ms": in_milliseconds(lines)},
        line=next(iter(lines), ""),
        basis=performance_fact("jit-compile").basis,
    )


def _operators(context: Context, calls: pl.DataFrame) -> dict[str, int]:
    """How often each operator type was compiled: the task queue's thread names it ("Dequeue@Conv2D")."""
    tasks = context.events.filter(pl.col("category") == Category.DEQUEUE).sort("start_ns")
    inside = calls.sort("start_ns").join_asof(
        tasks.select("thread", "start_ns", pl.col("end_ns").alias("task_end"), pl.col("name").alias("task")),
        on="start_ns",
        by="thread",
        check_sortedness=False,  # both are sorted; Polars cannot see it within groups
    )
    named = inside.filter(pl.col("task_end") >= pl.col("end_ns")).select(pl.col("task").str.replace(r"^\w+@", ""))
    return dict(named.group_by("task").len().sort("len", "task", descending=[True, False]).iter_rows())
