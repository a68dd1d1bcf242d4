"""Where NaN and infinity begin: injected at many places; quiet on masks that are meant and on healthy runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from faults import Fault, element, step_of  # noqa: E402
from precision_json import document_of  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from npuport.cli.precision_overflow import look_into  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision.operators.calls import Call, Step, TensorRef, write_step  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.operators.summing import statistics_of  # noqa: E402
from npuport.precision.overflow.origins import Origin, origins  # noqa: E402
from npuport.precision.overflow.scaling import nearest_to_the_end, scalings, underflows  # noqa: E402
from npuport.precision.overflow.values import Values  # noqa: E402

NAN, INF = float("nan"), float("inf")


def recorded(function: Callable[[], Any]) -> Step:
    recorder = Recorder()
    with recorder.following():
        function()
    return recorder.take(0, 0)


def bare(step: Step) -> Step:
    """The same step as its statistics."""
    refs = {ref for call in step.calls for ref in (*call.inputs, *call.outputs)}
    return replace(step, statistics={ref: statistics_of(step.tensor(ref)) for ref in refs}, storages={})


def found(step: Step) -> list[Origin]:
    """The origins in a step; from its statistics the same calls are found. These do not tell +inf from -inf."""
    of_tensors = origins(step, Values(step))
    of_statistics = origins(bare(step), Values(bare(step)))
    kinds = [(one.call.index, one.kind.replace("masked row", "NaN")) for one in of_tensors]
    assert kinds == [(one.call.index, one.kind) for one in of_statistics]
    return of_tensors


@pytest.mark.parametrize("model", ["gpt", "cnn", "lstm", "unet"])
def test_healthy_runs_are_quiet_also_with_a_mask_of_minus_infinity(model: str) -> None:
    assert found(step_of(model, 0.0, 1)) == []


@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize(
    ("model", "operator", "which"),
    [
        ("gpt", "embedding", 0), ("gpt", "native_layer_norm", 1), ("gpt", "bmm", 2), ("gpt", "gelu", 1),
        ("gpt", "addmm", 7), ("gpt", "gelu_backward", 1), ("gpt", "mm", 3), ("gpt", "_softmax_backward_data", 0),
        ("cnn", "convolution", 1), ("cnn", "native_batch_norm", 2), ("cnn", "threshold_backward", 1),
        ("lstm", "tanh", 3), ("lstm", "tanh_backward", 2), ("unet", "silu", 1), ("unet", "cat", 1),
        ("unet", "convolution_backward", 1), ("unet", "mse_loss", 0), ("gpt", "addcdiv_", 3), ("cnn", "sqrt", 0),
    ],
)  # fmt: skip
def test_the_call_that_breaks_is_the_first(model: str, operator: str, which: int, value: float) -> None:
    step = step_of(model, 0.0, 1, Fault("broken", model, operator, which, element(value, add=False)))
    first = found(step)[0]
    calls = [call for call in step.calls if call.operator.split(".")[1] == operator]
    assert first.call == calls[which]
    assert first.kind == ("NaN" if math.isnan(value) else "overflow")


def attention(mask: Callable[[Any], Any], rows: int = 4) -> Step:
    """A step of attention: scores are masked, and a softmax takes them."""
    q = torch.randn(2, rows, 8, requires_grad=True)

    def run() -> None:
        weights = mask(q @ q.transpose(1, 2)).softmax(-1)
        (weights @ q).sum().backward()

    return recorded(run)


CAUSAL = torch.ones(4, 4, dtype=torch.bool).triu(1)


@pytest.mark.parametrize(
    "mask",
    [
        lambda scores: scores.masked_fill(CAUSAL, -INF),
        lambda scores: scores + torch.full((4, 4), -INF).triu(1),
        lambda scores: torch.where(CAUSAL, -INF, scores),
        lambda scores: torch.where(CAUSAL, torch.tensor(-INF), scores),
        lambda scores: scores + torch.log((~CAUSAL).float()),
        lambda scores: scores + torch.zeros(4, 4).masked_fill_(CAUSAL, -INF),
        lambda scores: scores.masked_fill(CAUSAL, torch.finfo(scores.dtype).min),
    ],
)
def test_masks_that_a_softmax_takes_are_meant(mask: Callable[[Any], Any]) -> None:
    assert found(attention(mask)) == []


def test_a_mask_made_before_the_step_is_meant_and_a_padded_row_is_named() -> None:
    made = torch.full((4, 4), -INF).triu(1)
    assert found(attention(lambda scores: scores + made)) == []
    padded = made.clone()
    padded[2] = -INF
    (first, *_) = found(attention(lambda scores: scores + padded))
    assert (first.kind, first.call.operator) == ("masked row", "aten._softmax.default")
    assert "a row of the mask hides everything" in str(first.text)


def test_a_softmax_that_is_broken_itself_is_not_taken_for_a_mask() -> None:
    step = step_of("gpt", 0.0, 1, Fault("broken", "gpt", "_softmax", 1, element(NAN, add=False)))
    first = origins(step, Values(step))[0]
    assert (first.kind, first.call.operator) == ("NaN", "aten._softmax.default")
    assert "no row of its mask" in str(first.text)


def test_an_unmeant_infinity_behind_a_mask_is_seen() -> None:
    (first, *_) = found(attention(lambda scores: (scores.masked_fill(CAUSAL, -INF)) * 0))
    assert (first.kind, first.call.operator) == ("NaN", "aten.mul.Tensor")
    assert "0 x inf" in str(first.text)


def test_what_is_made_and_thrown_away_does_no_harm() -> None:
    x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
    safe = recorded(lambda: (torch.nan_to_num(x.detach() / x.detach(), nan=0.0) * x).sum().backward())
    assert found(safe) == []
    (first, *_) = found(recorded(lambda: (x / x.detach()).sum().backward()))
    assert (first.kind, first.call.operator) == ("NaN", "aten.div.Tensor")


def test_memory_that_nothing_was_written_to_is_not_looked_at() -> None:
    def run() -> None:
        space = torch.empty(4)
        space.fill_(1.0)
        (space * torch.ones(4, requires_grad=True)).sum().backward()

    step = recorded(run)
    made = next(call for call in step.calls if "empty" in call.operator)
    step.storages[made.outputs[0].storage] = torch.full((4,), NAN).view(torch.uint8)
    assert found(step) == []


def test_a_parameter_that_is_broken_before_the_step_is_named() -> None:
    model = torch.nn.Linear(3, 3)
    with torch.no_grad():
        model.weight[1, 1] = NAN
    (first, *_) = found(recorded(lambda: model(torch.ones(2, 3)).sum().backward()))
    assert first.kind == "input"
    assert "no recorded call made" in str(first.text)


def test_recomputed_masks_of_checkpointing_are_meant() -> None:
    from torch.utils.checkpoint import checkpoint

    q = torch.randn(4, 4, requires_grad=True)

    def part(x: Any) -> Any:
        return (x @ x).masked_fill(CAUSAL, -INF).softmax(-1)

    assert found(recorded(lambda: checkpoint(part, q, use_reentrant=False).sum().backward())) == []


def half_training(scale: float, steps: int = 3) -> list[Step]:
    """Steps in float16 with a loss scaler; each attempt of a step is recorded on its own."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    taken = []
    for number in range(steps):
        recorder = Recorder()
        with recorder.following():
            loss = model(torch.ones(4, 8, dtype=torch.float16) * (number + 1)).square().mean()
            (loss.float() * scale).backward()
            gradients = [one.grad for one in model.parameters()]
            broken = torch.zeros(1)
            torch._amp_foreach_non_finite_check_and_unscale_(gradients, broken, torch.tensor([1 / scale]))
            if not broken.item():
                recorder.optimizer_begins()
                optimizer.step()
                recorder.optimizer_ended(optimizer)
            optimizer.zero_grad()
        scale *= 0.5 if broken.item() else 1
        taken.append(recorder.take(number, 0))
    return taken


