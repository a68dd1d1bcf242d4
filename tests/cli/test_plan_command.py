"""`npuport plan`: its table, JSON, files and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from typer.testing import CliRunner

import npuport
from npuport.cli.app import app

SCHEMA = Path(npuport.__file__).parent / "report" / "schemas" / "npuport-parallel-plan-1.json"
SIZES = ["--layers", "32", "--hidden", "4096", "--heads", "32", "--ffn", "11008", "--vocab", "32000"]
runner = CliRunner()


def test_the_table_and_the_arithmetic() -> None:
    done = runner.invoke(app, ["plan", *SIZES, "--explain"], env={"NPUPORT_LANG": "en"})
    assert done.exit_code == 0, done.output
    assert "6.74e9 parameters, 8 devices of 64 GiB" in done.output
    assert "gradients: 4 x (3,369,340,928 / 1 + 0 / 1) = 13,477,363,712" in done.output


def test_json_follows_its_schema() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for more, code in ([], 0), (["--memory", "8"], 1), (["--framework", "fsdp"], 0):
        done = runner.invoke(app, ["plan", *SIZES, "--json", *more])
        said = json.loads(done.stdout)
        jsonschema.validate(said, schema)
        assert done.exit_code == code and bool(said["plans"]) == (code == 0) and bool(said["nearest"]) == (code == 1)
        for plan in said["plans"]:
            assert abs(sum(plan["memory"]["parts"].values()) - plan["memory"]["bytes"]) < 10


def test_what_is_missing_is_said() -> None:
    done = runner.invoke(app, ["plan", *SIZES, "--memory", "8"], env={"NPUPORT_LANG": "en"})
    assert done.exit_code == 1 and "GiB more than there is: TP" in done.output


def test_a_plan_is_written(tmp_path: Path) -> None:
    done = runner.invoke(app, ["plan", *SIZES, "--write", str(tmp_path / "plan.sh")])
    assert done.exit_code == 0 and "--tensor-model-parallel-size 2" in (tmp_path / "plan.sh").read_text(
        encoding="utf-8"
    )
    nothing = runner.invoke(app, ["plan", *SIZES, "--memory", "8", "--write", str(tmp_path / "none.sh")])
    assert nothing.exit_code == 1 and not (tmp_path / "none.sh").exists()


def test_misuse_is_named() -> None:
    for arguments, said in (
        (SIZES[:4], "--heads, --ffn, --vocab"),
        ([*SIZES, "--chip", "A100"], "unknown chip A100"),
        ([*SIZES, "--chip", "Ascend910_9391"], "--memory GIB"),
        ([*SIZES, "--framework", "jax"], "not jax"),
    ):
        done = runner.invoke(app, ["plan", *arguments], env={"NPUPORT_LANG": "en"})
        assert done.exit_code == 2 and said in done.output, done.output
