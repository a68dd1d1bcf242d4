"""What the histograms of a suspect show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from npuport.precision.operators.calls import Step  # noqa: E402
from npuport.precision.operators.histograms import histograms_of  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402


def recorded(activation: Callable[[torch.Tensor], torch.Tensor]) -> Step:
    torch.manual_seed(0)
    net, recorder = torch.nn.Linear(8, 8), Recorder()
    batch = torch.randn(4, 8)
    with recorder.following():
        net(activation(net(batch))).square().mean()
    return recorder.take(0, 0)


def test_other_operators_are_shown_by_what_the_same_calls_use_of_them() -> None:
    reference, candidate = recorded(torch.nn.functional.silu), recorded(lambda x: x * torch.sigmoid(1.5 * x))
    comparison = compare(reference, candidate)
    suspect = comparison.suspects[0]
    assert suspect.kind == "operators"
    assert comparison.alignment is not None
    shown = histograms_of(suspect, comparison.alignment, reference, candidate)
    assert shown is not None
    assert shown.shape == (4, 8)
    assert sum(shown.reference.counts) == sum(shown.candidate.counts) == 32
    assert shown.difference.high > 0.01