def test_a_loss_scale_that_is_too_high_is_caught_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = half_training(2.0**18)
    for step in steps:
        write_step(tmp_path, step)
    assert next(one.scale for step in steps for one in scalings(step, Values(step))) == 2.0**18
    assert all(one.is_caught for step in steps for one in found(step))
    assert look_into(tmp_path, as_json=False) == 0
    said = capsys.readouterr().out
    assert "loss scale: 262144 (left out) → 131072" in said
    assert "become infinite" in said or "(backward)" in said


def test_float16_that_nearly_ends_and_that_underflows_is_told() -> None:
    step = recorded(lambda: torch.tensor([1e-9, 1e-8, 1.0, 30000.0]).half() * 2)
    ((one,), near) = underflows(step, Values(step)), nearest_to_the_end(step, Values(step))
    assert one.share == 0.5
    assert near is not None
    assert near[1] == 60000.0


def test_chips_that_saturate_are_understood() -> None:
    x = torch.full((3,), 60000.0, dtype=torch.float16)
    step = recorded(lambda: x * 2)
    call = step.calls[0]
    step.storages[call.outputs[0].storage] = torch.full((3,), 65504.0, dtype=torch.float16).view(torch.uint8)
    (one,) = found(step)
    assert one.kind == "saturated"
    lowest = recorded(lambda: x.masked_fill(torch.tensor([True, False, True]), torch.finfo(torch.float16).max))
    assert found(lowest) == []


