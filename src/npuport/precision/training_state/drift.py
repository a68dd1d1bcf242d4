"""Weights that should be the same on all ranks, and are not any more."""

from __future__ import annotations

from collections.abc import Sequence

from npuport.findings import say
from npuport.precision.training_state.alerts import Alert
from npuport.precision.training_state.history import History


def drift_of(histories: Sequence[History]) -> list[Alert]:
    """The first step at which weights differ between ranks, with the layer that the forward pass reaches first.

    Under DistributedDataParallel all weights must be equal. Otherwise only those are judged that were equal when
    checksums were first taken: the others may be divided among the ranks.
    """
    if len(histories) < 2:
        return []
    found = []
    for series in zip(*(history.series for history in histories), strict=False):
        if len({one.names for one in series}) > 1:
            continue
        sums = [{step.step: step.checksums for step in one.steps if step.checksums} for one in series]
        common = sorted(set.intersection(*(set(one) for one in sums)))
        judged = list(range(len(series[0].names)))
        for step in common:
            unequal = [at for at in judged if len({one[step][at] for one in sums}) > 1]
            if step == common[0] and not histories[0].is_replicated:
                judged = [at for at in judged if at not in unequal]
            elif unequal:
                names = [series[0].names[at] for at in unequal]
                odd = _odd(histories, [one[step][unequal[0]] for one in sums])
                text = say(
                    "{number} weights differ between ranks ({ranks} beside the others), seen at step {step}: {names}",
                    number=len(unequal),
                    ranks=odd,
                    step=step,
                    names=", ".join(names[:4]),
                )
                found.append(Alert("drift", step, names[0].rpartition(".")[0], text))
                break
    return found


def compared_steps(histories: Sequence[History]) -> list[int]:
    """The steps at which weights were compared between all ranks."""
    if len(histories) < 2:
        return []
    steps = [{step.step for series in one.series for step in series.steps if step.checksums} for one in histories]
    return sorted(set.intersection(*steps))


def _odd(histories: Sequence[History], sums: Sequence[int]) -> str:
    """The ranks whose sum is not that of most."""
    usual = max(sums, key=list(sums).count)
    return ", ".join(f"rank {one.rank}" for one, value in zip(histories, sums, strict=True) if value != usual)
