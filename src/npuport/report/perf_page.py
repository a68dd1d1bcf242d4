"""Where the time of training steps goes, as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from npuport import __version__
from npuport.report.language import counted, language, translate
from npuport.report.pages import template


def perf_page(
    ranks: Sequence[Mapping[str, Any]], parts: Sequence[Mapping[str, str]], problems: Sequence[tuple[str, str]]
) -> str:
    """The page, in the user's language.

    ``ranks``: for each profile its title, steps, findings with their sentences in the user's language, and (for the
    first ones) the details that npuport.performance.page_data makes. ``parts``: ``key``, ``name`` and ``group`` of the
    parts of a step, in the order of the bars. ``problems``: (file, why it could not be read). Times in nanoseconds.
    """
    data = {"ranks": ranks, "parts": parts, "words": _words()}
    # "<" would let a string of the document end the element that holds it.
    embedded = json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return template("perf.html.j2").render(
        ranks=ranks,
        detailed=sum(1 for one in ranks if one["details"] is not None),
        problems=problems,
        embedded=embedded,
        version=__version__,
        t=translate,
        counted=counted,
        language=language(),
    )


def _words() -> dict[str, str]:
    """Words that the page's script needs."""
    return {
        "step": translate("step"),
        "all": translate("all"),
        "average": translate("average step"),
        "computing": translate("computing"),
        "communication": translate("communication"),
        "hidden": translate("behind computing"),
        "idle": translate("idle"),
        "atMost": translate("at most {share} of the step", share="{share}"),
        "together": translate("all findings together"),
        "gain": translate("up to -{time} ms", time="{time}"),
        "costs": translate("costs {time} ms", time="{time}"),
        "confidence": translate("confidence"),
        "high": translate("high"),
        "medium": translate("medium"),
        "low": translate("low"),
        "same": translate("explains the same time as {others}: do not add up their gains", others="{others}"),
        "evidence": translate("evidence"),
        "check": translate("To check"),
        "show": translate("show in the timeline"),
        "none": translate("Nothing that is worth a look was found."),
        "smaller": translate("not shown, below 1 % of the step: {number}", number="{number}"),
        "finding": translate("finding"),
        "kernels": translate("kernels"),
        "count": translate("times in a step"),
        "host": translate("host"),
        "device": translate("device"),
        "longest": translate("longest"),
        "coarse": translate("drawn in bins of {time}: each shows what fills most of it", time="{time}"),
        "peak": translate("peak"),
        "allocated": translate("allocated"),
        "reserved": translate("reserved"),
        "PTA": translate("PyTorch's allocator"),
        "APP": translate("the whole process"),
        "whole": translate("everything"),
        "training loop": translate("training loop"),
        "backward": translate("backward"),
        "other threads": translate("other threads"),
        "launch not recorded": translate("launch not recorded"),
        "without": translate("This rank's details are not on the page: analyse its path alone."),
    }
