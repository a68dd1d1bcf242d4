"""What a program computes while it is recorded or watched is what it computes otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from npuport.precision.bisect.plan import Plan, Unit  # noqa: E402
from npuport.precision.bisect.raising import Raising  # noqa: E402
from npuport.precision.operators.apis import result_of  # noqa: E402
from npuport.precision.operators.calls import Call  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.preflight.training_facts import RandomCalls  # noqa: E402


@contextmanager
def raising(folder: Path, *raised: str) -> Iterator[None]:
    mode = Raising(Plan("float64", frozenset(Unit(one, "") for one in raised), folder))
    mode.start()
    try:
        yield
    finally:
        mode.stop()


WATCHING = {
    "recorded": lambda _: Recorder().following(),
    "bisected": raising,
    "counted": lambda _: RandomCalls(),
}
watched = pytest.mark.parametrize("watching", WATCHING.values(), ids=WATCHING.keys())


@watched
def test_kernels_that_make_conjugate_views_read_them_as_such(
    watching: Callable[[Path], AbstractContextManager[None]], tmp_path: Path
) -> None:
    matrix = torch.randn(5, 3, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    expected = torch.linalg.pinv(matrix)
    with watching(tmp_path):
        found = torch.linalg.pinv(matrix)
    assert torch.equal(found, expected)
    torch.testing.assert_close(found @ matrix, torch.eye(3, dtype=torch.complex64), rtol=1e-4, atol=1e-4)


def test_kernels_in_higher_precision_read_conjugate_views_as_such(tmp_path: Path) -> None:
    matrix = torch.randn(5, 3, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    with raising(tmp_path, "linalg_pinv"):
        found = torch.linalg.pinv(matrix)
    torch.testing.assert_close(found, torch.linalg.pinv(matrix.to(torch.complex128)).to(torch.complex64))


def test_apis_called_alone_read_conjugate_views_as_such() -> None:
    matrix = torch.randn(5, 3, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    call = Call(0, "Torch.pinverse.0", "", "forward", (matrix,), {}, None, "")
    assert torch.equal(result_of(call, (matrix,), {}), torch.pinverse(matrix))


@watched
def test_gradients_of_operators_without_an_autograd_kernel_are_there(
    watching: Callable[[Path], AbstractContextManager[None]], tmp_path: Path
) -> None:
    library = torch.library.Library("npuport_watched", "FRAGMENT")
    library.define("square(Tensor x) -> Tensor")
    library.impl("square", lambda x: x * x, "CPU")
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    with watching(tmp_path):
        torch.ops.npuport_watched.square(x).sum().backward()
    assert torch.equal(x.grad, 2 * x)


def test_operators_without_an_autograd_kernel_are_differentiated_through_their_own() -> None:
    library = torch.library.Library("npuport_recorded", "FRAGMENT")
    library.define("cube(Tensor x) -> Tensor")
    library.impl("cube", lambda x: x * x * x, "CPU")
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    recorder = Recorder()
    with recorder.following():
        (gradient,) = torch.autograd.grad(torch.ops.npuport_recorded.cube(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(gradient.sum(), x)
    assert torch.equal(gradient, 3 * x * x)
    assert torch.equal(second, 6 * x)
    calls = recorder.take(0, 0).calls
    assert calls[0].operator == "npuport_recorded.cube.default"
    assert "backward" in {call.phase for call in calls}


@pytest.mark.parametrize("as_tensors", [True, False])
def test_ctc_loss_is_called_with_lengths_as_it_is_otherwise(as_tensors: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(9, 2, 5, generator=generator).log_softmax(-1).requires_grad_()
    targets = torch.tensor([[1, 2, 3], [4, 1, 0]])
    lengths = (torch.tensor([9, 7]), torch.tensor([3, 2])) if as_tensors else ([9, 7], [3, 2])
    ctc_loss, recorder = torch.ctc_loss, Recorder()
    expected = torch.nn.functional.ctc_loss(scores, targets, *lengths)
    with recorder.following():
        found = torch.nn.functional.ctc_loss(scores, targets, *lengths)
    assert torch.equal(found, expected)
    assert "aten._ctc_loss.default" in {call.operator for call in recorder.take(0, 0).calls}  # that of lists
    assert torch.ctc_loss is ctc_loss


@watched
def test_lengths_of_ctc_loss_are_read_first(
    watching: Callable[[Path], AbstractContextManager[None]], tmp_path: Path
) -> None:
    scores, recorder, ctc_loss = torch.randn(4, 1, 3).log_softmax(-1), Recorder(), torch.ctc_loss
    with watching(tmp_path), recorder:
        torch.nn.functional.ctc_loss(scores, torch.tensor([[1]]), torch.tensor([4]), torch.tensor([1]))
    assert "aten._ctc_loss.default" in {call.operator for call in recorder.take(0, 0).calls}
    assert torch.ctc_loss is ctc_loss
