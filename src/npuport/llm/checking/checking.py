"""A training's configuration beside what was published, and what in it contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from npuport.guidance.judging import Judgement, judge
from npuport.llm.checking.contradictions import Contradiction
from npuport.llm.checking.documents import Document
from npuport.llm.checking.megatron import told_by_megatron
from npuport.llm.checking.megatron_checks import check_megatron
from npuport.llm.checking.trainer import told_by_deepspeed, told_by_trainer
from npuport.llm.checking.trainer_checks import check_deepspeed, check_trainer
from npuport.llm.checking.training import Given, Told, Training, trainings


@dataclass(frozen=True)
class Checked:
    """A training with what was found. ``unknown`` are the quantities that nothing says."""

    training: Training
    told: Told
    judgements: Sequence[Judgement]
    contradictions: Sequence[Contradiction]

    @property
    def unknown(self) -> list[str]:
        """Quantities of which no file says the value."""
        recipe = self.told.recipe
        # A loss scale that is not fixed is dynamic, or there is none.
        return [name for name in self.told.origins if name != "fixed_scale" and getattr(recipe, name) is None]

    @property
    def is_faulty(self) -> bool:
        """Whether the training will not start, or differs from what was published in a way that is seldom right."""
        return any(one.check.level == "error" for one in self.contradictions) or any(
            one.status == "unusual" for one in self.judgements
        )


def check_files(paths: Sequence[Path], given: Given) -> list[Checked]:
    """Each training that the files configure.

    Raises:
        UserError: a file cannot be read, or holds no configuration.
    """
    return [_checked(training) for training in trainings(paths, given)]


def _checked(training: Training) -> Checked:
    told = _told(training)
    return Checked(training, told, list(judge(told.recipe)), list(_contradictions(training)))


def _told(training: Training) -> Told:
    if training.main.kind == "megatron":
        return told_by_megatron(training)
    if training.main.kind == "deepspeed":
        return told_by_deepspeed(training)
    return told_by_trainer(training)


def _contradictions(training: Training) -> Iterator[Contradiction]:
    kind = training.main.kind
    if kind == "megatron":
        yield from check_megatron(training)
    elif kind == "deepspeed":
        yield from check_deepspeed(training, training.main)
    elif kind == "trainer":
        yield from check_trainer(training)


def is_written(document: Document, origin: str) -> bool:
    """Whether the value of an option is in the file, or the framework's default."""
    return origin.lstrip("-").replace("-", "_").partition(".")[0] in document.options
