"""`npuport model choose`: options to a need, and the candidates as a table, arithmetic or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.llm.candidates.choosing import Assessment, Machine, Need

SCHEMA = "npuport-model-choice/1"
_GIB = 1024**3


@dataclass(frozen=True)
class Options:
    """The command's options as they were given; ``licences`` in lower case."""

    task: str
    rate: float | None
    quality: float | None
    licences: tuple[str, ...]
    served: bool
    context: int
    batch: int
    chip: str
    devices: int
    memory: float | None
    bandwidth: float | None
    reserve: float
    dtype: str
    configs: tuple[Path, ...]


def choose_model(options: Options, *, explain: bool, as_json: bool) -> None:
    """Print the candidates; end with 1 where none meets the need.

    Raises:
        UserError: an option or a config is not as it must be.
    """
    from npuport import facts
    from npuport.cli.shared import FINDINGS
    from npuport.llm.candidates.architectures import ARCHITECTURES, DECODER
    from npuport.llm.candidates.arithmetic import WEIGHT_BYTES, Chats
    from npuport.llm.candidates.choosing import Candidate, Need, assess, known_candidates, ranked
    from npuport.llm.planning.model import model_from

    _one_of("--task", options.task, ARCHITECTURES)
    _one_of("--dtype", options.dtype, WEIGHT_BYTES)
    chats = Chats(options.context, options.batch)
    need = Need(chats, options.rate, options.quality, options.licences, options.served)
    machine = _machine(options)
    offered = [Candidate(str(path), model_from(path)) for path in options.configs]
    offered += known_candidates(facts.all_language_models())
    generates = DECODER in ARCHITECTURES[options.task]
    assessments = [assess(one, need, machine, options.dtype) for one in offered] if generates else []
    fitting = ranked(assessments)
    if as_json:
        print(document(options, need, machine, assessments, fitting))
    else:
        print("\n".join(in_words(options, need, machine, assessments, fitting, explain=explain)))
    if generates and not fitting:
        raise SystemExit(FINDINGS)


def _one_of(option: str, given: str, known: Sequence[str] | dict[str, Any]) -> None:
    if given not in known:
        raise UserError("{option} takes {known}, not {given}.", option=option, known=", ".join(known), given=given)


def _machine(options: Options) -> Machine:
    from npuport import facts
    from npuport.llm.candidates.choosing import Machine

    chip = facts.chip(options.chip)
    if chip is None:
        known = ", ".join(one.name for one in facts.all_chips())
        raise UserError("unknown chip {chip}. Known are {known}.", chip=options.chip, known=known)
    memory = options.memory or chip.memory_gib
    if memory is None:
        raise UserError("the memory of {chip} is not known here: give it with --memory GIB.", chip=chip.name)
    if options.dtype == "bfloat16" and not chip.bf16:
        raise UserError("{chip} has no bfloat16: take --dtype float16.", chip=chip.name)
    known_rate = facts.memory_bandwidth(chip.name)
    rate = options.bandwidth * 1e9 if options.bandwidth else known_rate.bytes_per_second if known_rate else None
    return Machine(chip.family, options.devices, memory * _GIB * (1 - options.reserve), rate)


def in_words(
    options: Options,
    need: Need,
    machine: Machine,
    assessments: Sequence[Assessment],
    fitting: Sequence[Assessment],
    *,
    explain: bool,
) -> Iterator[str]:
    """The lines for a person."""
    from npuport.llm.candidates.architectures import ARCHITECTURES
    from npuport.report.language import translate

    for architecture in ARCHITECTURES[options.task]:
        yield _reason(architecture)
        yield from _library_models(architecture, options.task)
    if not assessments:
        yield translate("Memory and rates are computed for decoder-only models alone.")
        return
    yield ""
    yield translate(
        "{devices} x {chip}, {memory} GiB of each to fill, memory at {bandwidth}; {batch} chats of {context} tokens",
        devices=machine.devices,
        chip=options.chip,
        memory=f"{machine.memory / _GIB:.1f}",
        bandwidth=f"{machine.bandwidth / 1e9:,.0f} GB/s" if machine.bandwidth else translate("an unknown rate"),
        batch=need.chats.batch,
        context=f"{need.chats.context:,}",
    )
    if machine.bandwidth is None:
        yield translate(
            "No source for the bandwidth of this chip's memory is known here: give it with --bandwidth GBS."
        )
    yield ""
    yield _row("", *_HEADINGS)
    yield from (_cells(one) for one in fitting)
    if not fitting:
        yield "  " + translate("no model of the table meets the need")
    for one in fitting:
        if one.unknown:
            names = ", ".join(one.unknown)
            yield "  " + translate("{name}: no source was read for {names}", name=one.candidate.name, names=names)
    yield ""
    yield translate(
        "GiB of one device. At most: tokens/s of each chat if memory were read at its nominal rate; real ones are "
        "lower: measure with `npuport model bench --random-weights`. Serves: what vllm-ascend says."
    )
    refused = [one for one in assessments if one.refusals]
    if refused:
        yield ""
        yield translate("Not these:")
        yield from (f"  {one.candidate.name}: {'; '.join(_why_not(one, need, machine))}" for one in refused)
    if explain and fitting:
        yield ""
        yield from _arithmetic(fitting[0], need, machine, options.dtype)


_HEADINGS = "parameters", "weights", "cache", "all", "at most", "MMLU", "licence", "serves"


