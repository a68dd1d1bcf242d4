"""What `npuport precision check-ops` says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, progress
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.precision.checking.calls import CallCheck
    from npuport.precision.checking.judging import ResultCheck
    from npuport.precision.operators.calls import Call, Step

_SHOWN = 10


@dataclass
class _Checked:
    """What became of one step of one rank."""

    step: Step
    counts: Counter[str] = field(default_factory=Counter)
    open: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # calls that were not judged, by reason and operator
    failures: list[tuple[CallCheck, Path | None]] = field(default_factory=list)


def check_folder(
    dump: Path, only: str, device: str, reference: Path | None, repro: Path | None, as_json: bool
) -> int:  # fmt: skip
    """Check the calls of every step of a folder, or of one file; the exit code."""
    if device:
        _require(device)
    files = _files(dump)
    others = {} if reference is None else _files(reference)
    if reference is not None and not files.keys() & others.keys():
        raise UserError(
            "{reference} and {candidate} have no recorded step in common.", reference=reference, candidate=dump
        )
    checked = []
    for key, path in files.items():
        step = _read(path)
        if repro is not None and step.has_apis:
            raise UserError(
                "--repro writes scripts of operators, and {path} has calls of APIs: leave it out.", path=path
            )
        if not step.has_tensors and not device:
            raise UserError(
                "{path} holds statistics only: give --device, and each call is executed there with values generated in "
                "the recorded range.",
                path=path,
            )
        other = _read(others[key]) if key in others else None
        checked.append(_check(step, only, device, other, repro))
    if not any(one.counts for one in checked):
        raise UserError("{path} has no call that --only {pattern} means.", path=dump, pattern=only)
    if as_json:
        print(json.dumps([_as_json(one) for one in checked], ensure_ascii=False, indent=2))
    else:
        print("\n".join(line for one in checked for line in _as_text(one)))
    return FINDINGS if any(one.failures for one in checked) else CLEAN


def _files(dump: Path) -> dict[tuple[int, int], Path]:
    """The steps of a dump, ours or msprobe's, by step and rank."""
    from npuport.precision.dumps import steps_in

    if dump.is_file() and dump.suffix != ".json":
        return {(0, 0): dump}
    return dict(sorted(steps_in(dump).items()))


def _read(path: Path) -> Step:
    if path.suffix != ".json":
        from npuport.precision.operators.calls import read_step

        return read_step(path)
    from npuport.precision.msprobe.steps import read_api_calls

    return read_api_calls(path)


def _require(device: str) -> None:
    import torch

    try:
        if device.partition(":")[0] == "npu":
            import torch_npu  # noqa: F401
        torch.ones(1, device=device)
    except (RuntimeError, AssertionError, ImportError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError("nothing can be executed on {device} here: {reason}", device=device, reason=reason) from error


def _check(step: Step, only: str, device: str, reference: Step | None, repro: Path | None) -> _Checked:
    from npuport.precision.checking.calls import check_call, is_chosen, plain_name
    from npuport.precision.checking.generating import generated
    from npuport.precision.checking.reproduction import write_reproduction
    from npuport.report.language import translate

    pairs = _same_calls(reference, step)
    done = _Checked(step)
    with progress(len(step.calls), translate("checking")) as advance:
        for call in step.calls:
            if is_chosen(call, only):
                same = pairs.get(call.index)
                one = check_call(call, step, device, (same, reference) if same is not None and reference else None)
                done.counts[one.status] += 1
                if one.reason is not None:
                    done.open[translate(one.reason.template, **one.reason.values), plain_name(call.operator)] += 1
                if one.status == "fail":
                    whole = step if step.has_tensors else generated(call, step)
                    script = write_reproduction(repro, one, whole, not step.has_tensors) if repro else None
                    done.failures.append((one, script))
            if advance is not None:
                advance(1)
    return done


def _same_calls(reference: Step | None, step: Step) -> dict[int, Call]:
    """The reference's call for the index of each call that has one."""
    from npuport.precision.operators.alignment import align

    if reference is None:
        return {}
    return {candidate.index: same for same, candidate in align(reference, step).pairs}


def _as_text(one: _Checked) -> Iterator[str]:
    from npuport.report.language import counted, translate

    name = translate("step {step}, rank {rank} ({device})", step=one.step.step, rank=one.step.rank,
                     device=one.step.device)  # fmt: skip
    numbers = translate(
        "{right} right, {wrong} wrong, {open} not judged",
        right=one.counts["pass"], wrong=one.counts["fail"], open=one.counts["not judged"],
    )  # fmt: skip
    yield f"{name}: {counted(sum(one.counts.values()), 'operator call')}: {numbers}"
    for reason, names in _open_by_reason(one.open):
        told = [name if number == 1 else f"{name} ({number})" for name, number in names.most_common()]
        yield f"  · {names.total()}  {reason}: {', '.join(told)}"
    for number, (check, script) in enumerate(one.failures[:_SHOWN], 1):
        yield from _failure(number, check, script)
    if len(one.failures) > _SHOWN:
        yield "  … " + counted(len(one.failures) - _SHOWN, "more wrong call")


def _open_by_reason(open: Counter[tuple[str, str]]) -> list[tuple[str, Counter[str]]]:
    """For each reason how many calls of which operators were not judged, the most frequent reason first."""
    found: dict[str, Counter[str]] = {}
    for (reason, name), number in open.items():
        found.setdefault(reason, Counter())[name] = number
    return sorted(found.items(), key=lambda pair: -pair[1].total())


def _failure(number: int, check: CallCheck, script: Path | None) -> Iterator[str]:
    from npuport.report.language import translate

    call = check.call
    place = f"{call.module} · " if call.module else ""
    line = f"      {call.line}" if call.line else ""
    yield f"  {number}  {place}{call.operator} ({call.phase}){line}"
    for which, results in (("", check.results), (translate("executed again: "), check.again)):
        for one in results:
            if not one.holds and one.text is not None:
                what = translate("result {number}, {dtype} {shape}", number=one.position, dtype=one.dtype,
                                 shape=list(one.shape))  # fmt: skip
                yield f"     {which}{what}: {translate(one.text.template, **one.text.values)}"
    if check.again and all(one.holds for one in check.again):
        yield "     " + translate("executed again it is right: the fault is not in the operator alone (memory, order)")
    if script is not None:
        yield f"     {script}"


def _as_json(one: _Checked) -> dict[str, Any]:
    return {
        "version": 1,
        "step": one.step.step,
        "rank": one.step.rank,
        "device": one.step.device,
        "right": one.counts["pass"],
        "wrong": one.counts["fail"],
        "not_judged": one.counts["not judged"],
        "reasons": {reason: names.total() for reason, names in _open_by_reason(one.open)},
        "not_judged_operators": [
            {"operator": name, "reason": reason, "calls": number} for (reason, name), number in one.open.items()
        ],
        "failures": [
            {
                "operator": check.call.operator,
                "module": check.call.module,
                "phase": check.call.phase,
                "line": check.call.line or None,
                "index": check.call.index,
                "results": [_result(result) for result in check.results],
                "again": [_result(result) for result in check.again],
                "is_repeated": check.is_repeated,
                "reproduction": str(script) if script is not None else None,
            }
            for check, script in one.failures
        ],
    }


def _result(one: ResultCheck) -> dict[str, Any]:
    return {
        "position": one.position,
        "dtype": one.dtype,
        "shape": list(one.shape),
        "holds": one.holds,
        "error": _number(one.relative),
        "allowed": _number(one.limit),
        "times": _number(one.times),
        "text": str(one.text) if one.text is not None else None,
    }


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if abs(value) < float("inf") else None
