"""What asks for no edit is said once, with all its places."""

from __future__ import annotations

from npuport.analysis import fold
from npuport.findings import Applicability, Edit, Finding, Fix, Location, Severity


def finding(path: str, line: int, message: str = "m", code: str = "NP901", **options: object) -> Finding:
    severity = options.pop("severity", Severity.INFO)
    assert isinstance(severity, Severity)
    return Finding(code, "a-word", severity, Location(path, line, 1, line, 2), message, **options)  # type: ignore[arg-type]


def test_the_same_words_are_said_once() -> None:
    found = [finding("a.py", 1), finding("a.py", 5), finding("b.py", 2), finding("b.py", 3, "other")]
    first, other = fold(found)
    assert first.message == "m (and at 2 more places in 2 files)"
    assert first.evidence["places"] == ["a.py:5", "b.py:2"]
    assert first.location == found[0].location
    assert other == found[3]


def test_words_that_differ_in_the_name_they_are_about_are_the_same() -> None:
    found = [
        finding("a.py", line, f"{word} is a name that no rule knows", "NP902", evidence={"word": word})
        for line, word in enumerate(("use_cuda", "cuda_ok"), 1)
    ]
    (folded,) = fold(found)
    assert folded.message == "use_cuda is a name that no rule knows (and at 1 more place)"


def test_the_gravest_of_one_library_stands_for_all() -> None:
    mild = finding("a.py", 1, "install it", "NP702")
    grave = finding("b.py", 9, "install it", "NP702", severity=Severity.WARNING)
    (folded,) = fold([mild, grave])
    assert (folded.severity, folded.location.path) == (Severity.WARNING, "b.py")
    assert folded.evidence["places"] == ["a.py:1"]


def test_what_asks_for_an_edit_stays() -> None:
    fix = Fix((Edit(0, 1, ""),), Applicability.UNSAFE)
    found = [
        finding("a.py", 1, severity=Severity.ERROR, code="NP701"),
        finding("a.py", 2, severity=Severity.ERROR, code="NP701"),
        finding("a.py", 3, severity=Severity.WARNING, code="NP401"),
        finding("a.py", 4, severity=Severity.WARNING, code="NP401"),
        finding("a.py", 5, fix=fix),
        finding("a.py", 6, fix=fix),
    ]
    assert fold(found) == tuple(found)
