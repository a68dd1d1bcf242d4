"""Packing: nothing is lost, nothing is learned that should not be, and no dialogue sees another."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from npuport.llm.packing import dialogues, documents  # noqa: E402
from npuport.llm.packing.fitting import best_fit  # noqa: E402
from npuport.llm.packing.ragged import Ragged, ragged  # noqa: E402
from npuport.llm.packing.samples import IGNORED, Samples  # noqa: E402

PAD = 9_999


def numbered(masks: list[list[bool]]) -> Ragged:
    """Records in which every token of all is another number, so that a lost or doubled one shows."""
    following = iter(range(sum(map(len, masks))))
    return ragged([[next(following) for _ in mask] for mask in masks], masks)


RECORDS = st.lists(st.lists(st.booleans(), max_size=40), max_size=30).map(numbered)
LENGTHS = st.integers(2, 24)


def segments(samples: Samples) -> list[tuple[int, int, int, int]]:
    """(sample, begin, end, record) by the attention bounds, padding as record -1."""
    found = []
    for sample in range(len(samples)):
        begin = 0
        for place in range(samples.ends_offsets[sample], samples.ends_offsets[sample + 1]):
            found.append((sample, begin, int(samples.ends[place]), int(samples.records[place])))
            begin = int(samples.ends[place])
    return found


@given(records=RECORDS, max_length=LENGTHS, too_long=st.sampled_from(["split", "cut", "skip"]))
@settings(deadline=None, max_examples=200)
def test_every_token_of_a_dialogue_is_in_one_sample_or_counted_as_cut(
    records: Ragged, max_length: int, too_long: str
) -> None:
    fitted = dialogues.fit(records, max_length, too_long)
    samples = dialogues.pack(fitted.pieces, max_length, PAD)
    packed = samples.input_ids[samples.sequence_ids > 0]
    assert len(set(packed.tolist())) == len(packed)
    assert len(packed) + fitted.cut_tokens == len(records.tokens)
    lengths = records.lengths
    assert fitted.too_long.tolist() == np.flatnonzero(lengths > max_length).tolist()
    assert fitted.empty.tolist() == np.flatnonzero(lengths == 0).tolist()
    kept = np.minimum(lengths, max_length) if too_long == "cut" else np.where(lengths > max_length, 0, lengths)
    expected = len(records.tokens) if too_long == "split" else int(kept.sum())
    assert len(packed) == expected
    assert (samples.input_ids[samples.sequence_ids == 0] == PAD).all()


@given(records=RECORDS, max_length=LENGTHS)
@settings(deadline=None, max_examples=200)
def test_losses_stand_at_answers_that_something_predicts_and_nowhere_else(records: Ragged, max_length: int) -> None:
    samples = dialogues.pack(dialogues.fit(records, max_length, "split").pieces, max_length, PAD)
    for sample, row in enumerate(samples.input_ids):
        for place, token in enumerate(row):
            inside = samples.sequence_ids[sample, place] > 0
            wanted = inside and samples.position_ids[sample, place] > 0 and records.learned[token]
            assert samples.labels[sample, place] == (token if wanted else IGNORED)


@given(records=RECORDS, max_length=LENGTHS)
@settings(deadline=None, max_examples=200)
def test_bounds_positions_and_numbers_keep_each_dialogue_to_itself(records: Ragged, max_length: int) -> None:
    samples = dialogues.pack(dialogues.fit(records, max_length, "split").pieces, max_length, PAD)
    owner = np.repeat(records.records, records.lengths)
    covered = 0
    for sample, begin, end, record in segments(samples):
        assert begin < end
        assert samples.position_ids[sample, begin:end].tolist() == list(range(end - begin))
        numbers = set(samples.sequence_ids[sample, begin:end].tolist())
        assert len(numbers) == 1
        if record < 0:
            assert numbers == {0}
            assert end == max_length
        else:
            tokens = samples.input_ids[sample, begin:end]
            assert owner[tokens].tolist() == [record] * len(tokens)
            assert np.diff(tokens).tolist() == [1] * (len(tokens) - 1)
        covered += end - begin
    assert covered == len(samples) * max_length
    bounds = [int(end) for end in samples.ends[samples.ends_offsets[1:] - 1]] if len(samples) else []
    assert bounds == [max_length] * len(samples)


@given(records=RECORDS, max_length=LENGTHS, piece=st.integers(1, 7))
@settings(deadline=None, max_examples=200)
def test_every_token_of_a_document_is_read_once_and_learned_once(records: Ragged, max_length: int, piece: int) -> None:
    end = 50_000
    stream = [token for i in range(len(records)) for token in [*_row(records, i), end]]
    rows = [_row(records, i) for i in range(len(records))]
    parts = [
        ragged(rows[i : i + piece], [[True] * len(row) for row in rows[i : i + piece]], i)
        for i in range(0, len(rows), piece)
    ]
    batches = list(documents.pack((documents.ended(part, end) for part in parts), max_length, PAD))
    read = [token for samples in batches for token in samples.input_ids[samples.sequence_ids > 0].tolist()]
    assert read == stream
    learned: list[int] = []
    for samples in batches:
        assert samples.shift_labels is not None
        learned += samples.shift_labels[samples.shift_labels != IGNORED].tolist()
    assert learned == stream[1:]
    assert sum(map(len, batches)) == -(-len(stream) // max_length)


def _row(records: Ragged, index: int) -> list[int]:
    tokens: list[int] = records.tokens[records.offsets[index] : records.offsets[index + 1]].tolist()
    return tokens


@given(lengths=st.lists(st.integers(1, 50), max_size=80))
@settings(deadline=None)
def test_samples_are_few_and_the_same_each_time(lengths: list[int]) -> None:
    sample_of = best_fit(np.array(lengths, dtype=np.int64), 50)
    assert sample_of.tolist() == best_fit(np.array(lengths, dtype=np.int64), 50).tolist()
    used = np.bincount(sample_of, weights=lengths).astype(int).tolist()
    assert all(0 < one <= 50 for one in used)
    # Two samples whose contents fit into one would be one; so all but one are more than half full.
    assert sum(one <= 25 for one in used) <= 1
    assert list(dict.fromkeys(sample_of.tolist())) == list(range(len(used)))


def test_a_sequence_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="51 tokens"):
        best_fit(np.array([51]), 50)


def test_a_model_computes_the_same_loss_on_packed_and_on_single_dialogues() -> None:
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    program = Path(__file__).with_name("packed_loss.py")
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    alone, packed = map(float, run.stdout.split())
    assert alone > 1
    assert packed == pytest.approx(alone, rel=1e-5)
