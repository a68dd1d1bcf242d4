"""A script that imports npuport.auto, run for real in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch_npu") is None, reason="npuport.auto acts where torch_npu is installed"
)

SCRIPT = '''"""A script."""
from __future__ import annotations
import npuport.auto
import sys
from settings import DEVICE

def main():
    device = "cuda:1"
    print(device, DEVICE, __file__.endswith("train.py"), sys.argv[1:])

if __name__ == "__main__":
    main()
'''


def run(folder: Path, *arguments: str, device: str = "npu", text: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(text)
    (folder / "settings.py").write_text('DEVICE = "cuda"\n')
    environment = {**os.environ, "NPUPORT_DEVICE": device, "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_script_and_its_modules_are_converted(tmp_path: Path) -> None:
    done = run(tmp_path, "train.py", "--steps", "3")
    assert (done.stdout, done.stderr) == ("npu:1 npu True ['--steps', '3']\n", "")
    assert done.returncode == 0


def test_nothing_is_written_beside_the_script(tmp_path: Path) -> None:
    run(tmp_path, "train.py")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["settings.py", "train.py"]
    assert (tmp_path / "train.py").read_text() == SCRIPT


def test_without_an_npu_wanted_nothing_changes(tmp_path: Path) -> None:
    assert run(tmp_path, "train.py", device="cuda").stdout == "cuda:1 cuda True []\n"


def test_command_line_needs_no_import(tmp_path: Path) -> None:
    text = SCRIPT.replace("import npuport.auto\n", "\n")
    done = run(tmp_path, "-m", "npuport.auto", "train.py", "x", text=text)
    assert (done.stdout, done.returncode) == ("npu:1 npu True ['x']\n", 0)


def test_unknown_device_is_one_clear_line(tmp_path: Path) -> None:
    done = run(tmp_path, "train.py", device="tpu")
    assert (done.stdout, done.returncode) == ("", 2)
    assert done.stderr == "npuport: NPUPORT_DEVICE=tpu is none of npu, cuda, cpu\n"


def test_exit_code_of_the_script_is_kept(tmp_path: Path) -> None:
    assert run(tmp_path, "train.py", text="import npuport.auto\nraise SystemExit(7)\n").returncode == 7


def test_traceback_shows_the_users_own_line(tmp_path: Path) -> None:
    text = "import npuport.auto\n\ndef fail(device='cuda'):\n    raise ValueError(device)\n\nfail()\n"
    done = run(tmp_path, "train.py", text=text)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].endswith('train.py", line 6, in <module>')
    assert any(line.endswith('train.py", line 4, in fail') for line in lines)
    assert lines[-1] == "ValueError: npu"
    assert "npuport" not in done.stderr


def test_spawned_processes_run_converted_code(tmp_path: Path) -> None:
    text = """import npuport.auto
import multiprocessing

DEVICE = "cuda:3"

def work(queue):
    queue.put((DEVICE, __name__))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(*queue.get(timeout=30))
    process.join()
"""
    done = run(tmp_path, "train.py", text=text)
    assert (done.stdout, done.stderr) == ("npu:3 __mp_main__\n", "")


def test_without_cann_one_line_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    environment |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "npuport", "run", "train.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if "libascendcl.so" not in done.stderr:
        pytest.skip("this machine has CANN")
    assert done.returncode == 2
    assert done.stderr.startswith("npuport: torch does not load here: libascendcl.so")
    assert "npuport run --sim" in done.stderr and "Traceback" not in done.stderr
    environment |= {"NPUPORT_DEVICE": "cpu"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode != 0, "torch loads torch_npu if the user says so"
    del environment["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    for start in (command, [sys.executable, "-m", "npuport.auto", "train.py"]):
        done = subprocess.run(
            start, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
