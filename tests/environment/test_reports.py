"""What leaves the machine: scripts that a shell understands, and bug reports without names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from environment.cases import CASES
from environment.machines import trained_on
from environment.shell import shellcheck
from npuport.environment.checks.registry import diagnose
from npuport.environment.fix_script import fix_script
from npuport.environment.privacy import scrubbed
from npuport.environment.snapshot import User

ADA = User("ada", 1000, ("ada",), "/home/ada", "node17", "/home/ada/work", None)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The fix script of every case."""
    root = tmp_path_factory.mktemp("cases")
    return {
        f"{number}.sh": fix_script(diagnose(case.machine.environment(root / str(number))))
        for number, case in enumerate(CASES)
    }


def test_every_fix_script_passes_shellcheck(scripts: dict[str, str], tmp_path: Path) -> None:
    assert shellcheck(scripts, tmp_path / "scripts") == ""


def test_what_a_person_must_complete_is_a_comment(scripts: dict[str, str]) -> None:
    for line in "".join(scripts.values()).splitlines():
        assert line.startswith("#") or not any(word in line for word in ("…", "sudo", "docker", "ADDRESS", "NETWORK"))


def test_a_fix_script_can_be_sourced(tmp_path: Path) -> None:
    machine = trained_on().having(None, HCCL_CONNECT_TIMEOUT="60", INF_NAN_MODE_ENABLE="0")
    script = tmp_path / "fix.sh"
    script.write_text(fix_script(diagnose(machine.environment(tmp_path / "root"))))
    command = f'export HCCL_CONNECT_TIMEOUT=60 INF_NAN_MODE_ENABLE=0; . "{script}"; env'
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "HCCL_CONNECT_TIMEOUT" not in run.stdout and "INF_NAN_MODE_ENABLE" not in run.stdout


def test_names_of_people_machines_and_networks_go() -> None:
    text = "/home/ada/x on node17 by ada, /home/bob/y, 10.0.0.5:29500, 127.0.0.1, torch 2.7.1.post2, nodes17, canada"
    assert scrubbed(text, ADA) == (
        "~/x on <host> by <user>, /home/<user>/y, <address>:29500, 127.0.0.1, torch 2.7.1.post2, nodes17, canada"
    )


def test_root_and_one_letter_names_stay() -> None:
    root = User("root", 0, (), "/root", "h", "/root", None)
    assert scrubbed("root h /root/x", root) == "root h ~/x"
