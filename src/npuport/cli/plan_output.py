"""What `npuport plan` prints: a table, the arithmetic, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.llm.planning.choosing import Candidate, Choice
    from npuport.llm.planning.layout import Framework, Job
    from npuport.llm.planning.model import Model

SCHEMA = "npuport-parallel-plan/1"
GIB = 1024**3


def answer(
    model: Model,
    job: Job,
    framework: Framework,
    available: float,
    reserve: float,
    choice: Choice,
    top: int,
    *,
    explain: bool,
) -> Iterator[str]:
    """The lines for a person."""
    from npuport.report.language import translate

    yield translate(
        "{parameters} parameters, {devices} devices of {memory} GiB, {reserve} left free: {fit} of {tried} layouts fit",
        parameters=f"{model.parameters / 1e9:.2f}e9",
        devices=job.devices,
        memory=f"{available / GIB:g}",
        reserve=f"{reserve:.0%}",
        fit=len(choice.fitting),
        tried=choice.tried,
    )
    if not choice.fitting:
        yield from _nothing_fits(choice, available * (1 - reserve))
        return
    shown = choice.best(top)
    yield ""
    yield _table_row(
        "", "TP", "PP", "CP", "EP", "DP", "ZeRO", translate("batch"), translate("recompute"), "GiB", "+", "GB"
    )
    for number, one in enumerate(shown, 1):
        layout = one.layout
        yield _table_row(
            number,
            layout.tensor,
            layout.pipeline,
            layout.context,
            layout.expert,
            layout.data,
            layout.zero,
            f"{layout.micro_batch}x{layout.micro_batches}",
            layout.recompute,
            f"{one.memory.total / GIB:.1f}",
            f"{one.overhead - 1:.1%}",
            f"{sum(one.sent.values()) / 1e9:,.0f}",
        )
    yield ""
    yield translate(
        "batch: sequences at once x times a step; +: time lost to bubble, recomputation; GB: sent by a device in a step"
    )
    yield translate("The first one, because:")
    yield from ("  " + reason for reason in _reasons(shown[0], job))
    yield translate(
        "Its fullest device (stage {stage}, at: {moment}):",
        stage=shown[0].memory.stage,
        moment=translate(shown[0].memory.moment.value),
    )
    for name, size in shown[0].memory.parts.items():
        yield f"  {size / GIB:8.2f} GiB  {translate(name)}"
    if explain:
        yield ""
        yield from _arithmetic(model, job, framework, shown[0])


def _table_row(*cells: object) -> str:
    widths = (2, 3, 3, 3, 3, 4, 5, 7, 10, 6, 7, 9)
    return " ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _nothing_fits(choice: Choice, limit: float) -> Iterator[str]:
    from npuport.report.language import translate

    if choice.nearest is None:
        yield translate(
            "No layout divides devices, heads, layers and batch evenly: choose a global batch that the devices divide."
        )
        return
    nearest = choice.nearest
    yield translate(
        "The nearest needs {need} GiB, {missing} GiB more than there is: {layout}",
        need=f"{nearest.memory.total / GIB:.1f}",
        missing=f"{(nearest.memory.total - limit) / GIB:.1f}",
        layout=_named(nearest),
    )
    for name, size in nearest.memory.parts.items():
        yield f"  {size / GIB:8.2f} GiB  {translate(name)}"
    yield translate("More devices, a shorter sequence or a smaller micro-batch would help.")


def _named(candidate: Candidate) -> str:
    layout = candidate.layout
    sizes = f"TP {layout.tensor}, PP {layout.pipeline}, CP {layout.context}, EP {layout.expert}, DP {layout.data}"
    return f"{sizes}, ZeRO {layout.zero}, {layout.recompute}, {layout.micro_batch}x{layout.micro_batches}"


def _reasons(candidate: Candidate, job: Job) -> Iterator[str]:
    from npuport.report.language import translate

    layout = candidate.layout
    if layout.tensor > 1:
        yield translate(
            "TP {size} stays within a node of {devices} devices", size=layout.tensor, devices=job.devices_per_node
        )
    if layout.pipeline > 1:
        yield translate("PP {size}: fewer stages do not fit, lose more time, or need CP", size=layout.pipeline)
        yield translate(
            "the bubble is ({p} - 1) / {m} = {share}",
            p=layout.pipeline,
            m=layout.micro_batches,
            share=f"{layout.bubble:.1%}",
        )
    if layout.tensor == layout.pipeline == 1:
        yield translate("the model needs no split beside data parallelism")
    if layout.zero:
        yield translate("ZeRO {stage} over {ranks} ranks", stage=layout.zero, ranks=layout.shards)
    if layout.recompute == "full":
        yield translate("full recomputation costs a third more computing, but without it nothing fits that loses less")
    else:
        yield translate("activations fit without full recomputation")
    sent = ", ".join(f"{kind} {size / 1e9:,.1f}" for kind, size in candidate.sent.items() if size)
    if sent:
        yield translate("a device sends in a step, in GB: {sent}", sent=sent)


def _arithmetic(model: Model, job: Job, framework: Framework, candidate: Candidate) -> Iterator[str]:
    """The formulas with the numbers of the plan."""
    from npuport.llm.planning.activations import head_activations, layer_activations
    from npuport.llm.planning.memory import Moment, stage_parameters
    from npuport.report.language import translate

    layout, policy, memory = candidate.layout, framework.policy, candidate.memory
    shared, experts = stage_parameters(model, layout, memory.stage)
    yield translate(
        "Parameters of the device before ZeRO: {shared} and {experts} of experts",
        shared=f"{shared:,.0f}",
        experts=f"{experts:,.0f}",
    )
    for name, size, stage in (
        ("parameters", policy.parameter, 3),
        ("gradients", policy.gradient, 2),
        ("optimizer", policy.optimizer, 1),
    ):
        over = layout.shards if layout.zero >= stage else 1
        of_experts = layout.shards // layout.expert if layout.zero >= stage else 1
        total = size * (shared / over + experts / of_experts)
        yield f"  {translate(name)}: {size} x ({shared:,.0f} / {over} + {experts:,.0f} / {of_experts}) = {total:,.0f}"
    tokens = job.sequence * layout.micro_batch // (layout.tensor * layout.context)
    yield translate(
        "Tokens: {sequence} x {batch} / (TP {tp} x CP {cp}) = {tokens}",
        sequence=job.sequence,
        batch=layout.micro_batch,
        tp=layout.tensor,
        cp=layout.context,
        tokens=tokens,
    )
    terms = layer_activations(model, policy, layout.recompute, job.sequence, layout.micro_batch)
    each = sum(terms.values())
    yield translate("One layer keeps {size} bytes of a token:", size=f"{each:,.0f}")
    yield from (f"  {size:12,.0f}  {translate(name)}" for name, size in terms.items())
    held = min(layout.pipeline - memory.stage, layout.micro_batches)
    layers = model.layers // layout.pipeline
    yield (
        translate("Activations of all layers:")
        + f" {tokens} x {held} x {layers} x {each:,.0f} = {tokens * held * layers * each:,.0f}"
    )
    if memory.moment is Moment.LOSS:
        yield translate("From the last norm to the loss:")
        yield from (
            f"  {tokens} x {size:,.0f}  {translate(name)}"
            for name, size in head_activations(model, policy.kernels).items()
        )


def document(
    model: Model, job: Job, framework: Framework, available: float, reserve: float, choice: Choice, top: int
) -> str:
    """The JSON document (schemas/npuport-parallel-plan-1.json)."""
    found = {
        "schema": SCHEMA,
        "framework": framework.name,
        "model": asdict(model) | {"parameters": model.parameters},
        "job": asdict(job),
        "device_bytes": available,
        "reserve": reserve,
        "tried": choice.tried,
        "fitting": len(choice.fitting),
        "plans": [_as_json(one) for one in choice.best(top)],
        "nearest": _as_json(choice.nearest) if choice.nearest and not choice.fitting else None,
    }
    return json.dumps(found, indent=2)


def _as_json(candidate: Candidate) -> dict[str, Any]:
    return {
        "layout": asdict(candidate.layout),
        "memory": {
            "stage": candidate.memory.stage,
            "moment": candidate.memory.moment.value,
            "bytes": round(candidate.memory.total),
            "parts": {name: round(size) for name, size in candidate.memory.parts.items()},
        },
        "bubble": candidate.layout.bubble,
        "overhead": candidate.overhead - 1,
        "sent_bytes": {name: round(size) for name, size in candidate.sent.items()},
    }
