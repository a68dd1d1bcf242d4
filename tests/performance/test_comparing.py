"""Two profiles: what takes longer than its share is named, by module and by operator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_profiles import ENGINE, LOOP, Row, event, kernel, made, npu_trace, write_npu_profile
from real_profiles import PROFILES, needs_profiles
from typer.testing import CliRunner

from npuport.cli.app import app
from npuport.performance.attribution import attributed
from npuport.performance.comparing.comparison import Comparison, compare
from npuport.performance.findings.base import Context
from npuport.performance.tables import Profile


def profile_of(linear: int, norm: int, grad: int, *, wrapped: bool = False, backward: str = "MmBackward0") -> Profile:
    """One step: a linear and a norm inside of modules, and the linear's backward on autograd's thread."""
    events: list[Row] = [
        event("nn.Module: Net_0", 0, 400, "python"),
        event("nn.Module: Linear_0", 10, 200, "python"),
        event("aten::linear", 20, 190, sequence=7),
        event("aten::addmm", 30, 180, sequence=8),
        event("nn.Module: LayerNorm_0", 210, 390, "python"),
        event("aten::layer_norm", 220, 380, sequence=9),
        event(f"autograd::engine::evaluate_function: {backward}", 500, 600, thread=ENGINE),
        event(backward, 510, 590, thread=ENGINE, sequence=8, forward_thread=LOOP),
    ]
    if wrapped:
        events.insert(0, event("nn.Module: DistributedDataParallel_0", 0, 410, "python"))
    kernels = [
        kernel(1000, 1000 + linear, launched=40, type="MatMul"),
        kernel(4000, 4000 + norm, launched=230, type="LayerNorm"),
        kernel(7000, 7000 + grad, launched=520, thread=ENGINE, type="MatMul"),
    ]
    return made(events=events, kernels=kernels, steps=[(0, 0, 10_000)])


def test_kernels_know_their_module_and_operator() -> None:
    table = attributed(Context(profile_of(100, 50, 200, wrapped=True)))
    assert table.select("module", "operator", "phase").rows() == [
        ("Net_0/Linear_0", "aten::linear", "forward"),
        ("Net_0/LayerNorm_0", "aten::layer_norm", "forward"),
        ("Net_0/Linear_0", "aten::linear", "backward"),
    ]


def named(comparison: Comparison) -> dict[tuple[str, str], tuple[int | None, int | None]]:
    return {(one.name, one.phase): (one.reference_ns, one.candidate_ns) for one in comparison.by_module}


def test_what_is_above_its_share_comes_first() -> None:
    # Everything takes twice as long, the norm ten times.
    found = compare(profile_of(1000, 100, 900), profile_of(2000, 1000, 1800, wrapped=True, backward="AddmmBackward0"))
    assert found.ratio == pytest.approx(4800 / 2000)
    assert named(found) == {
        ("Net_0/Linear_0", "forward"): (1000, 2000),
        ("Net_0/Linear_0", "backward"): (900, 1800),
        ("Net_0/LayerNorm_0", "forward"): (100, 1000),
    }
    first = found.by_module[0]
    assert (first.name, first.ratio, first.limit) == ("Net_0/LayerNorm_0", 10, "memory")
    assert first.excess(found.ratio) == 1000 - 240
    assert {one.name: one.limit for one in found.by_operator}["aten::linear"] == "arithmetic"


def test_a_profile_beside_itself_has_nothing_above_its_share() -> None:
    found = compare(profile_of(100, 50, 200), profile_of(100, 50, 200))
    assert found.ratio == 1
    assert all(one.excess(1.0) == 0 for one in (*found.by_module, *found.by_operator))
    assert found.grown == ()


def test_without_modules_operators_are_compared() -> None:
    bare = made(events=[event("aten::mm", 0, 50)], kernels=[kernel(100, 200, launched=10)])
    found = compare(bare, bare)
    assert found.by_module == ()
    assert [(one.name, one.candidate_ns) for one in found.by_operator] == [("aten::mm", 100)]


def test_the_command(tmp_path: Path) -> None:
    one = write_npu_profile(tmp_path / "one")
    slower = [{**row, "dur": 500} if row["name"] == "MatMulGrad" else row for row in npu_trace()]
    other = write_npu_profile(tmp_path / "other", trace=json.dumps(slower))
    same = CliRunner().invoke(app, ["perf", "compare", str(one), str(one)])
    assert (same.exit_code, "nothing takes more than its share" in same.stdout) == (0, True), same.output
    done = CliRunner().invoke(app, ["perf", "compare", str(one), str(other), "--json"])
    document = json.loads(done.stdout)
    assert document["schema"] == "npuport-perf-compare/1"
    assert document["reference"]["step_ms"] == 1.0


@needs_profiles
def test_traces_of_two_releases_are_matched() -> None:
    names = ("resnet50_v100_2021.pt.trace.json.gz", "resnet_v100_2024_ns.pt.trace.json.gz")
    paths = [PROFILES / "gpu" / name for name in names]
    done = CliRunner().invoke(app, ["perf", "compare", *map(str, paths), "--json"])
    operators = {(one["name"], one["phase"]): one for one in json.loads(done.stdout)["operators"]}
    for name in ("aten::conv2d", "aten::batch_norm", "aten::relu_", "aten::linear"):
        for phase in ("forward", "backward"):
            one = operators[name, phase]
            assert one["reference_ms"] and one["candidate_ms"], (name, phase)
