"""`npuport run`: every way in which a Python process of the run starts. What it runs needs no torch here."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

import npuport
from npuport import processes
from npuport.runtime import scripts, variables
from npuport.search_path import STARTUP

needs_torch_npu = pytest.mark.skipif(
    importlib.util.find_spec("torch_npu") is None, reason="code is converted where torch_npu is installed"
)
PYTHON = sys.executable
SCHEMA = json.loads((Path(npuport.__file__).parent / "report/schemas/npuport-migration-1.json").read_text())
FILES = {
    "settings.py": 'DEVICE = "cuda"\n',
    "train.py": 'from settings import DEVICE\ndevice = "cuda:1"\nprint(DEVICE, device)\n',
}


def environment(**changes: str) -> dict[str, str]:
    names = ("PYTHONPATH", "NPUPORT_AUTO", "NPUPORT_SIM", "CUDA_VISIBLE_DEVICES")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "NPUPORT_DEVICE": "npu", "PYTHONPATH": os.fspath(Path(processes.__file__).parents[1]), **changes}


def run(folder: Path, *command: str, **changes: str) -> subprocess.CompletedProcess[str]:
    for name, text in FILES.items():
        if not (folder / name).exists():
            (folder / name).write_text(text)
    return subprocess.run(
        [PYTHON, "-m", "npuport", "run", *command],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_torch_npu
@pytest.mark.parametrize(
    "command",
    [
        ("train.py",),
        ("-m", "train"),
        ("--", PYTHON, "-u", "train.py"),
        ("sh", "-c", f"{PYTHON} train.py"),
        ("--", PYTHON, "-c", "import runpy; runpy.run_path('train.py')"),
        ("--", PYTHON, "-c", "import subprocess as s, sys; sys.exit(s.call([sys.executable, 'train.py']))"),
    ],
    ids=["script", "module", "python", "shell", "run_path", "subprocess"],
)
def test_scripts_are_converted_whatever_starts_them(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run(tmp_path, *command)
    assert (done.stdout, done.stderr, done.returncode) == ("npu npu:1\n", "", 0)


@needs_torch_npu
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_children_of_multiprocessing_run_converted_code(tmp_path: Path, method: str) -> None:
    (tmp_path / "train.py").write_text(f"""import multiprocessing
from concurrent.futures import ProcessPoolExecutor
device = "cuda:3"

def work():
    from settings import DEVICE
    return device, DEVICE, __name__

if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("{method}")) as pool:
        print(*pool.submit(work).result())
