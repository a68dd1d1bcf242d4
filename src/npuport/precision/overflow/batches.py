"""The batch of a step: inputs that are unlike those of the other recorded steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npuport.findings import Sentence, say
from npuport.precision.operators.calls import Step, TensorRef

_TIMES = 10.0  # larger than in any other step


@dataclass(frozen=True)
class Given:
    """A tensor that the forward pass of a step was given from outside, and its largest magnitude."""

    ref: TensorRef
    largest: float


Batch = Mapping[tuple[str, str, int], Given]
"""By module, operator and position of the first call that uses it."""


def odd_inputs(mine: Batch, others: Sequence[Batch]) -> list[Sentence]:
    """What is odd about the batch of a step beside those of other steps."""
    found = []
    for place, one in mine.items():
        usual = max((batch[place].largest for batch in others if place in batch), default=0.0)
        if one.largest > _TIMES * usual > 0:
            found.append(say("the batch is odd: an input of {operator}, {dtype} {shape}, has values up to {size}, in "
                             "other steps {usual} at most", operator=place[1], dtype=one.ref.dtype,
                             shape=list(one.ref.shape), size=f"{one.largest:.3g}", usual=f"{usual:.3g}"))  # fmt: skip
    return found


def batch_of(step: Step) -> Batch:
    """The inputs of a step that no call made and that have no name."""
    return dict(_inputs(step))


def _inputs(step: Step) -> Iterator[tuple[tuple[str, str, int], Given]]:
    made = {ref.storage for call in step.calls for ref in call.outputs}
    seen: set[int] = set()
    for call in step.calls:
        for position, ref in enumerate(call.inputs):
            is_new = ref.storage not in made and ref.storage not in step.names and ref.storage not in seen
            if call.phase != "forward" or not is_new or ref.dtype == "bool":
                continue
            seen.add(ref.storage)
            statistics = step.statistics_of(ref)
            if statistics is not None and statistics.norm:
                largest = max(abs(statistics.max), abs(statistics.min))
                yield (call.module, call.operator, position), Given(ref, largest)
