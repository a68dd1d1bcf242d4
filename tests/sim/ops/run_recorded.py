"""Run every `case_…` of the named modules plainly and recorded; print one JSON object: name -> error or null."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
import warnings

import torch
from harness import FOUND

from npuport.precision.operators.keeping import Summaries
from npuport.precision.operators.recording import Recorder


def found_by(function) -> list[torch.Tensor]:
    FOUND.clear()
    torch.manual_seed(0)
    function()
    return list(FOUND)


def compare(function, recorder: Recorder) -> str | None:
    plain = found_by(function)
    try:
        with recorder.following():
            recorded = found_by(function)
        for one, other in zip(recorded, plain, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    except Exception:  # reported to the test of this case
        return traceback.format_exc(limit=-4)
    return None


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    outcome: dict[str, str | None] = {}
    recorder = Recorder(Summaries())
    for name in names:
        module, _, wanted = name.partition(":")
        for case, function in list(vars(importlib.import_module(module)).items()):
            if case.startswith("case_") and wanted in ("", case):
                outcome[f"{module}:{case}"] = compare(function, recorder)
    assert len(recorder.take(0, 0).calls) > len(outcome), "next to nothing was recorded"
    print("OUTCOME " + json.dumps(outcome))


main(sys.argv[1:])
