"""One sample of one operator of PyTorch's OpInfo database, on the npu device against the CPU.

A sample is compared in up to three variants: ``call`` (results and gradients), ``inplace`` and ``out``. Gradients are
those of a sum with unequal weights, so that none cancels.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

VARIANTS = ("call", "inplace", "out")
NARROW = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}


class Outcome(enum.Enum):
    """What became of one variant of one sample."""

    EQUAL = "equal"
    DIFFERENT = "different"  # another value, or an error where the CPU has a value
    REFUSED = "refused by torch_npu"  # torch_npu's own error, before any kernel runs
    ALIKE = "an error on both"
    UNJUDGED = "no value on the CPU to compare with"


# Errors that the kernels of the simulation do not write, and that a real device would raise too: torch_npu's own carry
# a code ("ERR01007 OPS feature not supported") or come from its derivatives; PyTorch's dispatcher finds no kernel of
# torch_npu, PyTorch's own code names the devices it takes; and what torch_npu's fallback hands to the CPU may have no
# kernel there. Each kind still needs its reason in reasons.csv.
_OWN_REFUSAL = re.compile(
    r"\bERR\d{5} (PTA|OPS|DIST|GRAPH|PROF)\b"
    r"|Could not run '[^']+' with arguments from the '\w*(PrivateUse1|npu)'"
    r"|only supports [\w, ]+ device type, got: npu|DispatchStub: missing kernel for npu"
    r"|does not support automatic differentiation for outputs with complex dtype|Autograd not support dtype"
    r"|is not differentiable with respect to argument"
    r"|not implemented for '(Half|BFloat16)'"
)
# Tensors that belong on the host on every device.
_ON_HOST = {"tensor_split"}


@dataclass(frozen=True)
class Verdict:
    """``detail``: the error, or how the values differ; empty when equal."""

    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True)
class Found:
    """Tensors (results, written arguments, gradients; on the CPU) and plain numbers that a call gave."""

    tensors: tuple[torch.Tensor | None, ...]
    numbers: tuple[Any, ...]


def on(device: str, value: Any, wide: bool = False) -> Any:
    """``value`` with its tensors copied to ``device``, with the same strides; ``wide``: half precision as float32."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            moved = _copied(leaf.detach(), device)
            moved = moved.to(NARROW[leaf.dtype]) if wide and leaf.dtype in NARROW else moved
            return moved.requires_grad_(leaf.requires_grad)
        return NARROW[leaf] if wide and leaf in NARROW else leaf

    return tree_map(move, value)


def _copied(tensor: torch.Tensor, device: str) -> torch.Tensor:
    if tensor.layout != torch.strided or tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        return tensor.clone().to(device)
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    memory = tensor.as_strided((elements,), (1,), 0).clone().to(device)
    return memory.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _weights(tensor: torch.Tensor) -> torch.Tensor:
    values = torch.arange(tensor.numel()).remainder(7).add(1).div(4).reshape(tensor.shape)
    return values.to(tensor.dtype).to(tensor.device)


def _call(function: Callable[..., Any], inputs: Any) -> Found:
    value, arguments, keywords = inputs
    result = function(value, *arguments, **keywords)
    roots = [t for t in _tensors(result) if t.requires_grad]
    leaves = [t for t in _tensors(inputs) if t.requires_grad]
    gradients: tuple[Any, ...] = ()
    if roots and leaves:
        gradients = torch.autograd.grad(roots, leaves, [_weights(t) for t in roots], allow_unused=True)
    return _found(result, gradients)


def _inplace(function: Callable[..., Any], inputs: Any) -> Found:
    value, arguments, keywords = inputs
    with torch.no_grad():
        written = value.clone()
        result = function(written, *arguments, **keywords)
    assert result is written, "the result is not the argument"
    return _found([written], ())


def _out(function: Callable[..., Any], inputs: Any) -> Found:
    """Into tensors of the right shape, and into empty ones, which grow."""
    value, arguments, keywords = inputs
    with torch.no_grad():
        expected = function(value, *arguments, **keywords)
        whole = tree_map(lambda leaf: torch.full_like(leaf, 3) if isinstance(leaf, torch.Tensor) else leaf, expected)
        places = _tensors(whole)
        result = function(
            value, *arguments, out=whole if isinstance(expected, torch.Tensor) else tuple(places), **keywords
        )
        for one, place in zip(_tensors(result), places, strict=True):
            assert one is place, "the result is not out"
        grown = [leaf.new_empty(0) for leaf in places]
        function(value, *arguments, out=grown[0] if isinstance(expected, torch.Tensor) else tuple(grown), **keywords)
    return _found([places, grown], ())


def _found(result: Any, gradients: tuple[Any, ...]) -> Found:
    tensors = tuple(None if t is None else t.detach().cpu() for t in (*_tensors(result), *gradients))
    return Found(tensors, tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, (int, float, bool))))


_WAYS: dict[str, Callable[[Callable[..., Any], Any], Found]] = {"call": _call, "inplace": _inplace, "out": _out}


