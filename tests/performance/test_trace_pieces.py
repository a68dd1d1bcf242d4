"""Reading a Chrome trace in pieces: the same events wherever the pieces are cut, and damage is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuport.performance.reading import chrome
from npuport.performance.reading.chrome import Event, Trace, nanoseconds

texts = st.text(st.sampled_from('{}[],":\\ ae\n'), max_size=12)
values = st.none() | st.integers(0, 9) | texts | st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2)
events = st.builds(
    lambda name, ts, dims, stack, more: {
        "ph": "X",
        "name": name,
        "ts": ts,
        "dur": 1.5,
        "args": {"Input Dims": dims, "Call stack": stack, "other": [{"x": more}, {"y": {}}]},
    },
    texts,
    st.integers(0, 10**6).map(lambda number: f"1736408883{number:06d}.125"),
    values,
    texts,
    values,
)


def read(path: Path, piece: int) -> tuple[list[Event], Trace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chrome, "_PIECE", piece)
        trace = Trace(path)
        return [event for part in trace.pieces() for event in part], trace


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=8), st.integers(3, 200), st.sampled_from([None, 2]), st.booleans())
def test_every_event_is_read_wherever_pieces_end(
    tmp_path_factory: pytest.TempPathFactory, written: list[Any], piece: int, indent: int | None, bare: bool
) -> None:
    path = tmp_path_factory.mktemp("trace") / "t.json"
    whole = written if bare else {"schemaVersion": 1, "traceEvents": written, "traceName": "a}, {b", "with_stack": 1}
    path.write_text(json.dumps(whole, indent=indent))
    found, trace = read(path, piece)
    assert trace.problem is None
    assert not trace.bad_events
    assert [one.name for one in found] == [one["name"] for one in written]
    assert [str(one.ts) for one in found] == [one["ts"] for one in written]
    assert [one.args and one.args.stack for one in found] == [one["args"]["Call stack"] for one in written]
    if not bare:
        assert trace.header == {"schemaVersion": 1, "traceName": "a}, {b", "with_stack": 1}


def test_times_are_exact() -> None:
    """A float of microseconds since 1970 has steps of a quarter of a microsecond."""
    text = b'[{"ts": 1712195495519689.047, "dur": 63.8135}, {"ts": "1736408883704643.212", "dur": 0.0004}]'
    found = chrome._EVENTS.decode(text)
    assert [nanoseconds(one.ts) for one in found if one.ts] == [1712195495519689047, 1736408883704643212]
    assert [nanoseconds(one.dur) for one in found if one.dur] == [63814, 0]


def test_a_compressed_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [{"name": "a", "ts": 1}]}'))
    assert [one.name for one in read(path, 10)[0]] == ["a"]


@pytest.mark.parametrize(
    ("text", "names", "problem"),
    [
        ('[{"name": "a"}, {"name": "b"}, {"na', ["a", "b"], "cut off"),
        ('[{"name": "a"}, {"name": "b"', ["a"], "cut off"),
        ('{"traceEvents": [{"name": "a"}', ["a"], "cut off"),
        ('{"deviceProperties": []}', [], "no list of events"),
        ("", [], "no list of events"),
        ("[]", [], None),
        ('{"traceEvents": []}', [], None),
    ],
)
def test_damage_is_named_and_the_rest_read(tmp_path: Path, text: str, names: list[str], problem: str | None) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    found, trace = read(path, 16)
    assert [one.name for one in found] == names
    assert trace.problem is None if problem is None else problem in str(trace.problem)


def test_a_malformed_event_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"name": "a"}, {"name": 7}, {"name": "b", "ts": "x"}, {"name": "c"}]')
    found, trace = read(path, 1 << 20)
    assert [one.name for one in found] == ["a", "c"]
    assert trace.bad_events == 2


def test_text_that_is_no_utf8_costs_only_its_event(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    bad = b'{"name": "\xff\xfe"}, {"name": "b", "args": {"Call stack": "\x80"}}'
    path.write_bytes(b'[{"name": "a"}, ' + bad + b', {"name": "c"}]')
    found, trace = read(path, 1 << 20)
    assert [one.name for one in found] == ["a", "c"]
    assert trace.bad_events == 2


def test_a_compressed_trace_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    text = json.dumps([{"name": f"event {number}", "ts": number} for number in range(5000)])
    path.write_bytes(gzip.compress(text.encode())[:-4000])
    found, trace = read(path, 1 << 12)
    assert found
    assert "cannot be read to its end" in str(trace.problem)
