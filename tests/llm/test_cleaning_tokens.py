"""Words and runs of words of any language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("datatrove")
np = pytest.importorskip("numpy")

from npuport.llm.cleaning.tokens import WordsOrPairs, grams, hashed_words, is_unspaced, words  # noqa: E402


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, it's 3.5!", ["don", "t", "stop", "it", "s", "3", "5"]),
        ("GROSSE Straße", ["grosse", "strasse"]),
        ("数据abc清洗", ["数", "据", "abc", "清", "洗"]),
        ("नदी के किनारे", ["नदी", "के", "किनारे"]),
        ("السَّلام عليكم", ["السَّلام", "عليكم"]),
        ("カタカナ", ["カ", "タ", "カ", "ナ"]),
    ],
)
def test_words_of_writings_with_and_without_spaces(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_pairs_stand_for_words_where_there_are_no_spaces() -> None:
    assert WordsOrPairs().word_tokenize("数据清洗，ok好") == ["数据", "清洗", "ok", "好"]
    assert is_unspaced("数")
    assert not is_unspaced("a")


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(1, 30))
def test_runs_of_words_are_equal_when_their_hashes_are(letters: list[str], size: int) -> None:
    hashes = grams(hashed_words(" ".join(letters)), size).tolist()
    runs = [tuple(letters[at : at + size]) for at in range(len(letters) - size + 1)]
    assert len(hashes) == len(runs)
    assert len(set(zip(runs, hashes, strict=True))) == len(set(runs)) == len(set(hashes))


def test_hashes_are_the_same_in_every_process() -> None:
    assert hashed_words("the same words")[:2].tolist() == [3_331_141_520_948_189_790, 2_120_842_793_060_051_129]