""")
    name = "__main__" if method == "fork" else "__mp_main__"
    done = run(tmp_path, "train.py")
    assert (done.stdout, done.stderr) == (f"npu:3 npu {name}\n", "")


@needs_torch_npu
def test_the_report_holds_every_process(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(
        "import subprocess, sys\nimport settings\nsys.exit(subprocess.call([sys.executable, 'train.py']) or 5)\n"
    )
    done = run(tmp_path, "--report", "r.json", "--report", "r.html", "both.py", CUDA_LAUNCH_BLOCKING="1")
    assert done.returncode == 5 and done.stdout == "npu npu:1\n"
    document = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert [(one["path"], one["line"], one["processes"]) for one in document["migration"]["sites"]] == [
        ("settings.py", 1, 2),
        ("train.py", 2, 1),
    ]
    assert document["run"]["exit_code"] == 5 and len(document["migration"]["variables"]) == 1
    assert "both.py" in (tmp_path / "r.html").read_text()
    assert done.stderr.splitlines()[1:] == [
        "npuport: the run ended with exit code 5",
        "         CUDA code: 2 lines in 2 files: 2 the same",
        "         report: r.json, r.html",
    ]


def test_a_report_where_nothing_is_converted_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "--summary", "train.py", NPUPORT_DEVICE="cpu")
    assert done.stdout == "cuda cuda:1\n"
    assert done.stderr == "npuport: nothing was converted: no NPU was wanted for this run\n"


def test_a_report_that_cannot_be_written_is_said_before_the_run(tmp_path: Path) -> None:
    for name, word in (("r.pdf", ".html or .json"), ("no/r.html", "there is no folder")):
        done = run(tmp_path, "--report", name, "train.py")
        assert done.returncode == 2 and done.stdout == "" and word in done.stderr


@needs_torch_npu
def test_the_main_module_is_as_python_makes_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import json, sys\n"
        "names = [n for n in ('__name__', '__file__', '__package__', '__spec__', '__cached__') if n in globals()]\n"
        "names += sorted(set(globals()) - {'__annotations__', *names})\n"
        "print(names, [globals()[n] for n in names[:5]], type(__loader__), sys.argv, sys.path[0], len(sys.path))\n"
        "print(sys.modules['__main__'].__dict__ is globals(), sys.orig_argv[1:])\n"
    )
    (tmp_path / "link.py").symlink_to("train.py")
    path = os.pathsep.join([STARTUP, environment()["PYTHONPATH"]])  # as it is in the other run
    for script in ("train.py", "./train.py", "link.py"):
        plain = run(tmp_path, script, "--x", NPUPORT_DEVICE="cuda", PYTHONPATH=path)
        assert run(tmp_path, script, "--x").stdout == plain.stdout != ""


@needs_torch_npu
def test_what_is_no_script_of_the_users_is_left_alone(tmp_path: Path) -> None:
    assert run(tmp_path, "--", PYTHON, "-c", 'device = "cuda:1"; print(device)').stdout == "cuda:1\n"
    assert run(tmp_path, "--", PYTHON, "-m", "pip", "--version").stdout.startswith("pip ")
    assert run(tmp_path, "--", PYTHON, "missing").stderr.endswith("No such file or directory\n")
    pip = importlib.util.find_spec("pip.__main__")
    assert pip is not None and pip.origin is not None
    for path in (pip.origin, str(tmp_path), str(tmp_path / "missing.py"), scripts.__file__):
        with pytest.raises(ImportError):
            scripts._finder(path)


@needs_torch_npu
def test_the_users_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.own = True\n")
    path = os.pathsep.join([environment()["PYTHONPATH"], os.fspath(tmp_path)])
    (tmp_path / "train.py").write_text('device = "cuda"\nprint(own, device)\n')
    assert run(tmp_path, "train.py", PYTHONPATH=path).stdout == "True npu\n"


def test_nothing_happens_where_no_npu_is_wanted(tmp_path: Path) -> None:
    done = run(tmp_path, "train.py", NPUPORT_DEVICE="cuda", CUDA_VISIBLE_DEVICES="1,0")
    assert (done.stdout, done.stderr) == ("cuda cuda:1\n", "")


def test_nothing_happens_on_a_machine_with_cuda(tmp_path: Path) -> None:
    for name in ("torch", "torch_npu"):
        (tmp_path / "site" / name).mkdir(parents=True)
    (tmp_path / "site/torch/version.py").write_text("cuda: str | None = '12.4'\n")
    (tmp_path / "site/torch/__init__.py").write_text("class cuda:\n    is_available = staticmethod(lambda: True)\n")
    (tmp_path / "site/torch_npu/__init__.py").touch()
    path = os.pathsep.join([os.fspath(tmp_path / "site"), environment()["PYTHONPATH"]])
    done = run(tmp_path, "train.py", NPUPORT_DEVICE="", PYTHONPATH=path, CUDA_VISIBLE_DEVICES="1,0")
    assert (done.stdout, done.stderr) == ("cuda cuda:1\n", "")


def test_a_missing_script_is_one_clear_error(tmp_path: Path) -> None:
    for command in (["trian.py"], ["--", PYTHON, "trian.py"]):
        done = run(tmp_path, *command)
        assert done.returncode == 2
        assert (
            done.stderr == f"npuport: there is no script trian.py in {tmp_path}; check the spelling and the folder.\n"
        )
    (tmp_path / "run.sh").write_text("python train.py\n")
    done = run(tmp_path, "run.sh")
    assert done.returncode == 2 and "npuport run -- bash run.sh" in done.stderr
    done = run(tmp_path, "no-such-command")
    assert done.stderr.startswith("npuport: there is no command 'no-such-command'") and done.returncode == 2


def test_another_python_with_torch_npu_needs_npuport(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho npuport >&2\nexit 1\n")
    other.chmod(0o755)
    done = run(tmp_path, "--", os.fspath(other), "train.py")
    assert done.returncode == 2 and f"{other} -m pip install npuport" in done.stderr


@needs_torch_npu
@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.abort()", 134)])
def test_exit_codes_are_the_scripts(tmp_path: Path, code: str, expected: int) -> None:
    (tmp_path / "train.py").write_text(code)
    assert run(tmp_path, "train.py").returncode == expected


@needs_torch_npu
@pytest.mark.parametrize(
    ("code", "last"),
    [("def f(device='cuda'):\n    raise ValueError(device)\nf()\n", "ValueError: npu"), ("x = = 1\n", "SyntaxError")],
)
def test_tracebacks_are_the_users_own(tmp_path: Path, code: str, last: str) -> None:
    (tmp_path / "train.py").write_text(code)
    done = run(tmp_path, "train.py")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(last)
    assert "npuport" not in done.stderr and "runpy" not in done.stderr


@needs_torch_npu
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_pass_through(tmp_path: Path, number: signal.Signals, expected: int) -> None:
    script = tmp_path / "wait.py"
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen(
        [PYTHON, "-m", "npuport", "run", script],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
        time.sleep(0.1)
        parent.send_signal(number)
        assert parent.wait(timeout=20) == expected
        assert parent.stderr is not None
        error = parent.stderr.read()
        assert "npuport" not in error and ("KeyboardInterrupt" in error) is (number == signal.SIGINT)


def test_variables_that_mean_the_same_are_passed_on_once() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "2,0", "CUDA_LAUNCH_BLOCKING": "1", "NCCL_BUFFSIZE": "4194304", "HOME": "/"}
    said = list(variables.hand_on(environ))
    assert environ["ASCEND_RT_VISIBLE_DEVICES"] == "0,2"  # any other order shows no device
    assert environ["ASCEND_LAUNCH_BLOCKING"] == "1"
    assert "HCCL_BUFFSIZE" not in environ
    assert said[0] == "CUDA_LAUNCH_BLOCKING=1 is passed on as ASCEND_LAUNCH_BLOCKING=1"
    assert said[1] == "CUDA_VISIBLE_DEVICES=2,0 is passed on as ASCEND_RT_VISIBLE_DEVICES=0,2"
    assert said[2].startswith("NCCL_BUFFSIZE=4194304 has no effect; HCCL_BUFFSIZE is not set for it: in MiB")
    assert len(said) == 3
    assert list(variables.hand_on(environ)) == []  # what a child does


@pytest.mark.parametrize(
    ("environ", "set_for_it"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1", "ASCEND_RT_VISIBLE_DEVICES": "3"}, "3"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-3faf"}, None),
        ({"CUDA_VISIBLE_DEVICES": ""}, None),
    ],
)
def test_visible_devices_that_are_not_passed_on(environ: dict[str, str], set_for_it: str | None) -> None:
    said = list(variables.hand_on(environ))
    assert environ.get("ASCEND_RT_VISIBLE_DEVICES") == set_for_it
    assert len(said) == (set_for_it is None)
