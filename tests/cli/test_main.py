"""What holds for every command: help, version, languages, interruption, closed pipes, defects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import Npuport

import npuport as package
from npuport.cli.documents import rule_documents

COMMANDS = ("analyze", "convert", "explain", "run")


def start(*argv: object, program: tuple[str, ...] = ("-m", "npuport")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *program, *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "NPUPORT_LANG": "en"},
    )


def test_help_lists_the_commands(npuport: Npuport) -> None:
    result = npuport("--help")
    assert result.code == 0
    assert all(f"  {command} " in result.out for command in COMMANDS)
    assert "Exit codes: 0" in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(npuport: Npuport, command: str) -> None:
    result = npuport(command, "-h")
    assert result.code == 0
    assert f"npuport {command} [OPTIONS]" in result.out


def test_version(npuport: Npuport) -> None:
    assert npuport("--version").out == f"npuport {package.__version__}\n"


@pytest.mark.parametrize("argv", [("fly",), ("analyze",), ("analyze", ".", "--fast"), ("analyze", ".", "-j", "0")])
def test_misuse_ends_with_2(npuport: Npuport, argv: tuple[str, ...]) -> None:
    result = npuport(*argv)
    assert (result.code, result.out) == (2, "")
    assert "Usage: npuport" in result.err


def test_python_dash_m(project: Path) -> None:
    process = start("analyze", project, "--format", "concise")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out.startswith("train.py:3:34: NP101")


def test_a_closed_pipe_is_silent(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n" + 'x = torch.device("cuda")\n' * 5000)
    process = start("analyze", tmp_path, "--format", "full")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 141
    process.stderr.close()


def test_ctrl_c_is_one_line() -> None:
    code = (
        "from npuport.cli.shared import guard\nimport time\nwith guard():\n print('ready', flush=True)\n time.sleep(60)"
    )
    process = start(program=("-c", code))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "npuport: interrupted\n")


def test_ctrl_c_ends_the_workers_too(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"m{number}.py").write_text("import torch\n" + 'x = torch.device("cuda")\n' * 20_000)
    process = start("analyze", tmp_path, "-j", "2")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while len(workers := children.read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "npuport: interrupted\n")
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_ctrl_c_in_a_command(npuport: Npuport, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    monkeypatch.setattr("npuport.rules.cache.check_file", interrupted)
    result = npuport("analyze", project)
    assert (result.code, result.out, result.err) == (130, "", "npuport: interrupted\n")


def test_a_defect_is_one_line_with_a_way_to_report_it(
    npuport: Npuport, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:  # noqa: ARG001
        raise RuntimeError("boom")

    monkeypatch.setattr("npuport.source.files.read_tree", broken)
    result = npuport("analyze", project)
    assert result.code == 2
    assert result.err.splitlines()[0] == "npuport: RuntimeError: boom"
    assert "NPUPORT_DEBUG=1" in result.err
    assert "Traceback" not in result.err
    monkeypatch.setenv("NPUPORT_DEBUG", "1")
    assert "Traceback" in npuport("analyze", project).err


def test_a_terminal_without_unicode_is_no_reason_to_fail(project: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "npuport", "analyze", str(project)],
        capture_output=True,
        env={**os.environ, "NPUPORT_LANG": "zh", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        check=False,
    )
    assert run.returncode == 1
    assert b"Ascend910B3" in run.stdout


def test_explain_a_rule(npuport: Npuport) -> None:
    document = rule_documents()[0]
    for word in (document.code, document.code.lower(), document.name):
        result = npuport("explain", word)
        assert (result.code, result.out) == (0, document.text())


def test_explain_lists_the_rules(npuport: Npuport) -> None:
    lines = npuport("explain").out.splitlines()
    assert len(lines) == len(rule_documents())
    assert "NP101  cuda-device-string" in lines


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("torch.cuda.synchronize", "torch.cuda.synchronize  →  torch.npu.synchronize"),
        ("cuda.synchronize", "torch.cuda.synchronize  →  torch.npu.synchronize"),
        ("NCCL_DEBUG", "NCCL_DEBUG  →  "),
        ("CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES  →  ASCEND_RT_VISIBLE_DEVICES"),
        ("flash_attn", "flash"),
        ("Ascend910B3", "Ascend910B3 (family A2"),
    ],
)
def test_explain_facts(npuport: Npuport, word: str, words: str) -> None:
    result = npuport("explain", word)
    assert result.code == 0
    assert words in result.out
    assert result.out.rstrip().endswith("]"), "every fact names its source"


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("EI0006", "HCCL_CONNECT_TIMEOUT"),
        ("507015", "ACL_ERROR_RT_AICORE_EXCEPTION"),
        ("Cannot find bin of op Range", "kernels package"),
        ("EI0002", "npuport explain --log rank*.log"),
        ("torch_npu.npu_swiglu", "npu_swiglu(Tensor input, int dim=-1) -> Tensor"),
        ("HCCL_BUFFSIZE", "in the CUDA world: NCCL_BUFFSIZE"),
        ("torch.lgamma", "runs on the CPU"),
    ],
)
def test_explain_errors_operators_and_ascend_s_variables(npuport: Npuport, word: str, words: str) -> None:
    result = npuport("explain", word)
    assert result.code == 0
    assert words in result.out


def test_explain_a_code_that_nobody_names(npuport: Npuport) -> None:
    result = npuport("explain", "507999")
    assert (result.code, result.out) == (2, "")
    assert "507999 is unknown" in result.err
    assert "Did you mean" not in result.err


def test_explain_logs(npuport: Npuport, tmp_path: Path) -> None:
    (tmp_path / "rank_0.log").write_text("RuntimeError: NPU out of memory. Tried to allocate 2 GiB\n", encoding="utf-8")
    result = npuport("explain", "--log", tmp_path)
    assert result.code == 1
    assert result.out.startswith("First cause: rank 0, rank_0.log:1\n")
    found = json.loads(npuport("explain", "--log", tmp_path, "--json").out)
    assert found["first_cause"]["known"] == "out-of-memory"
    (tmp_path / "rank_0.log").write_text("step 1\n", encoding="utf-8")
    assert npuport("explain", "--log", tmp_path).code == 0
    more = tmp_path / "more.log"
    more.write_text("[rank1]: KeyError: 'a'\n", encoding="utf-8")
    assert "First cause: rank 1" in npuport("explain", "--log", tmp_path / "rank_0.log", more).out
    assert npuport("explain", "--json").code == 2


def test_explain_something_unknown(npuport: Npuport) -> None:
    near = npuport("explain", "torch.cuda.synchronise")
    assert (near.code, near.out) == (2, "")
    assert "Did you mean torch.cuda.synchronize" in near.err
    far = npuport("explain", "xyzzy")
    assert far.err == "npuport: nothing is known about xyzzy. `npuport explain` lists the rules.\n"


def test_run_hands_everything_after_the_command_on(npuport: Npuport, monkeypatch: pytest.MonkeyPatch) -> None:
    from npuport.sim import SimOptions

    seen: list[object] = []

    def simulated(
        command: list[str], options: SimOptions, _reports: object, variables: dict[str, str], **_: object
    ) -> int:
        assert variables["NPUPORT_AUTO"] == "1"
        seen.append((list(command), options))
        return 7

    monkeypatch.setattr("npuport.sim.launch.run", simulated)
    result = npuport("run", "--sim", "--devices", "2", "--", "torchrun", "train.py", "--sim", "-h", "--", "x")
    assert result.code == 7
    assert seen == [(["torchrun", "train.py", "--sim", "-h", "--", "x"], SimOptions(devices=2))]
    assert npuport("run", "--sim", "python", "train.py", "--devices=9").code == 7
    assert seen[1] == (["python", "train.py", "--devices=9"], SimOptions())
    assert npuport("run", "--sim", "--chip", "910A", "--strict", "torchrun").code == 7
    assert seen[2] == (["torchrun"], SimOptions(chip="Ascend910A", strict=True))


def test_run_says_what_is_missing(npuport: Npuport, monkeypatch: pytest.MonkeyPatch) -> None:
    from npuport.sim import SimulationUnavailable

    def unavailable(*_arguments: object, **_named: object) -> int:
        raise SimulationUnavailable("torch_npu is not installed.", "pip install torch-npu==2.13.0")

    monkeypatch.setattr("npuport.sim.launch.run", unavailable)
    result = npuport("run", "--sim", "--", "python", "train.py")
    assert result.code == 2
    assert result.err == "npuport: torch_npu is not installed.\n  pip install torch-npu==2.13.0\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [(("--chip", "H100"), "unknown chip"), (("--devices", "99"), "between 1 and 64")],
)
def test_run_with_impossible_options(npuport: Npuport, argv: tuple[str, ...], words: str) -> None:
    result = npuport("run", "--sim", *argv, "--", "python", "train.py")
    assert result.code == 2
    assert words in result.err


def test_run_without_sim_uses_the_runtime(npuport: Npuport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npuport.runtime.launch.run", len)
    assert npuport("run", "train.py", "--device=cuda").code == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_has_no_room_is_one_line() -> None:
    code = "from npuport.cli.shared import guard\nwith guard():\n print('x' * 100000)"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "npuport: output cannot be written: No space left on device.\n")
