"""Executing a recorded call of a Python function of torch, as dumps of msprobe have them, and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from npuport.findings import say
from npuport.precision.operators.calls import Call, references
from npuport.precision.operators.execution import NotExecutableError, draws
from npuport.precision.operators.unrecorded import called
from npuport.precision.references.formulas import formula_of

_HOMES: dict[str, Any] = {"Functional": torch.nn.functional, "Torch": torch, "Tensor": torch.Tensor}
_INDEXING = ("__getitem__", "__setitem__")  # slices are not told from lists in what was read


def api_of(call: Call) -> Callable[..., Any]:
    """The function that an API of msprobe such as "Functional.linear.3" calls.

    Raises:
        NotExecutableError: it is a collective, or of a kind that is not known.
    """
    kind, _, rest = call.operator.partition(".")
    name = rest.rpartition(".")[0]
    if kind == "Distributed":
        raise NotExecutableError(say("a collective"))
    if name in _INDEXING:
        raise NotExecutableError(say("its indexes are not told apart in the dump"))
    if kind == "NPU":
        formula = formula_of(f"npu.{name}.default")
        if formula is None:
            raise NotExecutableError(say("no kernel on the CPU, and no reference formula"))
        return formula
    try:
        found: Callable[..., Any] = attrgetter(name)(_HOMES[kind])
    except (KeyError, AttributeError) as error:
        raise NotExecutableError(say("{name} is no function of this torch", name=call.operator)) from error
    return found


def result_of(call: Call, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What the function gives, or of a backward call the gradients of its tensors.

    Raises:
        NotExecutableError: it draws random numbers, or the dump has other gradients than those of its tensors.
    """
    function = api_of(call)
    if call.phase != "backward":
        with torch.no_grad(), _NoDraws():
            return function(*arguments, **keywords)
    given, named = keywords["forward"]
    return _gradients(function, given, named, arguments, [ref.shape for ref in references(call.result)])


def _gradients(
    function: Callable[..., Any],
    given: tuple[Any, ...],
    named: dict[str, Any],
    grads: tuple[Any, ...],
    shapes: list[tuple[int, ...]],
) -> list[torch.Tensor]:
    """The gradients that a backward hook on the function's last node sees, which is what msprobe records: those of the
    function's own tensors where it is one node."""
    leaves = [one for one in torch.utils._pytree.tree_leaves((given, named)) if isinstance(one, torch.Tensor)]
    for one in leaves:
        one.requires_grad_(one.is_floating_point())
    with torch.enable_grad(), _NoDraws():
        made = torch.utils._pytree.tree_leaves(function(*given, **named))
    pairs = [(one, grad) for one, grad in zip(made, grads, strict=False) if isinstance(grad, torch.Tensor)]
    nodes = [node for node, _ in pairs[0][0].grad_fn.next_functions if node is not None] if pairs else []
    places = [node.variable for node in nodes if hasattr(node, "variable")]
    if len(pairs) != 1 or len(places) < len(nodes) or [tuple(one.shape) for one in places] != shapes:
        raise NotExecutableError(say("the dump has other gradients than those of its tensors"))
    return list(torch.autograd.grad(pairs[0][0], places, pairs[0][1]))


class _NoDraws(TorchDispatchMode):
    """Refuses calls that draw random numbers."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if draws(func, args, kwargs or {}):
            raise NotExecutableError(say("random"))
        return called(func, args, kwargs or {})
