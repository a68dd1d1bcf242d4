"""Whatever a file was damaged by: reading it raises nothing, and the parts of what is left add up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from made_profiles import write_npu_profile
from pytest import TempPathFactory

from npuport.performance.analysis import analyse

damage = st.tuples(st.sampled_from(["cut", "flip", "drop", "twice"]), st.floats(0, 1), st.integers(0, 255))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["trace_view.json", "kernel_details.csv"]), damage)
def test_damage(tmp_path_factory: TempPathFactory, name: str, damage: tuple[str, float, int]) -> None:
    folder = write_npu_profile(tmp_path_factory.mktemp("damaged"))
    path = folder / "ASCEND_PROFILER_OUTPUT" / name
    data, (how, where, value) = path.read_bytes(), damage
    place = int(where * (len(data) - 1))
    path.write_bytes(
        {
            "cut": data[:place],
            "flip": data[:place] + bytes([value]) + data[place + 1 :],
            "drop": data[:place] + data[place + value :],
            "twice": data[:place] + data[place : place + value] + data[place:],
        }[how]
    )
    (rank,) = analyse([folder])
    for step in rank.splits:
        assert sum(step.parts.values()) == step.duration
    for finding in rank.findings:
        assert 0 <= finding.gain_ns <= finding.cost_ns
