"""A machine and what is wrong with it as JSON, with a versioned schema (schemas/npuport-environment-1.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from npuport import __version__
from npuport.findings import Diagnosis

SCHEMA = "npuport-environment/1"
SCHEMA_FILE = Path(__file__).parent / "schemas" / "npuport-environment-1.json"


def doctor_json(environment: Mapping[str, Any], diagnoses: Sequence[Diagnosis]) -> str:
    """One document; English, whatever the user's language, so that programs can read it."""
    document = {
        "schema": SCHEMA,
        "npuport": __version__,
        "environment": dict(environment),
        "diagnoses": [diagnosis_json(one) for one in diagnoses],
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def diagnosis_json(one: Diagnosis) -> dict[str, Any]:
    """One diagnosis."""
    return {
        "code": one.code,
        "name": one.name,
        "severity": one.severity.value,
        "seen": str(one.seen),
        "why": str(one.why),
        "fix": str(one.fix),
        "commands": list(one.commands),
        "basis": {"source": one.basis.source, "version": one.basis.version, "certainty": one.basis.certainty},
    }
