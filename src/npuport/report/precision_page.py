"""Two runs compared, as one HTML page that needs nothing else: verdict, suspects, the model in colours, every call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from npuport import __version__
from npuport.report.language import counted, language, translate
from npuport.report.pages import template

_WIDTH, _HEIGHT = 320, 96


def precision_page(
    names: tuple[str, str],
    steps: Sequence[Mapping[str, Any]],
    shown: Mapping[str, Any],
    grid: Mapping[int, Mapping[int, int]],
    calls: Mapping[str, Any],
    pictures: Sequence[Mapping[str, Any] | None],
) -> str:
    """The page, in the user's language.

    ``steps``: what `--json` prints; ``shown``: the one of them whose calls are on the page, with its sentences in the
    user's language; ``grid``: suspects by rank and step; ``calls``: the calls as columns; ``pictures``: histograms of
    the first suspects, or None.
    """
    data = {"calls": calls, "words": _words(), "steps": steps}
    # "<" would let a string of the document end the element that holds it.
    embedded = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return template("precision.html.j2").render(
        names=names,
        shown=shown,
        grid=grid,
        columns=sorted({step for row in grid.values() for step in row}),
        pictures=[_picture(one) for one in pictures],
        width=_WIDTH,
        height=_HEIGHT,
        words=_words(),
        embedded=embedded,
        version=__version__,
        t=translate,
        counted=counted,
        language=language(),
    )


def _words() -> dict[str, str]:
    """Words that the page's script needs, too."""
    return {
        "forward": translate("forward"),
        "backward": translate("backward"),
        "optimizer": translate("optimizer"),
        "calls": translate("calls"),
        "no module": translate("no module"),
    }


def _picture(histograms: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Histograms with the bars of each as the points of an SVG path."""
    if histograms is None:
        return None
    most = max(*histograms["reference"]["counts"], *histograms["candidate"]["counts"], 1)
    return {
        **histograms,
        "reference_path": _steps(histograms["reference"]["counts"], most),
        "candidate_path": _steps(histograms["candidate"]["counts"], most),
        "difference_path": _steps(histograms["difference"]["counts"], max(*histograms["difference"]["counts"], 1)),
    }


def _steps(counts: Sequence[int], most: int) -> str:
    """The outline of bars, as an SVG path from the left to the right end of the floor. The height is the root of the
    count, so that single values are seen beside thousands."""
    width = _WIDTH / len(counts)
    path = [f"M0 {_HEIGHT}"]
    for place, count in enumerate(counts):
        y = _HEIGHT - (count / most) ** 0.5 * (_HEIGHT - 4)
        path.append(f"L{place * width:.0f} {y:.0f}L{(place + 1) * width:.0f} {y:.0f}")
    return "".join([*path, f"L{_WIDTH} {_HEIGHT}Z"])
