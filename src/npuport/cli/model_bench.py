"""`npuport model bench`: options to chats, and their times as a table or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.llm.devices import Device
    from npuport.llm.generation.chat import Frame
    from npuport.llm.generation.figures import CaseTimes, Judgement, Need
    from npuport.llm.generation.measuring import Chats
    from npuport.llm.loading import Loaded

SCHEMA = "npuport-generation/1"
_GIB = 1024**3
_HEADINGS = "batch", "turn", "context", "first ms", "p95", "afresh ms", "token ms", "p99", "tok/s", "all tok/s", "GiB"


@dataclass(frozen=True)
class Options:
    """The command's options as they were given."""

    device: str
    dtype: str
    random_weights: bool
    own_code: bool
    batches: str
    contexts: str
    turns: int
    message: int
    answer: int
    warm_ups: int
    repeats: int
    need: float | None
    need_first: str


def bench_folder(path: Path, options: Options, *, as_json: bool) -> None:
    """Measure the chats, print their times, and end with 1 where the need is not met.

    Raises:
        UserError: an option, the folder or the device is not as it must be.
    """
    from npuport.cli.shared import FINDINGS, talk
    from npuport.llm.devices import chosen_device
    from npuport.llm.generation.chat import frame_of
    from npuport.llm.generation.figures import Need, judged
    from npuport.llm.generation.measuring import Chats, measure
    from npuport.llm.loading import load
    from npuport.report.language import translate

    chats = Chats(
        numbers("--batch", options.batches),
        numbers("--context", options.contexts),
        options.turns,
        options.message,
        options.answer,
        options.warm_ups,
        options.repeats,
    )
    need = Need(options.need, seconds(options.need_first) if options.need_first else None)

    def said(batch: int, context: int) -> None:
        talk("npuport: " + translate("measuring batch {batch}, context {context}", batch=batch, context=context))

    with chosen_device(options.device) as device:
        if device.simulated and need != Need(None, None):
            raise UserError(
                "times on the simulated NPU are not those of hardware, so they meet or miss no need: leave out --need "
                "and --need-first."
            )
        loaded = load(path, device, options.dtype, random_weights=options.random_weights, own_code=options.own_code)
        frame = frame_of(loaded.tokenizer)
        cases = list(measure(loaded, device, chats, frame, said))
        judgements = judged(cases, need)
        if as_json:
            print(document(path, loaded, device, frame, chats, cases, need, judgements))
        else:
            print("\n".join(in_words(loaded, device, frame, chats, cases, judgements)))
    if not all(one.met for one in judgements) or all(one.out_of_memory for one in cases):
        raise SystemExit(FINDINGS)


def numbers(option: str, given: str) -> tuple[int, ...]:
    """Positive whole numbers such as "1,4,16".

    Raises:
        UserError: something else is given.
    """
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UserError("{option} takes numbers such as 1,4,16, not {given}.", option=option, given=given)
    return tuple(int(part) for part in parts)


