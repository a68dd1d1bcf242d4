"""The schemas of what `npuport precision … --json` prints. That real output follows them is checked where there is
some: each test that reads such output does so by `precision_json.document_of`."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import pytest
from msprobe_dumps import small_gpt, write_dump
from precision_json import SCHEMAS, document_of, schema_of

from npuport.cli.precision_compare import compare_folders
from npuport.cli.shared import print_json

COMMANDS = ("bisect", "check-ops", "compare", "curves", "overflow", "preflight", "ranks", "state", "substitute")


def test_every_schema_belongs_to_a_command() -> None:
    names = {path.name for path in SCHEMAS.glob("npuport-precision-*.json")}
    assert names == {f"npuport-precision-{command}-1.json" for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_schema_is_one_and_names_its_command(command: str) -> None:
    schema = schema_of(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"npuport precision {command} --json"


def test_a_comparison_of_statistics_with_nan_is_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dump(tmp_path / "a", small_gpt())
    write_dump(tmp_path / "b", small_gpt(math.nan, largest=math.nan))
    assert compare_folders(tmp_path / "a", tmp_path / "b", as_json=True) == 1
    text = capsys.readouterr().out
    (document,) = document_of("compare", text)
    assert document["suspects"][0]["kind"] == "not finite"
    for wrong in ({**document, "surprise": 1}, {**document, "confidence": "sure"}, {**document, "suspects": [{}]}):
        with pytest.raises(jsonschema.ValidationError):
            document_of("compare", json.dumps([wrong]))


def test_numbers_that_json_does_not_have_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1.5, math.nan, (math.inf, -math.inf)], "中": {"b": math.nan, "c": "NaN", "d": 3}})
    text = capsys.readouterr().out
    assert json.loads(text) == {"a": [1.5, None, [None, None]], "中": {"b": None, "c": "NaN", "d": 3}}
    assert "中" in text