def _row(name: str, *cells: str) -> str:
    widths = (10, 7, 7, 7, 8, 6, 20, 14)
    return f"{name:<18}" + " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(one: Assessment) -> str:
    fact = one.candidate.fact
    return _row(
        one.candidate.name,
        f"{one.candidate.model.parameters / 1e9:.2f}e9",
        f"{one.load.weights / _GIB:.1f}",
        f"{one.load.cache / _GIB:.1f}",
        f"{one.load.held / _GIB:.1f}",
        f"{one.rate:,.0f}" if one.rate is not None else "?",
        f"{fact.mmlu:.1f}" if fact is not None and fact.mmlu is not None else "?",
        (fact.licence if fact is not None else None) or "?",
        (fact.serving if fact is not None else "") or "-",
    )


def _reason(architecture: str) -> str:
    from npuport.report.language import translate

    if architecture == "decoder-only":
        return translate("decoder-only (GPT, Llama, Qwen): writes token by token from all that stands before")
    if architecture == "encoder-only":
        return translate("encoder-only (BERT): sees a whole text at once and says something of it or of its words")
    return translate("encoder-decoder (T5): reads a whole text and writes another one")


def _library_models(architecture: str, task: str) -> Iterator[str]:
    from npuport import facts

    for one in facts.all_library_models():
        if (one.architecture, one.task) == (architecture, task):
            yield f"  {one.name}: {one.library}, {one.path}"


def _why_not(one: Assessment, need: Need, machine: Machine) -> Iterator[str]:
    from npuport.report.language import translate

    fact, model = one.candidate.fact, one.candidate.model
    for refusal in one.refusals:
        if refusal == "division":
            yield translate(
                "{heads} heads and {kv} of keys do not divide by {devices}",
                heads=model.heads,
                kv=model.kv_heads,
                devices=machine.devices,
            )
        elif refusal == "memory":
            yield translate(
                "{held} GiB do not fit into {memory}",
                held=f"{one.load.held / _GIB:.1f}",
                memory=f"{machine.memory / _GIB:.1f}",
            )
        elif refusal == "rate" and one.rate is not None and need.rate is not None:
            yield translate("at most {rate} tokens/s, needed {need}", rate=f"{one.rate:,.0f}", need=f"{need.rate:,.0f}")
        elif refusal == "context" and fact is not None:
            yield translate("its context ends at {context} tokens", context=f"{fact.context:,}")
        elif refusal == "quality" and fact is not None:
            yield f"MMLU {fact.mmlu}"
        elif refusal == "licence" and fact is not None:
            yield translate("licence {licence}", licence=fact.licence)
        elif refusal == "serving":
            yield translate("vllm-ascend does not name it for {family}", family=machine.family)


def _arithmetic(one: Assessment, need: Need, machine: Machine, dtype: str) -> Iterator[str]:
    from npuport.llm.candidates.arithmetic import cache_bytes, touched_experts
    from npuport.report.language import translate

    model, each = one.candidate.model, cache_bytes(one.candidate.model, machine.devices)
    yield translate("{name}, of one device:", name=one.candidate.name)
    yield "  " + translate(
        "weights: {parameters} parameters, {dtype}, / {devices} = {size} bytes",
        parameters=f"{model.parameters:,}",
        dtype=dtype,
        devices=machine.devices,
        size=f"{one.load.weights:,.0f}",
    )
    yield "  " + translate(
        "cache: 2 x {layers} layers x {heads} heads x {width} x 2 = {each} bytes a token; "
        "x {context} x {batch} = {size}",
        layers=model.layers,
        heads=max(1, model.kv_heads // machine.devices),
        width=model.head_width,
        each=f"{each:,.0f}",
        context=need.chats.context,
        batch=need.chats.batch,
        size=f"{one.load.cache:,.0f}",
    )
    if model.experts > 1:
        yield "  " + translate(
            "experts that a step reads of {experts}: {touched}, if each is chosen as often",
            experts=model.experts,
            touched=f"{touched_experts(model, need.chats.batch):.1f}",
        )
    if machine.bandwidth is not None and one.rate is not None:
        yield "  " + translate(
            "a step reads {read} bytes; {bandwidth} / {read} = {rate} steps/s at most",
            read=f"{one.load.read:,.0f}",
            bandwidth=f"{machine.bandwidth:,.0f}",
            rate=f"{one.rate:.1f}",
        )
    if one.candidate.fact is not None:
        yield from (f"  {source}" for source in one.candidate.fact.basis.source.split("; "))


def document(
    options: Options, need: Need, machine: Machine, assessments: Sequence[Assessment], fitting: Sequence[Assessment]
) -> str:
    """The JSON document (schemas/npuport-model-choice-1.json)."""
    from npuport import facts
    from npuport.llm.candidates.architectures import ARCHITECTURES

    examples = [asdict(one) for one in facts.all_library_models() if one.task == options.task]
    found = {
        "schema": SCHEMA,
        "task": options.task,
        "architectures": ARCHITECTURES[options.task],
        "library_models": [{name: one[name] for name in _EXAMPLE} for one in examples],
        "need": asdict(need),
        "machine": asdict(machine) | {"chip": options.chip},
        "dtype": options.dtype,
        "fitting": [_as_json(one) for one in fitting],
        "refused": [_as_json(one) for one in assessments if one.refusals],
    }
    return json.dumps(found, indent=2)


_EXAMPLE = "name", "architecture", "library", "path"


def _as_json(one: Assessment) -> dict[str, Any]:
    fact = one.candidate.fact
    return {
        "name": one.candidate.name,
        "parameters": one.candidate.model.parameters,
        "weights_bytes": round(one.load.weights),
        "cache_bytes": round(one.load.cache),
        "held_bytes": round(one.load.held),
        "read_bytes": round(one.load.read),
        "tokens_per_second_at_most": one.rate,
        "mmlu": fact.mmlu if fact else None,
        "licence": fact.licence if fact else None,
        "serving": fact.serving if fact else "",
        "refusals": one.refusals,
        "unknown": one.unknown,
        "source": fact.basis.source if fact else "",
    }