def seconds(given: str) -> float:
    """Seconds of a time such as "200ms" or "1.5s".

    Raises:
        UserError: something else is given.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s)", given.strip())
    if found is None:
        raise UserError("--need-first takes a time such as 200ms or 1.5s, not {given}.", given=given)
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


def in_words(
    loaded: Loaded,
    device: Device,
    frame: Frame,
    chats: Chats,
    cases: Sequence[CaseTimes],
    judgements: Sequence[Judgement],
) -> Iterator[str]:
    """The lines for a person: a table with a row for each turn, and the verdict."""
    from npuport.report.language import translate

    yield translate(
        "{parameters} parameters in {dtype} on {device}",
        parameters=f"{loaded.parameters:,}",
        dtype=loaded.dtype,
        device=" ".join(part for part in (device.name, device.model) if part),
    )
    if loaded.random_weights:
        yield translate("The weights are random: speed and memory are as with trained ones, answers are not.")
    if device.simulated:
        yield translate(
            "CPU kernels stand in for the NPU: THE TIMES ARE NOT THOSE OF HARDWARE; memory is as torch_npu allocates."
        )
    if frame.templated:
        yield translate("Messages stand in the model's chat template.")
    yield ""
    yield _row(*_HEADINGS)
    for case in cases:
        if case.out_of_memory:
            yield f"{case.batch:>5} {'':>4} {case.context:>7}  " + translate("out of memory")
            continue
        yield from _rows(case, chats.turns)
    yield ""
    yield translate(
        "first: to the first token with earlier turns kept in the cache; afresh: with the whole context computed; "
        "token: each further one; tok/s: of one chat, and of all at once. Medians, and percentiles of {chats} chats.",
        chats=chats.repeats,
    )
    if judgements:
        yield ""
        yield from _verdict(judgements)


def _rows(case: CaseTimes, turns: int) -> Iterator[str]:
    from npuport.llm.generation.figures import percentile, tokens_per_second

    for number in range(1, turns + 1):
        found = case.of_turn(number)
        first, afresh = [one.first for one in found], [one.first_afresh for one in found]
        later = [time for one in found for time in one.later]
        rate = tokens_per_second(later)
        yield _row(
            case.batch,
            number,
            found[0].context,
            _ms(percentile(first, 0.5)),
            _ms(percentile(first, 0.95)),
            _ms(percentile(afresh, 0.5)),
            _ms(percentile(later, 0.5)),
            _ms(percentile(later, 0.99)),
            f"{rate:,.1f}",
            f"{rate * case.batch:,.1f}",
            f"{case.peak_bytes / _GIB:.2f}",
        )


def _row(*cells: object) -> str:
    widths = (5, 4, 7, 9, 9, 9, 9, 9, 8, 9, 7)
    return " ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _ms(time: float) -> str:
    return f"{time * 1000:,.2f}"


def _verdict(judgements: Sequence[Judgement]) -> Iterator[str]:
    from npuport.report.language import translate

    for one in judgements:
        where = {"batch": one.batch, "context": one.context}
        if one.what == "tokens/s":
            what = translate(
                "batch {batch}, context {context}: {measured} tokens/s of each chat, needed {wanted}",
                measured="-" if one.measured is None else f"{one.measured:,.1f}",
                wanted=f"{one.wanted:,.1f}",
                **where,
            )
        else:
            what = translate(
                "batch {batch}, context {context}: first token in {measured} ms (95th percentile), allowed {wanted} ms",
                measured="-" if one.measured is None else _ms(one.measured),
                wanted=_ms(one.wanted),
                **where,
            )
        yield (translate("met") if one.met else translate("NOT MET")) + ": " + what


def document(
    path: Path,
    loaded: Loaded,
    device: Device,
    frame: Frame,
    chats: Chats,
    cases: Sequence[CaseTimes],
    need: Need,
    judgements: Sequence[Judgement],
) -> str:
    """The JSON document (schemas/npuport-generation-1.json); times in seconds, memory in bytes."""
    found = {
        "schema": SCHEMA,
        "model": {
            "path": str(path),
            "type": loaded.model.config.model_type,
            "parameters": loaded.parameters,
            "dtype": loaded.dtype,
            "random_weights": loaded.random_weights,
            "chat_template": frame.templated,
        },
        "device": {"name": device.name, "model": device.model, "simulated": device.simulated},
        "times_are_of_hardware": not device.simulated,
        "chats": {name: value for name, value in asdict(chats).items() if name not in ("batches", "contexts")},
        "cases": [_case(one, chats.turns) for one in cases],
        "need": asdict(need),
        "judgements": [asdict(one) for one in judgements],
        "met": all(one.met for one in judgements) if judgements else None,
    }
    return json.dumps(found, indent=2)


def _case(case: CaseTimes, turns: int) -> dict[str, Any]:
    from npuport.llm.generation.figures import tokens_per_second

    numbered = range(1, turns + 1) if case.turns else ()
    rate = None if case.out_of_memory else tokens_per_second(case.later)
    return {
        "batch": case.batch,
        "context": case.context,
        "failure": "out of memory" if case.out_of_memory else None,
        "peak_bytes": None if case.out_of_memory else case.peak_bytes,
        "tokens_per_second": rate,
        "tokens_per_second_of_all": None if rate is None else rate * case.batch,
        "turns": [_turn(case, number) for number in numbered],
    }


def _turn(case: CaseTimes, number: int) -> dict[str, Any]:
    found = case.of_turn(number)
    later = [time for one in found for time in one.later]
    return {
        "turn": number,
        "context": found[0].context,
        "computed": found[0].computed,
        "first_token": _percentiles([one.first for one in found]),
        "first_token_afresh": _percentiles([one.first_afresh for one in found]),
        "each_token": _percentiles(later),
    }


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    from npuport.llm.generation.figures import percentile

    return {name: percentile(times, share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
