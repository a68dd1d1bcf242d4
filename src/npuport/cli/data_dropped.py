"""`npuport data dropped`: what cleaning dropped, for a person to look at."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npuport.errors import UserError

_SHOWN = 300  # characters of a text


def show(folder: Path, *, reason: str, first: int, number: int, as_json: bool) -> None:
    """Print counts by reason, and records ``first``, ``first + 1``, … of one reason or of all."""
    from npuport.cli.data_clean import REASONS
    from npuport.report.language import translate
    from npuport.report.text import printable

    report = _report(folder)
    if reason and reason not in REASONS:
        raise UserError(
            "nothing is dropped for {reason}. Reasons are {known}.", reason=reason, known=", ".join(REASONS)
        )
    field = report["settings"]["text"]
    found = (line for line in _lines(folder) if not reason or line["reason"] == reason)
    chosen = itertools.islice(found, first, first + number)
    if as_json:
        for line in chosen:
            print(json.dumps(line, ensure_ascii=False))
        return
    for name, count in report["reasons"].items():
        if not reason or name == reason:
            print(f"{name:<15} {count:>12,}  {translate(REASONS[name].template)}")
    for line in chosen:
        print(f"\n{printable(line['place'])}  {_why(line)}")
        text = line["record"].get(field) if "record" in line else line["line"]
        shown = printable(str(text).replace("\n", " "))
        print(f"  {shown[:_SHOWN]}{' …' if len(shown) > _SHOWN else ''}")


def _report(folder: Path) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError("{path} is no folder that npuport data clean completed.", path=folder) from error
    if "reasons" not in report:
        raise UserError("{path} is no folder that npuport data clean completed.", path=folder)
    return report


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((folder / "dropped").glob("*.jsonl")):
        with path.open(encoding="utf-8") as stream:
            yield from map(json.loads, stream)


def _why(line: dict[str, Any]) -> str:
    """The reason, with what was measured and found."""
    from npuport.report.language import translate
    from npuport.report.text import printable

    said = str(line["reason"])
    if "measured" in line:
        said += " " + translate(
            "{measured} (limit {limit})", measured=f"{line['measured']:g}", limit=f"{line['limit']:g}"
        )
    if "of" in line:
        said += " " + translate("of {place}", place=printable(line["of"]))
    if line.get("piece"):
        said += f": {printable(line['piece'])}"
    return said
