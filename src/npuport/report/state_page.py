"""A training over its steps, as one HTML page that needs nothing else: alerts, curves, the layers as maps."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from npuport import __version__
from npuport.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, points, range_of, ticks, x_of, y_of
from npuport.report.language import counted, language, translate
from npuport.report.pages import template


def state_page(
    name: str,
    ranks: Sequence[int],
    compared: int,
    optimizers: Sequence[Mapping[str, Any]],
    alerts: Sequence[Mapping[str, Any]],
    batches: Sequence[str],
) -> str:
    """The page, in the user's language.

    ``compared``: steps at which weights were compared between the ``ranks``. ``optimizers``: for each its ``heading``,
    ``curves`` and ``maps``, as npuport.precision.training_state.page_data makes them. ``alerts``: step, layer and
    sentence, the first ones first. ``batches``: lines about batches that were kept.
    """
    data = {"maps": [one["maps"] for one in optimizers], "alerts": alerts, "words": _words()}
    # "<" would let a string of the document end the element that holds it.
    embedded = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return template("state.html.j2").render(
        name=name,
        ranks=ranks,
        compared=compared,
        optimizers=[{**one, "charts": _charts(one["curves"], alerts)} for one in optimizers],
        alerts=alerts,
        batches=batches,
        embedded=embedded,
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - RIGHT,
        bottom=HEIGHT - BOTTOM,
        version=__version__,
        t=translate,
        counted=counted,
        language=language(),
    )


def _words() -> dict[str, str]:
    """Words that the page's script needs."""
    return {
        "gradient norm": translate("gradient norm"),
        "direction": translate("direction"),
        "update ratio": translate("update ratio"),
        "weight norm": translate("weight norm"),
        "step": translate("step {step}", step="{step}"),
        "steps": translate("steps {first} to {last}", first="{first}", last="{last}"),
        "not finite": translate("not finite"),
        "missing": translate("no value"),
    }


def _charts(curves: Sequence[Mapping[str, Any]], alerts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A chart for each group of curves, with the steps of alerts marked; steps are the same in all."""
    words = _curve_words()
    steps = [step for one in curves for step in one["steps"]]
    first, last = (min(steps), max(*steps, min(steps) + 1)) if steps else (0, 1)
    charts = []
    for group in dict.fromkeys(one["group"] for one in curves):
        members = [one for one in curves if one["group"] == group]
        values = [value for one in members for value in one["values"]]
        is_wide = _is_wide(values)
        scaled = [
            [_log(value) if is_wide else value for value in one["values"]] for one in members
        ]  # over decades a logarithm shows more
        low, high = range_of([value for one in scaled for value in one])
        charts.append(
            {
                "name": words[group],
                "log": is_wide,
                "lines": [
                    {
                        "name": words.get(one["name"], one["name"]),
                        "path": points(one["steps"], row, first, last, low, high),
                        "broken": sum(not math.isfinite(value) for value in one["values"]),
                    }
                    for one, row in zip(members, scaled, strict=True)
                ],
                "up": [(y_of(at, low, high), _label(10**at if is_wide else at)) for at in ticks(low, high)],
                "across": [(x_of(at, first, last), f"{at:,.0f}") for at in ticks(first, last)],
                "marks": sorted({x_of(one["step"], first, last) for one in alerts if first <= one["step"] <= last}),
            }
        )
    return charts


def _label(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _is_wide(values: Sequence[float]) -> bool:
    known = [value for value in values if math.isfinite(value)]
    return bool(known) and min(known) > 0 and max(known) > 100 * min(known)


def _log(value: float) -> float:
    return math.log10(value) if math.isfinite(value) and value > 0 else math.nan


def _curve_words() -> dict[str, str]:
    """What curves and their charts are called; "group 1" is told as it is."""
    return {
        "loss": translate("loss"),
        "gradient norm": translate("gradient norm"),
        "learning rate": translate("learning rate"),
        "loss scale": translate("loss scale"),
        "before clipping": translate("before clipping"),
        "of the step": translate("of the step"),
    }
