"""Kernels that need not run, or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from npuport.facts import performance_fact
from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, in_milliseconds, milliseconds
from npuport.performance.intervals import spans_of, subtract, total
from npuport.performance.phases import Phase

_REARRANGING = ("Transpose", "TransposeD", "TensorMove", "ViewCopy")
_MANY = 50  # kernels of one optimizer step; updating all parameters at once takes a handful for each data type


def on_control_processors(context: Context) -> Iterator[PerformanceFinding]:
    """Kernels on the AI CPU."""
    yield from _kernels(
        context,
        context.kernels.filter(pl.col("core") == "AI_CPU"),
        code="NT501",
        name="kernels-on-the-ai-cpu",
        seen=lambda **values: say(
            "{count} kernels run on the control processors of the device (AI CPU) in a step, {time} ms: {types}",
            **values,
        ),
        fix=say("change the data type (float64 to float32, int64 to int32), or write the operator with others"),
        check=say("the next profile has no kernels on AI_CPU"),
        fact="ai-cpu",
    )


def format_conversions(context: Context) -> Iterator[PerformanceFinding]:
    """Kernels that only convert between memory layouts."""
    converts = (pl.col("type") == "TransData").fill_null(value=False) | pl.col("name").str.contains("TransData")
    yield from _kernels(
        context,
        context.kernels.filter(converts),
        code="NT502",
        name="layout-conversions",
        seen=lambda **values: say(
            "{count} kernels only convert between memory layouts in a step, {time} ms: {types}", **values
        ),
        fix=say("set torch.npu.config.allow_internal_format=False before the model is built"),
        check=say("the next profile has few or no TransData kernels"),
        fact="internal-format",
    )


def rearranging_copies(context: Context) -> Iterator[PerformanceFinding]:
    """Kernels that only bring a tensor's values into another order."""
    yield from _kernels(
        context,
        context.kernels.filter(pl.col("type").is_in(_REARRANGING)),
        code="NT504",
        name="rearranging-copies",
        seen=lambda **values: say(
            "{count} kernels only bring values into another order in a step, {time} ms: {types}", **values
        ),
        fix=say("call .contiguous() once behind the transpose or slice, or give operators the layout they want"),
        check=say("the next profile has fewer of these kernels"),
        fact="copy-kernels",
    )


def _kernels(
    context: Context,
    found: pl.DataFrame,
    *,
    code: str,
    name: str,
    seen: Callable[..., Sentence],
    fix: Sentence,
    check: Sentence,
    fact: str,
) -> Iterator[PerformanceFinding]:
    """A finding about kernels that could go: its gain is the time in which no other kernel runs."""
    if found.is_empty():
        return
    others = spans_of(context.kernels.join(found.select("id"), on="id", how="anti"))
    spans = subtract(context.in_steps(spans_of(found)), others)
    cost = context.per_step(int((found["end_ns"] - found["start_ns"]).sum()))
    kinds = found.group_by(pl.coalesce("type", "name").alias("kind")).agg(pl.len().alias("count"))
    counts = dict(kinds.sort("count", "kind", descending=[True, False]).iter_rows())
    lines = context.lines_of_kernels(found)
    yield PerformanceFinding(
        code=code,
        name=name,
        seen=seen(
            count=f"{found.height / len(context.splits):,.3g}",
            time=milliseconds(cost),
            types=", ".join(list(counts)[:3]),
        ),
        fix=fix,
        check=check,
        cost_ns=cost,
        gain_ns=min(context.gain(spans), cost),
        confidence=Confidence.MEDIUM,
        spans=spans,
        line=next(iter(lines), ""),
        events=tuple(found["id"].to_list()),
        evidence_table="kernels",
        details={"kernels": counts, "lines_ms": in_milliseconds(lines)},
        basis=performance_fact(fact).basis,
    )


def optimizer_parameter_by_parameter(context: Context) -> Iterator[PerformanceFinding]:
    """An optimizer that launches kernels for each parameter: the device waits for the launches."""
    steps = len(context.splits)
    launched = context.kernels.filter(pl.col("phase") == Phase.OPTIMIZER.value)
    marks = context.events.filter(pl.col("name").str.contains(r"^Optimizer\.step#"))
    if launched.height < _MANY * steps or marks.is_empty():
        return
    spans = context.in_steps(spans_of(marks))
    free = context.without_computing(spans)
    cost = context.per_step(total(spans))
    optimizer = marks["name"][0].removeprefix("Optimizer.step#").removesuffix(".step")
    on_npu = context.profile.device == "npu"
    yield PerformanceFinding(
        code="NT503",
        name="optimizer-updates-one-by-one",
        seen=say(
            "{optimizer} launches {count} kernels in a step, the host takes {time} ms for that",
            optimizer=optimizer,
            count=f"{launched.height / steps:,.0f}",
            time=milliseconds(cost),
        ),
        fix=_fused(optimizer, on_npu),
        check=say("the optimizer launches a handful of kernels in a step"),
        cost_ns=cost,
        gain_ns=context.gain(free),
        confidence=Confidence.HIGH,
        spans=free,
        events=tuple(marks["id"].to_list()),
        basis=performance_fact("fused-optimizers").basis if on_npu else None,
    )


def _fused(optimizer: str, on_npu: bool) -> Sentence:
    if on_npu and f"NpuFused{optimizer}," in performance_fact("fused-optimizers").fact.replace(" and ", ", "):
        return say("use torch_npu.optim.NpuFused{optimizer}, or foreach=True", optimizer=optimizer)
    return say("give the optimizer foreach=True or fused=True")