def function_of(operator: Any, variant: str) -> Callable[..., Any] | None:
    """What ``variant`` of ``operator`` calls; None when the database says there is no such variant."""
    if variant == "inplace":
        inplace: Callable[..., Any] | None = operator.inplace_variant
        return inplace
    if variant == "out" and not operator.supports_out:
        return None
    return operator  # type: ignore[no-any-return]


def _compute(function: Callable[..., Any], sample: Any, variant: str, device: str, wide: bool = False) -> Found:
    torch.manual_seed(1234)
    kept = getattr(function, "name", "") in _ON_HOST
    inputs = (on(device, sample.input, wide), *on("cpu" if kept else device, (sample.args, sample.kwargs), wide))
    if "device" in inputs[2]:
        inputs[2]["device"] = device
    return _WAYS[variant](function, inputs)


def expected_of(function: Callable[..., Any], sample: Any, variant: str, dtype: torch.dtype) -> list[Found] | Exception:
    """What the CPU gives; and in half precision, which the device computes in float32 in places where the CPU rounds
    between or has no kernel, also what the CPU gives in float32, rounded once.
    """
    try:
        found = [_compute(function, sample, variant, "cpu")]
    except Exception as error:
        if dtype not in NARROW or not isinstance(error, NotImplementedError):
            return error
        refused: Exception = error
        found = []
    if dtype in NARROW:
        try:
            found.append(_rounded(_compute(function, sample, variant, "cpu", wide=True), dtype))
        except Exception as error:
            refused = error
    return found or refused


def _rounded(found: Found, dtype: torch.dtype) -> Found:
    wide = NARROW[dtype]
    return Found(tuple(t.to(dtype) if t is not None and t.dtype == wide else t for t in found.tensors), found.numbers)


def judge(operator: Any, sample: Any, variant: str, dtype: torch.dtype) -> Verdict | None:
    """Compare one variant of one sample; None when the operator has no such variant for it."""
    function = function_of(operator, variant)
    if function is None or (
        variant == "inplace" and (sample.broadcasts_input or not isinstance(sample.input, torch.Tensor))
    ):
        return None
    expected = expected_of(function, sample, variant, dtype)
    if variant != "call" and isinstance(expected, Exception):
        return None  # an in-place call may need another dtype than the result has, and out= may not apply
    try:
        _compute(function, sample, variant, "npu")
        found = _compute(function, sample, variant, "npu")  # a repeated call may take a shorter way: see outputs.h
    except Exception as error:
        if isinstance(expected, Exception):
            return Verdict(Outcome.ALIKE, _in_short(error))
        return Verdict(Outcome.REFUSED if _OWN_REFUSAL.search(str(error)) else Outcome.DIFFERENT, _in_short(error))
    if isinstance(expected, Exception):
        return Verdict(Outcome.UNJUDGED, _in_short(expected))
    differences = [_difference(found, one) for one in expected]
    return Verdict(Outcome.EQUAL) if None in differences else Verdict(Outcome.DIFFERENT, str(differences[0]))


def _in_short(error: Exception) -> str:
    text = re.sub(r"\[ERROR\] [\d-]+:[\d:]+ \(PID:\d+, Device:-?\d+, RankID:-?\d+\) ?", "", str(error))
    return f"{type(error).__name__}: {' '.join(text.split())}"[:400]


def _difference(found: Found, expected: Found) -> str | None:
    try:
        _assert_equal(found, expected)
    except AssertionError as error:
        return _in_short(error)
    return None


def _assert_equal(found: Found, expected: Found) -> None:
    assert len(found.tensors) == len(expected.tensors), "another number of results"
    assert [t is None for t in found.tensors] == [t is None for t in expected.tensors], (
        "a result or a gradient is missing"
    )
    assert found.numbers == expected.numbers, f"{found.numbers} is not {expected.numbers}"
    for ours, theirs in zip(found.tensors, expected.tensors, strict=True):
        if ours is not None and theirs is not None:
            _assert_close(ours, theirs)


def _assert_close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    if ours.dtype in (torch.float32, torch.complex64):
        # Attention is computed by another sequence of operators: a few float32 roundings more than the default.
        torch.testing.assert_close(ours, theirs, rtol=2e-5, atol=5e-5, equal_nan=True)
    elif ours.dtype in NARROW and ours.dtype == theirs.dtype:
        # The same reasons, in roundings of half precision.
        precision = torch.finfo(ours.dtype).eps
        torch.testing.assert_close(ours, theirs, rtol=2 * precision, atol=2 * precision, equal_nan=True)
    else:
        torch.testing.assert_close(ours, theirs, equal_nan=True)


def samples_of(operator: Any, dtype: torch.dtype, most: int) -> Iterator[Any]:
    """At most ``most`` samples of the database. None where the database cannot make them in this dtype."""
    torch.manual_seed(0)
    differentiable = operator.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    try:
        for count, sample in enumerate(operator.sample_inputs("cpu", dtype, requires_grad=differentiable)):
            if count >= most:
                return
            yield sample
    except Exception:
        return
