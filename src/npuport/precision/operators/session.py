"""Recording the steps of a run: which, of what, when they are written, and what that costs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from npuport.findings import Sentence, say
from npuport.precision.following import Follower, follow_steps, rank_of_process
from npuport.precision.operators.calls import Recorded
from npuport.precision.operators.conditions import Condition
from npuport.precision.operators.keeping import Keeper, Summaries, Tensors
from npuport.precision.operators.options import Options
from npuport.precision.operators.recording import Recorder
from npuport.precision.operators.writing import Writer
from npuport.report.language import translate


@contextmanager
def recording(options: Options) -> Iterator[None]:
    """Record the steps of the code inside that the options name; an optimizer's step ends a step."""
    session = _Session(options)
    with follow_steps(session):
        try:
            yield
        finally:
            session.end()


class _Session(Follower):
    """Counts steps, and has those that are selected recorded: in others no operator and no module is looked at."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._process = os.getpid()
        self._recorder = Recorder(_keeper(options.what), options.scope)
        self._writer = Writer(options.folder)
        self._condition = Condition(options.when) if options.when else None
        self._before: Recorded | None = None  # the step before, while a condition is waited for
        self._losses: list[torch.Tensor] = []
        self._step = 0
        self._is_over = False
        self._told = 0
        self._recorded = ExitStack()
        self._is_recording = False
        self._begin()

    def end(self) -> None:
        """The code has ended: what was recorded of a step that did not end is dropped."""
        if self._process != os.getpid():
            return
        self._stop()
        self._writer.wait()
        self._tell()

    def backward(self, loss: torch.Tensor) -> None:
        if self._is_recording and self._condition is not None:
            self._losses.append(loss.detach().clone())

    def steps(self, _: torch.optim.Optimizer) -> None:
        if self._is_recording:
            self._recorder.optimizer_begins()

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        if self._is_recording:
            self._recorder.optimizer_ended(optimizer)
        self._ended()

    def skipped(self, _: torch.optim.Optimizer) -> None:
        self._ended()

    def _ended(self) -> None:
        if self._is_over or self._process != os.getpid():
            return
        if self._is_recording:
            self._stop()
            self._handle(self._recorder.recorded(self._step, rank_of_process()))
        self._step += 1
        self._begin()

    def _begin(self) -> None:
        """Record the step that begins now if it is selected."""
        if self._is_over or self._options.is_over(self._step):
            self._is_over = True
            return
        is_known = "RANK" in os.environ or self._step > 0
        if is_known and not self._options.has_rank(rank_of_process()):
            self._is_over = True
        elif self._options.has_step(self._step):
            self._recorded.enter_context(self._recorder.following())
            self._is_recording = True

    def _stop(self) -> None:
        self._is_recording = False
        self._recorded.close()

    def _handle(self, step: Recorded) -> None:
        if not self._options.has_rank(step.rank):
            self._is_over = True
            return
        if self._condition is None:
            self._write(step)
            return
        losses = [float(loss) for loss in self._losses]
        self._losses.clear()
        reason = self._condition.met(step, losses)
        if reason is None:
            self._before = step
            return
        for one in (self._before, step):
            if one is not None:
                self._write(one)
        self._before, self._is_over = None, True
        _say(say("step {step} is recorded: {reason}", step=self._step, reason=reason))

    def _write(self, step: Recorded) -> None:
        self._writer.write(step)
        self._tell()

    def _tell(self) -> None:
        """Say what the first step has cost, and what went wrong; once each."""
        if self._told == 0 and self._writer.written:
            first = self._writer.written[0]
            self._told = 1
            _say(
                say(
                    "the {what} of step {step} are {size} MB in {path}, written in {seconds} s beside the training",
                    what=self._options.what,
                    step=first.step,
                    size=f"{first.size / 1e6:.1f}",
                    path=self._options.folder,
                    seconds=f"{first.seconds:.1f}",
                )
            )
        if self._writer.problem is not None and not self._is_over:
            self._is_over = True
            _say(self._writer.problem)


def _keeper(what: str) -> Keeper:
    return Tensors() if what == "tensors" else Summaries(with_checksum=what == "checksums")


def _say(sentence: Sentence) -> None:
    """One line on stderr; what every rank has to say the first one says."""
    if rank_of_process() == 0:
        print(f"npuport: {_translated(sentence)}", file=sys.stderr, flush=True)


def _translated(sentence: Sentence) -> str:
    values = {
        name: _translated(value) if isinstance(value, Sentence) else value for name, value in sentence.values.items()
    }
    return translate(sentence.template, **values)