def two_ranks(tmp_path: Path) -> None:
    """Rank 1 makes a NaN, and an all-reduce brings it to rank 0."""

    def ref(number: int) -> TensorRef:
        return TensorRef(number, "float32", (2,), (1,), 0)

    for rank, value in ((0, 1.0), (1, NAN)):
        storages = [torch.ones(2), torch.tensor([1.0, value]), torch.tensor([2.0, NAN]), torch.tensor([NAN, NAN])]
        calls = [
            Call(0, "aten.log.default", "a.b", "backward", (ref(0),), {}, ref(1), "m.py:3"),
            Call(1, "c10d.allreduce_.default", "", "backward", ([ref(1)],), {}, [ref(2)], ""),
            Call(2, "aten.add_.Tensor", "", "optimizer", (ref(0), ref(2)), {}, ref(3), ""),
        ]
        bytes_of = {number: one.view(torch.uint8) for number, one in enumerate(storages)}
        write_step(tmp_path, Step(calls, bytes_of, 0, rank))


def test_the_rank_that_had_it_first_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_ranks(tmp_path)
    assert look_into(tmp_path, as_json=False) == 1
    said = capsys.readouterr().out
    assert "step 0, rank 1: a.b · aten.log.default (backward)      m.py:3" in said
    assert "rank 0 receives it in c10d.allreduce_.default" in said
    (tmp_path / "step0" / "rank1.pt").unlink()
    assert look_into(tmp_path, as_json=True) == 1
    assert document_of("overflow", capsys.readouterr().out)["origins"][0]["kind"] == "received"


def test_gradients_bring_it_to_the_other_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import rank_jobs

    rank_jobs.run(rank_jobs.broken_batch, tmp_path)
    assert look_into(tmp_path, as_json=True) == 1
    document = document_of("overflow", capsys.readouterr().out)
    first = {rank: next(one for one in document["origins"] if one["rank"] == rank) for rank in (0, 1)}
    assert (first[0]["kind"], first[0]["operator"]) == ("received", "c10d.allreduce_.default")
    assert (first[1]["kind"], first[1]["phase"], first[1]["module"]) == ("input", "forward", "module.norm")
    assert document["first_step"] == 0


def test_the_batch_that_did_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weight = torch.ones(3, requires_grad=True)
    batches = [torch.ones(3), torch.ones(3) * 2, torch.ones(3) * 1e30]
    for number, batch in enumerate(batches):
        weight.grad = None
        step = recorded(lambda batch=batch: (weight * batch).square().sum().backward())
        write_step(tmp_path, replace(step, step=number))
    assert look_into(tmp_path, as_json=False) == 1
    said = capsys.readouterr().out
    assert "step 2, rank 0: aten.pow.Tensor_Scalar (forward)" in said
    assert "the batch is odd: an input of aten.mul.Tensor" in said


def test_dumps_of_msprobe_are_looked_into_and_masks_are_meant_there_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from npuport.precision.msprobe.writing import write_dump

    write_dump(bare(step_of("gpt", 0.0, 1)), tmp_path / "healthy")
    assert look_into(tmp_path / "healthy", as_json=False) == 0
    broken = Fault("broken", "gpt", "gelu", 1, element(NAN, add=False))
    write_dump(bare(step_of("gpt", 0.0, 1, broken)), tmp_path / "broken")
    capsys.readouterr()
    assert look_into(tmp_path / "broken", as_json=False) == 1
    assert "gelu" in capsys.readouterr().out.splitlines()[1]


def test_checksums_alone_are_refused(tmp_path: Path) -> None:
    step = bare(recorded(lambda: torch.ones(2) + 1))
    nothing = {ref: replace(one, max=NAN, min=NAN, mean=NAN) for ref, one in step.statistics.items()}
    write_step(tmp_path, replace(step, statistics=nothing))
    with pytest.raises(UserError, match="nothing of the values"):
        look_into(tmp_path, as_json=False)


def test_fused_attention_takes_masks_too() -> None:
    q = torch.randn(1, 2, 4, 8, requires_grad=True)
    mask = torch.full((4, 4), -INF).triu(1)
    assert found(recorded(lambda: F.scaled_dot_product_attention(q, q, q, attn_mask=mask).sum().backward())) == []
