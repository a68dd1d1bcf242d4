"""`npuport data inspect`: packed samples for a person to look at."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    from rich.text import Text

    from npuport.llm.packing.looking import Segment


def show(path: Path, *, first: int, number: int, tokenizer: str) -> None:
    """Print samples ``first``, ``first + 1``, …; tokens as ids, or as the tokenizer's text."""
    from npuport.cli.data_pack import needs_packages

    needs_packages()
    from rich.console import Console

    from npuport.llm.packing.looking import samples_in
    from npuport.report.language import translate

    words = _words(tokenizer)
    console = Console(highlight=False, soft_wrap=True)
    last = -1
    for last, segments in enumerate(itertools.islice(samples_in(path), first + number)):
        if last < first:
            continue
        console.print(translate("sample {number}", number=last), style="bold")
        for place, segment in enumerate(segments, 1):
            console.print("  " + _about(segment, place), style="dim" if segment.padding else "")
            if not segment.padding:
                console.print(_marked(segment, words, colour=console.is_terminal))
    if last < first:
        raise UserError("there is no sample {number}: the last is {last}.", number=first, last=last)
    if not console.is_terminal:
        console.print(translate("In the loss: [like this]."), markup=False)


def _words(tokenizer: str) -> Callable[[Sequence[int]], str]:
    if not tokenizer:
        return lambda ids: " ".join(map(str, ids))
    from npuport.llm.packing.encoding import load_tokenizer

    loaded: Any = load_tokenizer(tokenizer)

    def decode(ids: Sequence[int]) -> str:
        text: str = loaded.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    return decode


def _about(segment: Segment, place: int) -> str:
    from npuport.report.language import translate

    if segment.padding:
        name = translate("padding")
    elif segment.record < 0:
        name = translate("sequence {number}", number=place)
    else:
        name = translate("sequence {number}, record {record}", number=place, record=segment.record)
    parts = [name, translate("tokens {begin}-{end}", begin=segment.begin, end=segment.end - 1)]
    if segment.positions is not None:
        parts.append(translate("positions {first}-{last}", first=segment.positions[0], last=segment.positions[1]))
    parts.append(translate("{number} in the loss", number=sum(segment.learned)))
    return " · ".join(parts)


def _marked(segment: Segment, words: Callable[[Sequence[int]], str], *, colour: bool) -> Text:
    """Runs of tokens that the loss counts are green, or in brackets where there are no colours."""
    from rich.text import Text

    from npuport.report.text import printable

    line = Text("    ")
    together = zip(segment.learned, segment.tokens, strict=True)
    for learned, run in itertools.groupby(together, key=lambda pair: pair[0]):
        text = printable(words([token for _, token in run]))
        line.append(f"[{text}]" if learned and not colour else text, style="green" if learned else "")
        line.append(" ")
    line.rstrip()
    return line
