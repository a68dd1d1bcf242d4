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
        monkeypatch.setattr("npuport.environment.machine.this_machine", lambda _limit, _python=None: built)

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


def test_markdown_for_a_bug_report_names_nobody(npuport: Npuport, seated: Seated) -> None:
    seated(trained_on().having(None, MASTER_ADDR="10.1.2.3", http_proxy="http://ada:secret@10.9.9.9:3128"))
    shown = npuport("doctor", "--markdown").out
    assert "torch_npu 2.5.1.post1" in shown and "MASTER_ADDR=<address>" in shown
    for name in ("ada", "node17", "10.1.2.3", "10.9.9.9", "secret"):
        assert name not in shown
    named = npuport("doctor", "--markdown", "--with-names").out
    assert "/home/ada" in named and "10.1.2.3" in named and "secret" not in named


def test_scripts_are_written_whole(npuport: Npuport, seated: Seated, tmp_path: Path) -> None:
    seated(trained_on().having(None, ASCEND_LAUNCH_BLOCKING="1"))
    script = tmp_path / "fix.sh"
    result = npuport("doctor", "--fix-script", script)
    assert "unset ASCEND_LAUNCH_BLOCKING" in script.read_text()
    assert "read it before you run it" in result.err
    assert npuport("doctor", "--fix-script", tmp_path / "none" / "fix.sh").code == 2


def test_a_plan(npuport: Npuport, tmp_path: Path) -> None:
    wish = "torch 2.7, Ascend910B3, Python 3.11, aarch64, openEuler 22.03"
    script = tmp_path / "install.sh"
    result = npuport("doctor", "--plan", wish, "--install-script", script)
    assert (
        result.code == 0
        and "2.7.1.post8" in result.out
        and "Ascend-cann-910b-ops_9.1.0_linux-aarch64.run" in result.out
    )
    assert "torch-npu==2.7.1.post8" in script.read_text()
    assert json.loads(npuport("doctor", "--plan", wish, "--json").out)["cann"] == "9.1.0"
    refused = npuport("doctor", "--plan", "torch 2.7.0")
    assert refused.code == 2 and "Near are: torch 2.7.1" in refused.err


def test_a_plan_for_this_machine(npuport: Npuport, seated: Seated) -> None:
    seated(trained_on())
    result = npuport("doctor", "--plan", "here, torch 2.5")
    assert "2.5.1.post1" in result.out and "Ascend-cann-kernels-910b_8.2.RC1_linux-aarch64.run" in result.out
    assert "2.6.0" in npuport("doctor", "--plan", "here").out


def test_clashes_of_a_list(npuport: Npuport, tmp_path: Path) -> None:
    listed = tmp_path / "requirements.txt"
    listed.write_text("torch==2.5.0\n")
    assert npuport("doctor", "--plan", listed).code == 1
    assert json.loads(npuport("doctor", "--plan", listed, "--json").out)["diagnoses"][0]["code"] == "ND302"
    listed.write_text("torch==2.5.1\ntorch-npu==2.5.1\n")
    assert npuport("doctor", "--plan", listed).code == 0


def test_two_machines_are_compared(npuport: Npuport, seated: Seated, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    seated(trained_on())
    first.write_text(npuport("doctor", "--json").out)
    document = json.loads(first.read_text())
    document["environment"]["variables"]["HCCL_BUFFSIZE"] = "400"
    second.write_text(json.dumps(document))
    assert npuport("doctor", "--compare", first, first).out == "the two machines agree\n"
    result = npuport("doctor", "--compare", first, second)
    assert (
        result.code == 1
        and "must agree in one job\n  variables.HCCL_BUFFSIZE\n    a.json: none\n    b.json: 400" in result.out
    )
    assert json.loads(npuport("doctor", "--compare", first, second, "--json").out)["differences"][0]["second"] == "400"


def test_options_that_exclude_each_other(npuport: Npuport, tmp_path: Path) -> None:
    assert npuport("doctor", "--plan", "torch 2.7", "--compare", "a", "b").code == 2
    assert npuport("doctor", "--install-script", tmp_path / "x.sh").code == 2


def test_a_check_is_explained(npuport: Npuport) -> None:
    for word in ("ND303", "nd303", "torch-npu-for-other-torch"):
        result = npuport("explain", word)
        assert result.code == 0 and "undefined symbol" in result.out and "issues/35" in result.out
