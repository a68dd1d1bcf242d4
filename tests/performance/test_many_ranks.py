"""Many ranks: what is wrong with a made cluster of 64 is named first, with its size."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_cluster import Cluster, profiles_of
from made_profiles import collective, kernel, made, npu_trace, write_npu_profile
from typer.testing import CliRunner

from npuport.cli.app import app
from npuport.performance.ranks.checks import RanksFinding, findings_of, lateness
from npuport.performance.ranks.summary import RankSummary, summarised
from npuport.performance.reading.run_info import groups_of


def summaries_of(cluster: Cluster) -> list[RankSummary]:
    return [summarised(profile, position) for position, profile in enumerate(profiles_of(cluster))]


def first_of(cluster: Cluster) -> RanksFinding:
    return findings_of(summaries_of(cluster))[0]


def test_a_healthy_cluster_has_no_finding() -> None:
    assert findings_of(summaries_of(Cluster(seed=1))) == []


def test_a_slow_rank() -> None:
    found = first_of(Cluster(computing={37: 18.0}))
    assert (found.code, found.ranks) == ("NT601", (37,))
    assert found.cost_ns == pytest.approx(18e6, rel=0.05)
    assert found.details["ratio"] == pytest.approx(78 / 60, rel=0.05)


def test_a_rank_whose_data_comes_late() -> None:
    found = first_of(Cluster(loading={5: 25.0}, seed=2))
    assert (found.code, found.ranks) == ("NT602", (5,))
    assert found.cost_ns == pytest.approx(25e6, rel=0.05)


def test_a_rank_with_more_work() -> None:
    found = first_of(Cluster(extra_kernels={62: 5}, seed=3))
    assert (found.code, found.ranks) == ("NT604", (62,))
    assert found.cost_ns == pytest.approx(15e6, rel=0.05)


def test_a_slow_link() -> None:
    found = first_of(Cluster(rates={(20, 21): 5.0}, seed=4))
    assert (found.code, found.ranks) == ("NT605", (20, 21))
    assert found.cost_ns == pytest.approx((256 / 5 - 256 / 20) * 1e6, rel=0.05)
    assert found.details["rate"] == pytest.approx(5.0, rel=0.05)


def test_unequal_stages() -> None:
    found = first_of(Cluster(stage_computing={3: 40.0}, seed=5))
    assert (found.code, found.ranks) == ("NT606", tuple(range(48, 64)))
    assert found.cost_ns == pytest.approx(30e6, rel=0.05)  # three of four stages could take 10 ms each
    assert found.details["stage_3_ms"] - found.details["stage_0_ms"] == pytest.approx(40, rel=0.05)


def test_a_pipeline_s_bubble() -> None:
    receiving = [collective(start, start + 60, name="hcom_receive__77_0_1") for start in (100, 500)]
    ranks = [summarised(made(kernels=[kernel(110, 400)], communication=receiving, rank=rank), rank) for rank in (0, 1)]
    (found,) = findings_of(ranks)
    # Of 120 ns, 50 pass while something is computed.
    assert (found.code, found.cost_ns, found.details["share"]) == ("NT608", 70, 0.07)
    assert findings_of([replace(one, bubble_ns=40) for one in ranks]) == []


def test_several_causes_are_told_apart() -> None:
    cluster = Cluster(computing={3: 12.0}, loading={20: 30.0}, rates={(40, 41): 10.0}, seed=6)
    assert [(one.code, one.ranks) for one in findings_of(summaries_of(cluster))] == [
        ("NT602", (20,)),
        ("NT605", (40, 41)),
        ("NT601", (3,)),
    ]


def test_ranks_that_wait_for_one_that_was_not_given() -> None:
    ranks = [one for one in summaries_of(Cluster(computing={2: 50.0}, seed=7)) if one.rank in (0, 1, 3)]
    (found,) = findings_of(ranks)
    assert found.code == "NT607"
    assert found.cost_ns == pytest.approx(50e6, rel=0.05)


def test_lateness_adds_up_to_nothing() -> None:
    assert sum(lateness(summaries_of(Cluster(seed=8))).values()) == pytest.approx(0, abs=100)


def test_groups_of_the_profiler() -> None:
    given = {
        "hash": {"group_name": "pp", "group_rank": 1, "global_ranks": [0, 4]},
        "odd": 3,
        "none": {"group_name": "x"},
    }
    assert groups_of(given) == (("pp", (0, 4)),)
    assert groups_of(None) == ()


def write_ranks(folder: Path, number: int) -> None:
    for rank in range(number):
        write_npu_profile(folder, rank=rank, trace=json.dumps(npu_trace()))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_command(tmp_path: Path, jobs: str) -> None:
    write_ranks(tmp_path, 5)
    done = CliRunner().invoke(app, ["perf", "ranks", str(tmp_path), "--jobs", jobs])
    assert done.exit_code == 1, done.output
    assert done.stdout.splitlines()[0] == "5 ranks · a step takes 1.0 ms, longest on rank 0 (1.0 ms)"
    assert "NT607  all 5 ranks wait 0.40 ms at once in a step" in done.stdout


def test_as_json(tmp_path: Path) -> None:
    write_ranks(tmp_path, 2)
    done = CliRunner().invoke(app, ["perf", "ranks", str(tmp_path), "--json"])
    document = json.loads(done.stdout)
    assert document["schema"] == "npuport-ranks/1"
    assert [one["rank"] for one in document["ranks"]] == [0, 1]
    assert document["ranks"][0]["computing_ms"] == pytest.approx(0.2, rel=0.01)
    assert document["findings"][0]["code"] == "NT607"


def test_a_rank_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write_ranks(tmp_path, 2)
    write_npu_profile(tmp_path, rank=2, trace="[{")
    done = CliRunner().invoke(app, ["perf", "ranks", str(tmp_path)])
    assert done.exit_code == 2
    assert "host_2_20260101_ascend_pt" in done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Ray is not there yet")
def test_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    write_ranks(tmp_path, 3)
    here = CliRunner().invoke(app, ["perf", "ranks", str(tmp_path), "--json"])
    there = CliRunner().invoke(app, ["perf", "ranks", str(tmp_path), "--json", "--ray"])
    assert there.stdout == here.stdout
