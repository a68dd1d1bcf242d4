"""Executing a recorded call alone, with the inputs that it had: in float64, in its own dtypes, or on a device.

Operators that the CPU has no kernel of, as those of torch_npu, are computed there by their documented formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from npuport.findings import Sentence, say
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.references.formulas import Partly, UncoveredError, Untold, formula_of

# Results of these are memory that holds anything, or random numbers.
_NO_TRUTH = (
    "empty",
    "new_empty",
    "resize",
    "set_",
    "_local_scalar_dense",
    "detach",
    "bernoulli",
    "random",
    "rand",
    "normal",
)

# Words in names of operators of torch_npu that draw random numbers.
_DRAWS = ("dropout", "gen_mask", "exponential", "random", "sub_sample")

_FAILURES = (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError, IndexError)

Change = Callable[[torch.Tensor], torch.Tensor]


class NotExecutableError(Exception):
    """A call cannot be executed alone; ``reason`` says why."""

    def __init__(self, reason: Sentence) -> None:
        super().__init__(str(reason))
        self.reason = reason


def execute(
    call: Call,
    step: Step,
    *,
    floating: torch.dtype | None = torch.float64,
    device: str = "cpu",
    change: Change | None = None,
) -> list[torch.Tensor]:
    """The results of a call, as they are recorded: what it returns, and what else it wrote.

    Floating inputs are turned to ``floating`` first, complex ones to the dtype of two such; None leaves the dtypes as
    recorded. ``change`` is applied to each of them. The recorded tensors stay as they are.

    Raises:
        NotExecutableError: the operator is random, a collective, has neither kernel on ``device`` nor formula or fails
            there, or an argument was not recorded.
    """
    if step.has_apis:
        return _by_api(call, step, floating, device, change)
    namespace, _, rest = call.operator.partition(".")
    name, _, overload = rest.partition(".")
    if namespace in ("c10d", "_c10d_functional", "c10d_functional"):
        raise NotExecutableError(say("a collective"))
    if namespace == "aten" and name.startswith(_NO_TRUTH):
        raise NotExecutableError(say("its result is no function of its inputs"))
    formula = formula_of(call.operator) if device == "cpu" else None
    if formula is not None:
        return _by_formula(formula, call, step, floating, change)
    if namespace == "npu" and device == "cpu":
        raise _without_formula(name)
    inputs = _Inputs(step, floating, device, change)
    try:
        function = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        if draws(function, call.arguments, call.keywords):
            raise NotExecutableError(say("random"))
        arguments = [inputs.value(value) for value in call.arguments]
        keywords = {key: inputs.value(value) for key, value in call.keywords.items()}
        with torch.no_grad():
            result = function(*arguments, **keywords)
    except _FAILURES as error:
        raise _failed(error) from error
    return list(_tensors(with_written(function, arguments, keywords, result)))


def _by_api(
    call: Call, step: Step, floating: torch.dtype | None, device: str, change: Change | None
) -> list[torch.Tensor]:
    from npuport.precision.operators.apis import result_of

    inputs = _Inputs(step, floating, device, change)
    try:
        keywords = {key: inputs.value(value) for key, value in call.keywords.items()}
        made = result_of(call, tuple(inputs.value(value) for value in call.arguments), keywords)
        results = list(_parts(made))
    except UncoveredError as error:
        raise NotExecutableError(error.reason) from error
    except _FAILURES as error:
        raise _failed(error) from error
    return [_completed(one, ref, step) for one, ref in zip(results, call.outputs, strict=False)]


def _failed(error: Exception) -> NotExecutableError:
    return NotExecutableError(say("cannot be executed: {reason}", reason=str(error).strip().partition("\n")[0][:200]))


def _without_formula(name: str) -> NotExecutableError:
    if "backward" not in name and any(word in name for word in _DRAWS):
        return NotExecutableError(say("random"))
    return NotExecutableError(say("no kernel on the CPU, and no reference formula"))


def _by_formula(
    formula: Callable[..., Any], call: Call, step: Step, floating: torch.dtype | None, change: Change | None
) -> list[torch.Tensor]:
    """The results of a call by its formula. In the recorded dtypes it is computed in float32 at least, and what comes
    out is rounded, as kernels do."""
    refs = call.outputs
    wide = torch.float64 if any(ref.dtype == "float64" for ref in (*call.inputs, *refs)) else torch.float32
    inputs = _Inputs(step, floating or wide, "cpu", change)
    try:
        with torch.no_grad():
            arguments = [inputs.value(value) for value in call.arguments]
            made = formula(*arguments, **{key: inputs.value(value) for key, value in call.keywords.items()})
        results = list(_parts(made))
    except UncoveredError as error:
        raise NotExecutableError(error.reason) from error
    except _FAILURES as error:
        raise _failed(error) from error
    if len(results) != len(refs):
        raise NotExecutableError(say("it gave {number} tensors, and its formula {other}",
                                     number=len(refs), other=len(results)))  # fmt: skip
    tensors = [_completed(one, ref, step) for one, ref in zip(results, refs, strict=True)]
    if floating is not None:
        return tensors
    return [one.to(getattr(torch, ref.dtype)) for one, ref in zip(tensors, refs, strict=True)]


def _parts(value: Any) -> Iterator[torch.Tensor | Partly | Untold]:
    if isinstance(value, torch.Tensor | Partly | Untold):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _parts(one)


def _completed(result: torch.Tensor | Partly | Untold, ref: TensorRef, step: Step) -> torch.Tensor:
    """A result; what no document tells of it is as it was recorded."""
    if isinstance(result, torch.Tensor):
        return result
    if isinstance(result, Untold):
        if ref.storage not in step.storages:
            raise NotExecutableError(say("the values of a tensor were not recorded"))
        return step.tensor(ref).clone()
    known = result.known.expand(result.values.shape)
    if bool(known.all()):
        return result.values
    if ref.storage not in step.storages or ref.shape != tuple(result.values.shape):
        raise NotExecutableError(say("the values of a tensor were not recorded"))
    return torch.where(known, result.values, step.tensor(ref).to(result.values.dtype))


def draws(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a call draws random numbers: not where an operator draws for a dropout only, as attention does, and
    drops nothing."""
    if torch.Tag.nondeterministic_seeded not in function.tags:
        return False
    for position, one in enumerate(function._schema.arguments):
        if one.name == "dropout_p":
            given = arguments[position] if position < len(arguments) else one.default_value
            return bool(keywords.get(one.name, given) != 0)
    return True


