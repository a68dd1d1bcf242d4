"""A small corpus with planted faults: what is found, and that kills and clusters change nothing of it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("datatrove")
pytest.importorskip("py3langid")
pytest.importorskip("pyarrow")

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("cleaning_corpus")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def corpus(bench: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, str]]:
    """The folder, cleaned by one worker, and what each record is."""
    folder = tmp_path_factory.mktemp("corpus")
    kinds = bench.write(folder, 1_200_000)
    bench.clean(bench.pipeline(folder, "cleaned", workers=1, task_megabytes=0.5))
    return folder, kinds


def test_planted_faults_are_found_and_little_else(bench: ModuleType, corpus: tuple[Path, dict[int, str]]) -> None:
    folder, kinds = corpus
    scores = bench.scores(bench.dropped_by_kind(folder / "cleaned", kinds, folder / "input"))
    assert {kind for kind, (planted, _, _) in scores.items() if planted} == set(bench.REASONS)
    assert {kind: score for kind, score in scores.items() if min(score[1:]) < 0.99} == {}


def test_a_run_killed_twice_ends_with_the_same_bytes(bench: ModuleType, corpus: tuple[Path, dict[int, str]]) -> None:
    folder, _ = corpus
    bench.clean_killed(bench.pipeline(folder, "killed", workers=2, task_megabytes=0.5), folder / "killed")
    assert bench.same(folder / "cleaned", folder / "killed")
    assert not (folder / "killed" / "unfinished").exists()


def test_a_ray_cluster_gives_the_same_bytes(bench: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    bench.write(tmp_path, 100_000)
    for path in sorted((tmp_path / "input").iterdir())[1:]:
        path.unlink()  # each task takes Ray seconds to start
    for name, executor in (("here", "local"), ("there", "ray")):
        bench.clean(bench.pipeline(tmp_path, name, executor, workers=1))
    assert bench.same(tmp_path / "here", tmp_path / "there")
