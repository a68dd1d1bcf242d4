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

from npuport.errors import UserError
from npuport.llm.devices import Device
from npuport.llm.evaluation import rouge
from npuport.llm.loading import load


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
        with _inside(wanted.folder):
            found += _objects(_manager(wanted), list(wanted.tasks))
    if wanted.rouge is not None:
        found += _objects(_manager(wanted, defaults=False), [_rouge_task(wanted.rouge)])
    return found


def _rouge_task(wanted: Rouge) -> dict[str, Any]:
    if find_spec("rouge_score") is None:
        raise UserError("ROUGE takes the package rouge_score:\n  pip install 'npuport[eval]'")
    try:
        with wanted.path.open(encoding="utf-8") as lines:
            first = json.loads(next(lines, "null"))
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=wanted.path, reason=error.strerror) from error
    except ValueError as error:
        raise UserError("{path} holds no JSON object in each line.", path=wanted.path) from error
    fields = sorted(first) if isinstance(first, dict) else []
    for field in (wanted.given, wanted.wanted):
        if field not in fields:
            raise UserError(
                "{path} has no field {field}, but {fields}: name two with --rouge-fields INPUT,OUTPUT.",
                path=wanted.path,
                field=field,
                fields=", ".join(fields) or "-",
            )
    return rouge.task(str(wanted.path.resolve()), wanted.given, wanted.wanted, wanted.answer_tokens)


def _manager(wanted: Evaluation, *, defaults: bool | None = None) -> Any:
    """The tasks of the folder alone where they are all that is asked for: reading lm-eval's own takes seconds."""
    from lm_eval.tasks import TaskManager

    if wanted.folder is not None and defaults is None:
        own = TaskManager(include_path=str(wanted.folder.resolve()), include_defaults=False)
        if set(wanted.tasks) <= set(own.all_tasks):
            return own
    include = str(wanted.folder.resolve()) if wanted.folder is not None else None
    return TaskManager(include_path=include, include_defaults=defaults is not False)


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
    children = {child for group in loaded["group_map"].values() for child in group}
    groups = [group for name, group in loaded["groups"].items() if name not in children]
    grouped = {task.task_name for group in groups for task in group.get_all_tasks()}
    return [*groups, *(task for name, task in loaded["tasks"].items() if name not in grouped)]


def _missing_dataset(error: Exception, tasks: Sequence[Any]) -> UserError:
    text = str(error)
    found = re.search(r"'([\w.-]+/[\w.-]+)'", text)
    if found is None:
        return UserError("a task's data cannot be read: {reason}", reason=text.strip().splitlines()[0])
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
    if folder is None:
        yield
        return
    if not folder.is_dir():
        raise UserError("{path} does not exist. Check the path.", path=folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
