"""Compiled parts: made once, whole or not at all."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from npuport.sim import SimulationUnavailable, build


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "cache_directory", lambda: tmp_path / "cache")


def test_built_once_by_many() -> None:
    builds = []

    def make(target: Path) -> None:
        builds.append(target)
        time.sleep(0.2)
        (target / "part").write_text("whole")

    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append((build.once("thing", make) / "part").read_text()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["whole"] * 4 and len(builds) == 1


def test_nothing_is_left_of_a_failure() -> None:
    def fail(target: Path) -> None:
        (target / "part").write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        build.once("thing", fail)
    assert [path.name for path in build.cache_directory().iterdir()] == ["thing.lock"]
    assert build.once("thing", lambda target: (target / "part").touch()).is_dir()


def test_the_key_knows_contents_and_facts(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("one")
    first = build.key_of([source], "torch 1")
    assert first == build.key_of([source], "torch 1") and len(first) == 16
    assert first != build.key_of([source], "torch 2")
    source.write_text("two")
    assert first != build.key_of([source], "torch 1")


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'a.c:1: error: no such thing' >&2\nexit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(SimulationUnavailable, match="no such thing") as caught:
        build.compile_with([compiler, "-c", "a.c"])
    assert str(compiler) in caught.value.next_step
