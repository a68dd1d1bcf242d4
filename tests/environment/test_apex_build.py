"""The script that builds Apex for Ascend, for machines that do not exist, and the check of its wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from environment.machines import SITE, Faked, distribution, trained_on
from npuport.environment.apex.plan import BuildPlan, build_plan
from npuport.environment.apex.script import script_of
from npuport.environment.apex.wheel import wheel_faults
from npuport.errors import UserError
from npuport.facts.apex_builds import apex_build_for

SHELLCHECK = Path(sys.executable).with_name("shellcheck")
SITE64 = "/usr/lib64/python3.10/site-packages"


def open_euler() -> Faked:
    """An openEuler machine: packages under lib64, a newer setuptools, NVIDIA's Apex, Docker, a proxy."""
    return (
        trained_on()
        .without(SITE)
        .having(
            {
                "/etc/os-release": 'ID="openEuler"\nVERSION_ID="22.03"\n',
                "/usr/bin/docker": "",
                **distribution("torch", "2.6.0", site=SITE64),
                **distribution("setuptools", "80.9.0", site=SITE64),
                **distribution("apex", "0.1", site=SITE64),
            },
            https_proxy="http://proxy:3128",
        )
        .running(prefix="/usr", platlibdir="lib64", search_path=(SITE64,), executable="/usr/bin/python3.10")
    )


def planned(faked: Faked, root: Path) -> tuple[BuildPlan, str]:
    plan = build_plan(faked.machine(root))
    return plan, script_of(plan)


def test_a_machine_with_nothing_special(tmp_path: Path) -> None:
    plan, script = planned(trained_on(), tmp_path)
    assert plan.wheel == "apex-0.1+ascend-cp310-cp310-linux_aarch64.whl"
    assert plan.blockers == ()
    assert "apt-get install" in script
    assert "setuptools<=" not in script  # 65.5.0 is old enough
    assert "lib64" not in script
    assert "4ef930c1c884fdca5f472ab2ce7cb9b505d26c1a" in script
    assert script.index("pip uninstall -y apex") < script.index("pip install --no-deps")
    assert "none is set" in script


def test_open_euler(tmp_path: Path) -> None:
    plan, script = planned(open_euler(), tmp_path)
    assert "dnf install" in script and "gcc-c++" in script
    assert "sed -i 's#/lib/python#/lib64/python#g' setup.py" in script
    assert script.index("sed -i") < script.index("bdist_wheel")
    assert "'setuptools<=65.7.0'" in script
    assert "apex 0.1 is installed here" in script
    assert "https_proxy is set" in script
    assert "http://proxy" not in script  # it may hold a password
    assert any("docker pull takes no proxy" in str(note) for note in plan.notes)


def test_a_docker_daemon_that_has_a_proxy(tmp_path: Path) -> None:
    configured = {"/etc/systemd/system/docker.service.d/p.conf": '[Service]\nEnvironment="HTTPS_PROXY=http://p"\n'}
    plan, _ = planned(open_euler().having(configured), tmp_path)
    assert not any("docker" in str(note) for note in plan.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda faked: faked.without(f"{SITE}/torch-"), "torch is not installed"),
        (lambda faked: faked.without(f"{SITE}/torch-").having(distribution("torch", "2.13.0")), "not documented"),
        (lambda faked: faked.without(f"{SITE}/torch-").having(distribution("torch", "2.9.0"))
         .running(python="3.14.0"), "for Python 3.9, 3.10, 3.11, 3.12, not 3.14"),
    ],
)  # fmt: skip
def test_what_keeps_the_build_from_working(change: Callable[[Faked], Faked], said: str, tmp_path: Path) -> None:
    plan, script = planned(change(trained_on()), tmp_path)
    assert said in str(plan.blockers[0])
    assert f"# {plan.blockers[0]}." in script


@pytest.mark.parametrize("faked", [trained_on(), open_euler(), trained_on().without(f"{SITE}/torch-")])
def test_scripts_pass_shellcheck(faked: Faked, tmp_path: Path) -> None:
    if not SHELLCHECK.exists():
        pytest.skip("shellcheck is not installed")
    script = tmp_path / "build.sh"
    script.write_text(planned(faked, tmp_path / "root")[1], encoding="utf-8")
    done = subprocess.run([SHELLCHECK, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_script_stops_where_torch_is_missing(tmp_path: Path) -> None:
    """Run as far as the check of torch, with a Python that has none: nothing is fetched."""
    faked = trained_on().running(executable=sys.executable)
    text = planned(faked, tmp_path / "root")[1].replace("git patch g++", "sh")
    script = tmp_path / "build.sh"
    script.write_text(text.replace("import os, torch;", "import os, no_torch_here;"), encoding="utf-8")
    done = subprocess.run(["bash", script, tmp_path / "work"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no_torch_here" in done.stderr
    assert not (tmp_path / "work").exists()


def test_builds_are_found_by_minor_version() -> None:
    build = apex_build_for("2.7.1+cpu")
    assert build is not None
    assert build.cann == ("8.5.0", "8.3.RC1")
    assert apex_build_for("2.13.0") is None


AARCH64, X86_64 = 0xB7, 0x3E


def wheel(
    folder: Path, name: str = "apex-0.1+ascend-cp310-cp310-linux_aarch64.whl", machine: int = AARCH64, **files: str
) -> Path:
    elf = b"\x7fELF" + bytes(14) + machine.to_bytes(2, "little") + bytes(44)
    contents = {
        "apex/amp/frontend.py": "def initialize(combine_grad=None): ...",
        "apex/optimizers/__init__.py": "from .npu_fused_adamw import NpuFusedAdamW",
        **{key.replace("__", "/") + ".py": text for key, text in files.items()},
    }
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in contents.items():
            if text:
                archive.writestr(file, text)
        archive.writestr("apex_C.cpython-310-aarch64-linux-gnu.so", elf)
    return path


def test_a_good_wheel(tmp_path: Path) -> None:
    assert wheel_faults(wheel(tmp_path), trained_on().process) == []


@pytest.mark.parametrize(
    ("name", "machine", "files", "said"),
    [
        ("apex-0.1-cp310-cp310-linux_aarch64.whl", AARCH64, {}, "NVIDIA's own Apex"),
        ("apex-0.1+ascend-cp311-cp311-linux_aarch64.whl", AARCH64, {}, "this Python is cp310"),
        ("apex-0.1+ascend-cp310-cp310-linux_x86_64.whl", AARCH64, {}, "this machine is aarch64"),
        ("apex-0.1+ascend-cp310-cp310-linux_aarch64.whl", X86_64, {}, "compiled for x86_64"),
        ("apex-0.1+ascend-cp310-cp310-linux_aarch64.whl", AARCH64, {"apex__amp__frontend": "x"}, "patch was not"),
        ("apex-0.1+ascend-cp310-cp310-linux_aarch64.whl", AARCH64, {"apex__amp__frontend": ""}, "this is not Apex"),
    ],
)
def test_what_is_wrong_with_a_wheel(name: str, machine: int, files: dict[str, str], said: str, tmp_path: Path) -> None:
    faults = wheel_faults(wheel(tmp_path, name, machine, **files), trained_on().process)
    assert [said in str(fault) for fault in faults] == [True]


def test_what_is_no_wheel(tmp_path: Path) -> None:
    for name in ("apex.whl", "apex-0.1+ascend-cp310-cp310-linux_aarch64.whl"):
        (tmp_path / name).write_text("", encoding="utf-8")
        with pytest.raises(UserError, match="wheel"):
            wheel_faults(tmp_path / name, trained_on().process)
