"""Models that no threshold was set for: faults are named there too, and healthy pairs raise no suspicion."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from faults import is_right, step_of  # noqa: E402
from held_out import HELD_OUT_CASES, HELD_OUT_FAULTS  # noqa: E402

from npuport.precision.operators import execution  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402
from npuport.precision.operators.suspicion import Suspect  # noqa: E402


@pytest.fixture(scope="module", params=HELD_OUT_CASES)
def model(request: pytest.FixtureRequest) -> str:
    try:
        HELD_OUT_CASES[request.param].model()
    except ImportError:  # transformers does not import beside torch_npu without CANN
        pytest.skip(f"{request.param} needs transformers")
    return str(request.param)


def test_faults_are_named_and_healthy_pairs_are_not_suspected(model: str) -> None:
    reference = step_of(model, 1e-6, 1)
    assert compare(reference, step_of(model, 1e-6, 2)).suspects == ()
    for fault in [one for one in HELD_OUT_FAULTS if one.model == model][::2]:
        first = compare(reference, step_of(model, 1e-6, 2, fault)).suspects[0]
        assert is_right(fault, first.call.operator, first.call.module), (fault.name, first.call, str(first.text))


def attention_with_noise() -> Suspect:
    fault = next(one for one in HELD_OUT_FAULTS if one.name == "attention 1 % noise")
    first = compare(step_of("vit", 1e-6, 1), step_of("vit", 1e-6, 2, fault)).suspects[0]
    assert is_right(fault, first.call.operator, first.call.module)
    return first


def test_attention_that_drops_nothing_is_replayed() -> None:
    """It has the tag of operators that draw random numbers, for its dropout."""
    first = attention_with_noise()
    assert first.is_replayed
    assert "its own error" in str(first.text)


def test_a_fused_operator_is_judged_without_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded = torch.Tag.nondeterministic_seeded
    monkeypatch.setattr(execution, "draws", lambda function, *_: seeded in function.tags)  # as with a dropout
    first = attention_with_noise()
    assert "its inputs" in str(first.text)
