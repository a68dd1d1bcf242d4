"""`npuport perf compare`: what takes longer in one profile than in another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, MISUSE

if TYPE_CHECKING:
    from npuport.performance.comparing.comparison import Comparison, Item, Side
    from npuport.performance.tables import Profile

SCHEMA = "npuport-perf-compare/1"
_SHOWN = 8
_WORTH = 0.01  # of the candidate's step: items less above their share are not shown


def compare_profiles(reference: Path, candidate: Path, *, as_json: bool) -> int:
    """Compare two profiles; the exit code."""
    from npuport.cli.perf_analyze import name_problems
    from npuport.performance.comparing.comparison import compare

    sides = _profile(reference), _profile(candidate)
    comparison = compare(*sides)
    if as_json:
        print(json.dumps(_as_json(comparison), ensure_ascii=False, indent=2))
    else:
        print("\n".join(_as_text(comparison)))
    problems = [problem for side in sides for problem in side.problems]
    name_problems(problems)
    if problems:
        return MISUSE
    items = (*comparison.by_module, *comparison.by_operator)
    return FINDINGS if any(_is_worth(one, comparison) for one in items) else CLEAN


def _profile(path: Path) -> Profile:
    """The profile under a path; of several the one with the lowest rank."""
    from npuport.performance.reading.discover import profiles_under

    profiles = (read(one) for one, read in profiles_under([path]))
    return min(profiles, key=lambda one: (one.rank is None, one.rank or 0))


def _is_worth(item: Item, comparison: Comparison) -> bool:
    return comparison.ratio > 0 and item.excess(comparison.ratio) >= _WORTH * comparison.candidate.step_ns


def _as_text(comparison: Comparison) -> Iterator[str]:
    from npuport.report.language import translate

    reference, candidate = comparison.reference, comparison.candidate
    yield translate("reference") + "  " + _title(reference)
    yield translate("candidate") + "  " + _title(candidate)
    if comparison.ratio and reference.step_ns:
        yield translate(
            "a step takes {ratio} x as long, its kernels {kernels} x",
            ratio=f"{candidate.step_ns / reference.step_ns:.2f}",
            kernels=f"{comparison.ratio:.2f}",
        )
    else:
        yield translate("the reference holds no kernels: parts of the step alone are compared")
    yield from _parts(reference, candidate)
    if comparison.grown:
        grown = (f"{translate(part.value)} +{_ms(time)} ms" for part, time in comparison.grown[:3])
        yield translate("grown most: {parts}", parts=", ".join(grown))
    if not comparison.by_module:
        yield translate("modules are not in both profiles: record both with stacks")
    yield from _items(translate("above their share, by module:"), comparison.by_module, comparison)
    yield from _items(translate("above their share, by operator:"), comparison.by_operator, comparison)
    if not any(_is_worth(one, comparison) for one in (*comparison.by_module, *comparison.by_operator)):
        yield translate("nothing takes more than its share")


def _title(side: Side) -> str:
    from npuport.report.language import counted, translate
    from npuport.report.text import printable

    name = f"{printable(side.profile.path.name)} · {side.profile.device.upper()} · {counted(side.steps, 'step')}"
    return f"{name} · {translate('step {time} ms', time=_ms(side.step_ns))}"


def _parts(reference: Side, candidate: Side) -> Iterator[str]:
    from npuport.performance.step_split import Part
    from npuport.report.language import translate

    for part in Part:
        before, after = reference.parts.get(part, 0), candidate.parts.get(part, 0)
        if before or after:
            ratio = f"{after / before:.2f} x" if before else ""
            yield f"  {_ms(before):>10} {_ms(after):>10} ms  {ratio:>8}  {translate(part.value)}"


def _items(title: str, items: Sequence[Item], comparison: Comparison) -> Iterator[str]:
    from npuport.report.language import translate
    from npuport.report.text import printable

    worth = [one for one in items if _is_worth(one, comparison)][:_SHOWN]
    if worth:
        yield title
    for one in worth:
        ratio = f"{one.ratio:.2f} x" if one.ratio is not None else translate("not in the reference")
        excess = translate("+{excess} ms above its share", excess=_ms(one.excess(comparison.ratio)))
        times = f"{_ms(one.reference_ns or 0):>10} {_ms(one.candidate_ns or 0):>10} ms  {ratio:>8}"
        yield f"  {times}  {printable(one.name)} ({translate(one.phase)}): {excess} · {one.limit}"


def _ms(time: int) -> str:
    return f"{time / 1e6:,.2f}"


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "reference": _side(comparison.reference),
        "candidate": _side(comparison.candidate),
        "kernel_ratio": comparison.ratio,
        "modules": [_item(one, comparison) for one in comparison.by_module],
        "operators": [_item(one, comparison) for one in comparison.by_operator],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "path": str(side.profile.path),
        "device": side.profile.device,
        "steps": side.steps,
        "step_ms": side.step_ns / 1e6,
        "parts_ms": {part.value: time / 1e6 for part, time in side.parts.items()},
    }


def _item(item: Item, comparison: Comparison) -> dict[str, Any]:
    return {
        "name": item.name,
        "phase": item.phase,
        "reference_ms": None if item.reference_ns is None else item.reference_ns / 1e6,
        "candidate_ms": None if item.candidate_ns is None else item.candidate_ns / 1e6,
        "ratio": item.ratio,
        "excess_ms": item.excess(comparison.ratio) / 1e6,
        "kernels": list(item.kernels),
        "limit": item.limit,
    }
