"""What is known of one training, from all the files that configure it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from npuport.errors import UserError
from npuport.guidance.judging import Purpose, Recipe
from npuport.llm.checking.documents import Document, read_documents
from npuport.llm.planning.model import model_from


@dataclass(frozen=True)
class Given:
    """What a person says beside the files; None where nothing was said. ``devices`` are those of the whole job."""

    purpose: Purpose | None = None
    parameters: int | None = None
    devices: int | None = None
    sequence: int | None = None


@dataclass(frozen=True)
class Training:
    """``main`` says what is trained how; the others belong to it. ``given`` is completed by what the files say."""

    main: Document
    deepspeed: Document | None = None
    accelerate: Document | None = None
    given: Given = field(default_factory=Given)


@dataclass(frozen=True)
class Told:
    """A recipe, and for each of its values the option that it comes from."""

    recipe: Recipe
    origins: Mapping[str, str]


def trainings(paths: Sequence[Path], given: Given) -> list[Training]:
    """The trainings that files describe: each Megatron script or set of TrainingArguments, with the files beside it.

    Raises:
        UserError: a file cannot be read, holds no configuration, or there are several of what one training has once.
    """
    documents = [one for path in paths for one in read_documents(path)]
    of_kind = {kind: [one for one in documents if one.kind == kind] for kind in ("deepspeed", "accelerate", "model")}
    for kind, found in of_kind.items():
        if len(found) > 1:
            raise UserError(
                "{first} and {second} are both {kind} configurations: check them one at a time.",
                first=found[0].path,
                second=found[1].path,
                kind=kind,
            )
    beside = {kind: found[0] if found else None for kind, found in of_kind.items()}
    if beside["model"] is not None and given.parameters is None:
        given = replace(given, parameters=model_from(beside["model"].path).parameters)
    mains = [one for one in documents if one.kind in ("megatron", "trainer")]
    mains = mains or of_kind["deepspeed"]
    if not mains:
        raise UserError(
            "{path} says nothing of a training: give its arguments too.", path=", ".join(str(path) for path in paths)
        )
    return [
        _with_devices(Training(one, beside["deepspeed"] or _named_deepspeed(one), beside["accelerate"], given))
        for one in mains
    ]


def _named_deepspeed(main: Document) -> Document | None:
    """The DeepSpeed file that a training names, if it can be found: within it, beside it, or in a folder above it."""
    inside = main.options.get("deepspeed")
    if isinstance(inside, dict):
        return Document(main.path, "deepspeed", inside)
    name = main.text("deepspeed")
    if main.kind != "trainer" or not name.endswith(".json"):
        return None
    for folder in (Path(), *main.path.resolve().parents[:6]):
        if (folder / name).is_file():
            return next((one for one in read_documents(folder / name) if one.kind == "deepspeed"), None)
    return None


def _with_devices(training: Training) -> Training:
    given = training.given
    return replace(training, given=replace(given, devices=given.devices or _devices(training)))


def _devices(training: Training) -> int | None:
    """Processes of the job, by torchrun's options or accelerate's file."""
    if training.accelerate is not None:
        return training.accelerate.whole("num_processes")
    launcher = training.main.launcher or {}
    each = launcher.get("nproc_per_node", "")
    nodes = launcher.get("nnodes", "1")
    return int(each) * int(nodes) if each.isdigit() and nodes.isdigit() else None


def size_in(name: str) -> int | None:
    """The parameters that a model's name states, such as 8B in Meta-Llama-3-8B; None of mixtures (8x7B, A3B)."""
    found: list[str] = re.findall(r"(?<![\dA-Za-z.])(\d+(?:\.\d+)?)[bB](?![A-Za-z\d])", name)
    if len(found) != 1 or re.search(r"\d+x\d|[-_]A\d+(?:\.\d+)?B", name, re.IGNORECASE):
        return None
    return round(float(found[0]) * 1e9)
