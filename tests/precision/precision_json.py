"""What the commands print with --json, held against the schemas in the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import jsonschema

import npuport

SCHEMAS = Path(npuport.__file__).parent / "report" / "schemas"


def schema_of(command: str) -> Any:
    return json.loads((SCHEMAS / f"npuport-precision-{command}-1.json").read_text(encoding="utf-8"))


def document_of(command: str, text: str) -> Any:
    """The document that `npuport precision COMMAND --json` printed, which follows its schema and is JSON: no NaN."""
    document = json.loads(text, parse_constant=_refuse)
    jsonschema.validate(document, schema_of(command), cls=jsonschema.Draft202012Validator)
    return document


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")
