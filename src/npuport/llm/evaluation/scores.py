"""The scores in a file of lm-eval's results, and each sample's part in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npuport.errors import UserError


@dataclass(frozen=True)
class Score:
    """One metric of one task or group. ``error`` is the standard error, None where lm-eval gives none."""

    task: str
    metric: str
    filter: str
    value: float
    error: float | None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.task, self.metric, self.filter


@dataclass(frozen=True)
class Results:
    """A run of lm-eval. ``samples`` has the logged samples of each task, where they were kept."""

    place: str
    document: Mapping[str, Any]
    samples: Mapping[str, list[Mapping[str, Any]]]

    @property
    def scores(self) -> dict[tuple[str, str, str], Score]:
        return {one.key: one for one in scores_of(self.document)}

    def settings(self, task: str) -> dict[str, Any]:
        """What must be equal for two scores of a task to be of the same thing."""
        document = self.document
        return {
            "version": document.get("versions", {}).get(task),
            "n-shot": document.get("n-shot", {}).get(task),
            "samples": document.get("n-samples", {}).get(task, {}).get("effective"),
            "chat template": document.get("chat_template_sha") or bool(document.get("chat_template")),
            "system instruction": document.get("system_instruction"),
        }

    def prompts(self, task: str) -> dict[Any, Any]:
        """The hash of each sample's prompt, by the sample's number; empty where no samples were kept."""
        return {one.get("doc_id"): one.get("prompt_hash") for one in self.samples.get(task, ())}

    def parts(self, score: Score) -> dict[Any, float]:
        """Each sample's value of a metric, by its number; empty where none were kept."""
        found = {}
        for one in self.samples.get(score.task, ()):
            value = one.get(score.metric)
            if one.get("filter", "none") == score.filter and isinstance(value, int | float):
                found[one.get("doc_id")] = float(value)
        return found


def scores_of(document: Mapping[str, Any]) -> Iterator[Score]:
    """The scores in lm-eval's order: ``results[task]["acc,none"]`` with its ``"acc_stderr,none"``."""
    for task, found in document["results"].items():
        for name, value in found.items():
            metric, comma, filtered = name.partition(",")
            if not comma or metric.endswith("_stderr") or not isinstance(value, int | float):
                continue
            error = found.get(f"{metric}_stderr,{filtered}")
            yield Score(task, metric, filtered, float(value), float(error) if isinstance(error, int | float) else None)


def read_results(path: Path) -> Results:
    """A file that lm-eval or `npuport model evaluate` wrote, with the samples in it or in files beside it.

    Raises:
        UserError: it cannot be read, or is another kind of file.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror) from error
    except ValueError as error:
        raise UserError("{path} holds no results of lm-eval.", path=path) from error
    if not isinstance(document, dict) or not isinstance(document.get("results"), dict):
        raise UserError("{path} holds no results of lm-eval.", path=path)
    samples = document.get("samples") or _samples_beside(path, document["results"])
    return Results(str(path), document, samples)


def _samples_beside(path: Path, tasks: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """lm-eval writes results_DATE.json, and samples_TASK_DATE.jsonl with --log_samples."""
    date = path.stem.removeprefix("results_")
    found = {}
    for task in tasks:
        place = path.with_name(f"samples_{task}_{date}.jsonl")
        if place.is_file():
            found[task] = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines() if line.strip()]
    return found
