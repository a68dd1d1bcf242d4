"""The JSON follows its schema, holds what the findings hold, and is the same for the same input."""

from __future__ import annotations

import json

import jsonschema
import pytest
from samples import finding

from npuport.findings import Applicability, Finding, Location, Severity
from npuport.report.json_report import SCHEMA_FILE, analysis_json

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def document(*findings: Finding) -> dict[str, object]:
    text = analysis_json(
        root="demo",
        findings=findings,
        files={"python": 2, "yaml": 1},
        settings={"target": "npu", "torch_version": "2.13.0", "chip": "Ascend910B3"},
        effort={"automatic": 1, "to_read": 0, "by_hand": 0, "files": 1},
        skipped=[{"path": "a", "reason": "b", "unreadable": True}],
        failures=[{"path": "a", "rule": "NP101", "message": "b"}],
    )
    return json.loads(text)  # type: ignore[no-any-return]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "findings",
    [
        (),
        (finding(),),
        (finding(new=None, severity=Severity.INFO), finding(level=Applicability.MANUAL)),
        (finding(evidence={"library": "apex", "values": {1, 2}, "nested": {"a": (1, None)}, "kind": Severity.INFO}),),
        (Finding("NP900", "n", Severity.ADVICE, Location("a\udcff.py", 1, 1, 1, 1, 3), "m"),),
    ],
    ids=["none", "safe fix", "no fix and manual fix", "evidence of any kind", "cell, and a path that is not UTF-8"],
)
def test_documents_follow_the_schema(findings: tuple[Finding, ...]) -> None:
    jsonschema.validate(document(*findings), SCHEMA)


@pytest.mark.parametrize(
    ("key", "value"), [("code", "E1"), ("severity", "fatal"), ("line", 0), ("surprise", 1), ("group", "fine")]
)
def test_the_schema_refuses_what_is_wrong(key: str, value: object) -> None:
    wrong = document(finding())
    wrong["findings"][0][key] = value  # type: ignore[index]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_a_finding_keeps_all_its_parts() -> None:
    (found,) = document(finding())["findings"]  # type: ignore[misc]
    assert found == {
        "code": "NP101",
        "name": "cuda-device-string",
        "severity": "error",
        "group": "must change",
        "path": "pkg/train.py",
        "line": 4,
        "column": 28,
        "end_line": 4,
        "end_column": 34,
        "cell": None,
        "message": "the device is called npu",
        "evidence": {},
        "basis": {"source": "torch_npu", "version": "2.13.0", "certainty": "measured"},
        "fix": {"applicability": "safe", "title": "rename", "edits": [{"start": 50, "end": 56, "new": "'npu'"}]},
    }


def test_sets_in_the_evidence_have_one_order() -> None:
    (found,) = document(finding(evidence={"dtypes": frozenset({"b", "a", "c"})}))["findings"]  # type: ignore[misc]
    assert found["evidence"] == {"dtypes": ["a", "b", "c"]}


def test_severities_are_counted() -> None:
    assert document(finding(), finding(severity=Severity.INFO))["summary"] == {
        "error": 1,
        "warning": 0,
        "advice": 0,
        "info": 1,
    }
