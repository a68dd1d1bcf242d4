"""`npuport model evaluate`: the scores as a table, as JSON, and lm-eval's results as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.llm.evaluation.running import Evaluation

SCHEMA = "npuport-evaluation/1"


def evaluate_folder(
    path: Path,
    device_name: str,
    dtype: str,
    wanted: Evaluation,
    *,
    own_code: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Evaluate, print the scores, and write lm-eval's results where they are wanted.

    Raises:
        UserError: an option, the folder, the device or a dataset is not as it must be.
    """
    from npuport.cli.shared import write_aside
    from npuport.llm.devices import chosen_device
    from npuport.llm.evaluation.running import evaluate

    with chosen_device(device_name) as device:
        results = evaluate(path, device, dtype, wanted, own_code=own_code)
    if output is not None:
        text = json.dumps(results, indent=2, ensure_ascii=False, default=str)
        write_aside(output, text.encode())
    print(document(path, results) if as_json else "\n".join(in_words(results, limited=wanted.limit is not None)))


def in_words(results: Mapping[str, Any], *, limited: bool) -> Iterator[str]:
    """The lines for a person."""
    from npuport.llm.evaluation.scores import scores_of
    from npuport.report.language import translate

    where = results["npuport"]
    yield translate(
        "on {device}, lm-eval {version}",
        device=" ".join(part for part in (where["device"], where["chip"]) if part),
        version=results.get("lm_eval_version"),
    )
    if where["simulated"]:
        yield translate("CPU kernels stand in for the NPU: the scores are of their arithmetic, not of the NPU's.")
    if limited:
        yield translate("Only the first samples of each task: no scores to publish.")
    yield ""
    scores = list(scores_of(results))
    width = max((len(one.task) for one in scores), default=4)
    for one in scores:
        filtered = "" if one.filter == "none" else f" ({one.filter})"
        error = "" if one.error is None else f" ± {one.error:.4f}"
        shots = results.get("n-shot", {}).get(one.task)
        shown = "" if shots is None else translate("{number}-shot", number=shots)
        yield f"{one.task:<{width}}  {one.metric + filtered:<22} {one.value:.4f}{error}  {shown}".rstrip()


def document(path: Path, results: Mapping[str, Any]) -> str:
    """The JSON document (schemas/npuport-evaluation-1.json)."""
    from npuport.llm.evaluation.scores import scores_of

    samples = results.get("n-samples", {})
    scores = [
        {
            "task": one.task,
            "metric": one.metric,
            "filter": one.filter,
            "value": one.value,
            "standard_error": one.error,
            "few_shot": results.get("n-shot", {}).get(one.task),
            "samples": samples.get(one.task, {}).get("effective"),
        }
        for one in scores_of(results)
    ]
    versions = {"lm_eval": results.get("lm_eval_version"), "transformers": results.get("transformers_version")}
    found = {"schema": SCHEMA, "path": str(path), **results["npuport"], "versions": versions, "scores": scores}
    return json.dumps(found, indent=2, ensure_ascii=False)
