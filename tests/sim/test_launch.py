"""The launcher: what it says, whose exit code it returns, how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from npuport.sim import SimOptions, SimulationUnavailable, environment, launch

LAUNCH = (
    "import sys; from npuport.sim import SimOptions, launch; sys.exit(launch.run(sys.argv[1:], SimOptions(devices=2)))"
)


@pytest.fixture(scope="module", autouse=True)
def available() -> None:
    try:
        environment()
    except SimulationUnavailable as missing:
        pytest.skip(str(missing))


pytestmark = pytest.mark.sim


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", LAUNCH, *map(str, command)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_first_line_says_what_it_is(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\nprint(torch.ones(2).npu().sum().item(), torch.npu.device_count(), sys.argv[1:])\n"
    )
    done = run(script, "--lr", "1")
    assert done.stdout == "2.0 2 ['--lr', '1']\n"
    first = done.stderr.splitlines()[0]
    assert first.startswith(
        "npuport: simulated 2 x Ascend910B3 (64 GiB), results computed by CPU kernels through torch_npu 2."
    )
    assert first.endswith("; times are not NPU times")
    assert done.stderr.count("npuport: simulated") == 1
    assert "peak memory" not in done.stderr  # the summary is for a terminal, or for a report


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137), ("pass", 0)]
)
def test_exit_codes_are_the_childs(code: str, expected: int) -> None:
    assert run(sys.executable, "-c", code).returncode == expected


def test_a_script_that_fails_after_a_backward_pass_ends_with_its_traceback(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    # On one processor the thread of the backward pass is often still at work when the script ends.
    script.write_text(
        "import os, torch\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "torch.ones(2, device='npu', requires_grad=True).sum().backward()\n"
        "raise ValueError('after the backward pass')\n"
    )
    for _ in range(3):
        done = run(script)
        assert done.returncode == 1 and "ValueError: after the backward pass" in done.stderr, done.stderr
        assert "terminate called" not in done.stderr


def test_children_of_the_child_are_simulated_too() -> None:
    grandchild = "import torch; print(torch.npu.is_available())"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}], check=True)"
    assert run(sys.executable, "-c", code).stdout == "True\n"


def test_interrupt_reaches_the_child_and_its_answer_comes_back(tmp_path: Path) -> None:
    script = tmp_path / "wait.py"
    script.write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (print('stopping', flush=True), sys.exit(5)))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
        time.sleep(0.1)
        parent.send_signal(signal.SIGINT)
        assert parent.stdout.readline() == "stopping\n"
        assert parent.wait(timeout=20) == 5


def test_python_that_is_not_on_the_path() -> None:
    compilers = {name: shutil.which(program) or "" for name, program in (("CC", "gcc"), ("CXX", "g++"))}
    done = run("python", "-c", "import sys; print(sys.executable)", PATH="/nowhere", **compilers)
    assert done.stdout.strip() == sys.executable


def test_an_unknown_command_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        launch.run(["no-such-program"], SimOptions())
    with pytest.raises(ValueError, match="npuport run --sim"):
        launch.run([], SimOptions())


def test_another_python_without_torch_npu_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    # It answers the launcher's question as a Python without torch_npu would.
    other.write_text("#!/bin/sh\necho torch_npu >&2\nexit 1\n")
    other.chmod(0o755)
    with pytest.raises(SimulationUnavailable, match="does not have torch_npu"):
        launch.run([str(other), "-m", "train"], SimOptions())


def test_a_script_of_another_python_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho torch,torch_npu >&2\nexit 1\n")
    other.chmod(0o755)
    script = tmp_path / "torchrun"
    script.write_text(f"#!{other}\n")
    script.chmod(0o755)
    with pytest.raises(SimulationUnavailable, match="does not have torch, torch_npu"):
        launch.run([str(script), "train.py"], SimOptions())


def test_a_program_that_is_no_python_runs() -> None:
    assert run("sh", "-c", "exit 4").returncode == 4
