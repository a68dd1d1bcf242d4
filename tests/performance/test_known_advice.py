"""The page about known advice says what its table says, and every code in it exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from npuport.facts import all_environment_checks, all_known_advice
from npuport.rules.registry import all_rules

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "performance-advice.md").read_text(encoding="utf-8")
WITHOUT_CODE = {"part": "in the report", "left out": "left out"}


def codes_in_profiles() -> set[str]:
    sources = (ROOT / "src" / "npuport" / "performance").rglob("*.py")
    return {code for path in sources for code in re.findall(r'"(NT\d{3})"', path.read_text(encoding="utf-8"))}


def test_every_code_exists() -> None:
    known = codes_in_profiles() | {rule.code for rule in all_rules()} | {one.code for one in all_environment_checks()}
    for one in all_known_advice():
        assert set(one.codes) <= known, one
        assert set(re.findall(r"\bN[TPD]\d{3}\b", one.note)) <= known, one


def test_each_has_a_code_or_a_reason() -> None:
    for one in all_known_advice():
        if one.outcome in WITHOUT_CODE:
            assert not one.codes and one.note, one
        else:
            first = {"finding": "NT", "source": "NP", "doctor": "ND"}[one.outcome]
            assert one.codes and one.codes[0].startswith(first), one


def test_the_page_holds_the_table() -> None:
    expected = [
        f"| {number} | {one.name} | {', '.join(one.codes) or WITHOUT_CODE[one.outcome]} | {one.note} | {source} |"
        for number, one in enumerate(all_known_advice(), 1)
        for source in [one.basis.source]
    ]
    assert [line for line in PAGE.splitlines() if re.match(r"\| \d", line)] == expected
    count = Counter(one.outcome for one in all_known_advice())
    said = (
        f"Of {count.total()}, {count['finding']} are found in profiles, {count['source']} in source, "
        f"{count['doctor']} by `npuport doctor`, {count['part']} are parts of a report, "
        f"and {count['left out']} are left out."
    )
    assert said in PAGE
