"""`npuport run --profile`: which steps are profiled, on the CPU and on the simulated NPU, and what is said of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from npuport.cli.app import app
from npuport.performance.collecting.estimate import bytes_of_profile
from npuport.performance.collecting.request import Request, requested
from npuport.performance.collecting.snippet import snippet
from npuport.performance.reading.discover import profiles_under
from npuport.performance.tables import Profile

# As a GAN trains: two optimizers, of which the first ends the step.
TRAINING = """
import torch

one, other = torch.nn.Linear(8, 8).to(DEVICE), torch.nn.Linear(8, 8).to(DEVICE)
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (one, other)]
x = torch.randn(4, 8).to(DEVICE)
for _ in range(STEPS):
    for model, optimizer in zip((one, other), optimizers):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
print("trained")
"""


def trained(
    folder: Path, *options: str, device: str = "cpu", steps: int = 6, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    script = folder / "train.py"
    script.write_text(f"DEVICE, STEPS = {device!r}, {steps}\n{TRAINING}")
    command = [sys.executable, "-m", "npuport", "run", *options, "--profile", str(folder / "profile"), str(script)]
    chosen = {"NPUPORT_DEVICE": "cpu"} if device == "cpu" else {}
    done = subprocess.run(
        command,
        env={**os.environ, **chosen, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "trained") or "_ascend_pt" in done.stdout, done.stderr
    return done


def profile_of(folder: Path) -> Profile:
    ((path, reader),) = profiles_under([folder / "profile"])
    return reader(path)


def test_steps_are_those_asked_for(tmp_path: Path) -> None:
    done = trained(tmp_path, "--profile-steps", "3-4")
    profile = profile_of(tmp_path)
    assert profile.steps["step"].to_list() == [3, 4]
    assert profile.device == "cpu"
    stepping = profile.events.filter(pl.col("name").cast(pl.String).str.starts_with("Optimizer.step"))
    # A step ends behind the first optimizer's, so that the second one's stands in the next.
    assert len(stepping) == 4
    assert "train.py" in " ".join(
        profile.events.filter(pl.col("category").cast(pl.String) == "python")["name"].cast(str)
    )
    assert re.search(r"profiling steps 3 to 4: [\d.]+ to [\d.]+ MB a rank", done.stderr)
    assert re.search(r"profiled steps 3 to 4: [\d.]+ MB in .*profile", done.stderr)
    assert "ms under the profiler" in done.stderr
    assert "next: npuport perf analyze" in done.stderr


@pytest.mark.parametrize(("steps", "expected", "calls"), [("0", [0], 1), ("1-2", [1, 2], 4)])
def test_from_the_first_steps_on(tmp_path: Path, steps: str, expected: list[int], calls: int) -> None:
    trained(tmp_path, "--profile-steps", steps, "--profile-with", "nothing")
    profile = profile_of(tmp_path)
    assert profile.steps["step"].to_list() == expected
    assert profile.events.filter(pl.col("name").cast(pl.String) == "aten::addmm").height == calls


def test_a_run_that_is_too_short_says_so(tmp_path: Path) -> None:
    done = trained(tmp_path)
    assert "the run ended after 6 steps; step 10 was to be profiled first: --profile-steps 5" in done.stderr
    assert not any((tmp_path / "profile").glob("*"))


def test_a_run_that_ends_amid_the_steps_keeps_those_it_made(tmp_path: Path) -> None:
    done = trained(tmp_path, "--profile-steps", "4-20")
    assert 4 in profile_of(tmp_path).steps["step"].to_list()
    assert "profiled steps 4 to 5" in done.stderr


def test_other_ranks_are_not_profiled(tmp_path: Path) -> None:
    done = trained(tmp_path, "--profile-steps", "2", "--profile-ranks", "1-3")
    assert "nothing was profiled" in done.stderr
    trained(tmp_path, "--profile-steps", "2", "--profile-ranks", "1-3", environment={"RANK": "2"})
    assert [path.name for path in (tmp_path / "profile").iterdir()] == ["rank2.pt.trace.json.gz"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--profile-steps", "5-3"), "--profile-steps takes a number or a range"),
        (("--profile-with", "stack"), "--profile-with takes stacks, shapes, memory or nothing, not stack"),
        (("--profile-ranks", "all"), "--profile-ranks takes a number or a range"),
    ],
)
def test_wrong_options(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(app, ["run", "--profile", str(tmp_path), *options, "--", "true"])
    assert done.exit_code == 2
    assert said in done.stderr


def test_on_the_simulated_npu(tmp_path: Path) -> None:
    done = trained(tmp_path, "--sim", "--profile-steps", "2-3", "--profile-level", "2", device="npu")
    profile = profile_of(tmp_path)
    assert profile.device == "npu"
    assert profile.steps["step"].to_list() == [2, 3]
    assert "profiled steps 2 to 3" in done.stderr


def test_a_request_reaches_the_processes(tmp_path: Path) -> None:
    request = Request(tmp_path, 3, 5, 2, ("memory",), (0, 7))
    assert requested(request.variables()) == request


def test_sizes_grow_with_what_is_profiled() -> None:
    plain, all_of_it = (bytes_of_profile(1000, 2, details, on_npu=False) for details in ((), ("stacks", "memory")))
    assert plain[0] < all_of_it[0] < all_of_it[1]
    assert bytes_of_profile(1000, 2, (), on_npu=True) > all_of_it


def test_the_snippet_profiles_the_same(tmp_path: Path) -> None:
    code = snippet(Request(tmp_path / "profile", 2, 3, details=("shapes",)), on_npu=False)
    starts, steps, stops = code.split("\n\nprofiler.")[0], "    profiler.step()\n", "profiler.stop()\n"
    loop = f"{starts}\nprofiler.start()\nfor _ in range(6):\n    torch.ones(2).add(1)\n{steps}{stops}"
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.run([sys.executable, "-c", loop], env=environment, timeout=100, check=True)
    assert profile_of(tmp_path).steps["step"].to_list() == [2, 3]


def test_the_snippet_for_an_npu_is_accepted(tmp_path: Path) -> None:
    code = snippet(Request(tmp_path / "profile", 1, 1, 2, ("stacks", "shapes", "memory")), on_npu=True)
    script = tmp_path / "train.py"
    script.write_text("import torch\n" + code.replace("profiler.step()", "for _ in range(3):\n    profiler.step()"))
    command = [sys.executable, "-m", "npuport", "run", "--sim", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert profile_of(tmp_path).steps["step"].to_list() == [1]
