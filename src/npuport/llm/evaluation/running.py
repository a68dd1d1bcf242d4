"""A model evaluated by lm-eval on one device."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from npuport.errors import UserError, first_line
from npuport.llm.devices import Device
from npuport.llm.evaluation import rouge
from npuport.llm.loading import folder_of, load


@dataclass(frozen=True)
class Rouge:
    """Answers to field ``given`` of a JSONL file's lines, scored against field ``wanted``."""

    path: Path
    given: str
    wanted: str
    answer_tokens: int


@dataclass(frozen=True)
class Evaluation:
    """``folder`` holds more tasks (YAML); paths in them are taken from there. ``limit`` counts samples of each task."""

    tasks: tuple[str, ...]
    folder: Path | None
    rouge: Rouge | None
    few_shot: int | None
    limit: int | None
    batch: int
    chat_template: bool


def evaluate(path: Path, device: Device, dtype: str, wanted: Evaluation, *, own_code: bool) -> dict[str, Any]:
    """lm-eval's results, with its samples: what it writes itself, and what ``comparing`` reads.

    The model is loaded here: lm-eval takes another device in silence where it does not know the name.

    Raises:
        UserError: a task is unknown, its dataset is not here, or the folder holds no model.
    """
    if find_spec("lm_eval") is None:
        raise UserError("npuport model evaluate takes the package lm_eval:\n  pip install 'npuport[eval]'")
    folder_of(path)  # a name mistyped shows before datasets are asked for
    tasks = _loaded_tasks(wanted)  # before the model: what is missing shows at once
    loaded = load(path, device, dtype, random_weights=False, own_code=own_code)
    if loaded.tokenizer is None:
        raise UserError("{path} holds no tokenizer: lm-eval asks in words.", path=path)
    import lm_eval
    from lm_eval.models.huggingface import HFLM

    results = lm_eval.simple_evaluate(
        model=HFLM(pretrained=loaded.model, tokenizer=loaded.tokenizer, batch_size=wanted.batch),
        model_args={"pretrained": str(path), "dtype": loaded.dtype},
        tasks=tasks,
        num_fewshot=wanted.few_shot,
        batch_size=wanted.batch,
        device=device.name,
        limit=wanted.limit,
        apply_chat_template=wanted.chat_template,
        log_samples=True,
    )
    return {**results, "npuport": {"device": device.name, "chip": device.model, "simulated": device.simulated}}


def _loaded_tasks(wanted: Evaluation) -> list[Any]:
    """Groups and tasks with their datasets, as ``simple_evaluate`` takes them."""
    found: list[Any] = []
    if wanted.tasks:
        manager = _manager(wanted)
        with _inside(wanted.folder):
            found += _objects(manager, list(wanted.tasks))
    if wanted.rouge is not None:
        from lm_eval.tasks import TaskManager

        found += _objects(TaskManager(include_defaults=False), [_rouge_task(wanted.rouge)])
    return found


def _rouge_task(wanted: Rouge) -> dict[str, Any]:
    if find_spec("rouge_score") is None:
        raise UserError("ROUGE takes the package rouge_score:\n  pip install 'npuport[eval]'")
    try:
        lines = [line for line in wanted.path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=wanted.path, reason=error.strerror) from error
    if not lines:
        raise UserError("{path} holds no lines.", path=wanted.path)
    for number, line in enumerate(lines, 1):
        _check_line(line, number, wanted)
    return rouge.task(str(wanted.path.resolve()), wanted.given, wanted.wanted, wanted.answer_tokens)


def _check_line(line: str, number: int, wanted: Rouge) -> None:
    place = f"{wanted.path}:{number}"
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UserError("{place} is no JSON object.", place=place) from error
    if not isinstance(record, dict):
        raise UserError("{place} is no JSON object.", place=place)
    given, right = record.get(wanted.given), record.get(wanted.wanted)
    texts = [right] if isinstance(right, str) else right
    if not isinstance(given, str) or not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise UserError(
            "{place}: field {given} must be a text, and {wanted} a text or a list of texts. Its fields are {fields}; "
            "name two with --rouge-fields INPUT,OUTPUT.",
            place=place,
            given=wanted.given,
            wanted=wanted.wanted,
            fields=", ".join(sorted(record)) or "-",
        )
    if not texts:
        raise UserError("{place}: there is no right output to score against.", place=place)


def _manager(wanted: Evaluation) -> Any:
    """The tasks of the folder alone where they are all that is asked for: reading lm-eval's own takes seconds."""
    from lm_eval.tasks import TaskManager

    if wanted.folder is None:
        return TaskManager()
    if not wanted.folder.is_dir():
        raise UserError("{path} does not exist. Check the path.", path=wanted.folder)
    folder = str(wanted.folder.resolve())
    own = TaskManager(include_path=folder, include_defaults=False)
    return own if set(wanted.tasks) <= set(own.all_tasks) else TaskManager(include_path=folder)


def _objects(manager: Any, names: Sequence[Any]) -> list[Any]:
    unknown = [name for name in names if isinstance(name, str) and name not in manager.all_tasks]
    if unknown:
        raise UserError(
            "lm-eval knows no task {names}. `lm-eval ls tasks` lists its own; --task-folder brings others.",
            names=", ".join(unknown),
        )
    try:
        loaded = manager.load(list(names))
    except (ConnectionError, FileNotFoundError) as error:
        raise _missing_dataset(error, names) from error
    except Exception as error:  # whatever a task's own files and code raise
        raise UserError(
            "a task's files cannot be used: {reason}", reason=f"{type(error).__name__}: {_cause(error)}"
        ) from error
    children = {child for group in loaded["group_map"].values() for child in group}
    groups = [group for name, group in loaded["groups"].items() if name not in children]
    grouped = {task.task_name for group in groups for task in group.get_all_tasks()}
    return [*groups, *(task for name, task in loaded["tasks"].items() if name not in grouped)]


def _cause(error: BaseException) -> str:
    """The first line of what began it: datasets says of every error only that there was one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)


def _missing_dataset(error: Exception, tasks: Sequence[Any]) -> UserError:
    text = str(error)
    found = re.search(r"'([\w.-]+/[\w.-]+)'", text)
    if found is None:
        return UserError("a task's data cannot be read: {reason}", reason=first_line(error))
    return UserError(
        "the dataset {name} is not on this machine, and the Hub cannot be reached. On one with a network (a mirror: "
        "HF_ENDPOINT=https://hf-mirror.com before it):\n"
        '  python -c "from lm_eval.tasks import TaskManager; TaskManager().load({tasks})"\n'
        "Copy its ~/.cache/huggingface here (another place: HF_HOME), then run again with HF_HUB_OFFLINE=1.",
        name=found[1],
        tasks=list(tasks),
    )


@contextmanager
def _inside(folder: Path | None) -> Iterator[None]:
    """Relative paths of data in a folder's tasks mean files of that folder."""
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)