class _Inputs:
    """Recorded arguments, made ready for one execution."""

    def __init__(self, step: Step, floating: torch.dtype | None, device: str, change: Change | None) -> None:
        self._step, self._floating, self._device, self._change = step, floating, device, change

    def value(self, value: Any) -> Any:
        if isinstance(value, TensorRef):
            if value.storage not in self._step.storages:
                raise NotExecutableError(say("the values of a tensor were not recorded"))
            try:
                return self._tensor(self._step.tensor(value))
            except KeyError as error:
                raise NotExecutableError(say("the values of a tensor were not recorded")) from error
        if isinstance(value, tuple) and value and isinstance(value[0], str) and len(value) == 2:
            what, name = value
            if what == "dtype":
                return self._dtype(getattr(torch, name))
            if what == "device":
                return torch.device(self._device)
            if what == "layout":
                return torch.strided if "strided" in name else torch.preserve_format
            if what == "object":
                raise NotExecutableError(say("an argument was not recorded ({what})", what=name))
        if isinstance(value, list | tuple):
            return type(value)(self.value(one) for one in value)
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in value.items()}
        return value

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        given = tensor.to(device=self._device, dtype=self._dtype(tensor.dtype), copy=True)
        is_inexact = given.is_floating_point() or given.is_complex()
        return self._change(given) if self._change is not None and is_inexact else given

    def _dtype(self, dtype: torch.dtype) -> torch.dtype:
        if self._floating is None or not (dtype.is_floating_point or dtype.is_complex):
            return dtype
        return self._floating.to_complex() if dtype.is_complex else self._floating


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)


def written(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """The tensors that an operator changes."""
    for position, name in written_arguments(function):
        yield from _tensors(arguments[position] if position < len(arguments) else keywords.get(name))


def written_arguments(function: Any) -> tuple[tuple[int, str], ...]:
    """The arguments that an operator changes, by position and name. Of the statistics of a batch norm not every schema
    says so."""
    name = function.__name__
    updates = "batch_norm" in name and not any(word in name for word in ("backward", "no_training"))
    return tuple(
        (position, argument.name)
        for position, argument in enumerate(function._schema.arguments)
        if (updates and argument.name in ("running_mean", "running_var"))
        or (argument.alias_info is not None and argument.alias_info.is_write)
    )


def with_written(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> Any:
    """What an operator made: its result, and behind it the tensors that it wrote and does not return."""
    return joined(result, list(written(function, arguments, keywords)))


def joined(result: Any, changed: Sequence[torch.Tensor]) -> Any:
    """A result, and behind it the tensors that were written and are not in it."""
    returned = {_identity(tensor) for tensor in _tensors(result)}
    more = [one for one in changed if _identity(one) not in returned]
    if not more:
        return result
    return (*(result if isinstance(result, list | tuple) else () if result is None else (result,)), *more)


def _identity(tensor: torch.Tensor) -> int:
    """The same for tensors of one storage; a sparse tensor has none."""
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else id(tensor)
