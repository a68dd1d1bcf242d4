"""`npuport doctor` on machines that do not exist, and on this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from running import Npuport

from environment.machines import Faked, trained_on, without_npu
from npuport.report.doctor_json import SCHEMA_FILE

Seated = Callable[[Faked], None]


@pytest.fixture
def seated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Seated:
    """``seated(machine)`` lets the command line run on that machine."""

    def sit(machine: Faked) -> None:
        built = machine.machine(tmp_path / "root")
        monkeypatch.setattr("npuport.environment.machine.this_machine", lambda _limit: built)

    return sit


def test_a_machine_that_trains(npuport: Npuport, seated: Seated) -> None:
    seated(trained_on())
    result = npuport("doctor")
    assert result.code == 0
    assert "8 x 910B3" in result.out and "nothing is wrong" in result.out
    assert "torch_npu 2.5.1" in result.out


def test_what_is_wrong_comes_with_reason_fix_and_exit_code(npuport: Npuport, seated: Seated) -> None:
    seated(trained_on().without("/usr/local/Ascend/ascend-toolkit"))
    result = npuport("doctor")
    assert result.code == 1
    assert "ND201 no-cann  will fail" in result.out and "fix Install the toolkit" in result.out
    assert npuport("doctor", "--fail-on", "never").code == 0


def test_a_laptop_is_no_failure(npuport: Npuport, seated: Seated) -> None:
    seated(without_npu())
    result = npuport("doctor")
    assert result.code == 0 and "npuport run --sim" in result.out
    assert npuport("doctor", "--fail-on", "info").code == 1


def test_json_follows_its_schema(npuport: Npuport, seated: Seated) -> None:
    seated(trained_on().without("/usr/local/Ascend/driver"))
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(npuport("doctor", "--json").out)
    jsonschema.validate(document, schema)
    assert document["environment"]["user"]["host"] == "node17"
    assert "ND101" in [one["code"] for one in document["diagnoses"]]


def test_chinese(npuport: Npuport, seated: Seated, monkeypatch: pytest.MonkeyPatch) -> None:
    seated(trained_on().without("/usr/local/Ascend/ascend-toolkit"))
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    assert "未找到 CANN toolkit" in npuport("doctor").out


def test_on_this_machine_nothing_is_imported_that_a_broken_installation_lacks() -> None:
    code = (
        "import sys; from npuport.cli import main; sys.argv = ['npuport', 'doctor', '--json']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(bool({'torch', 'torch_npu', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["environment"]["python"]["executable"] == sys.executable
