"""Computing chosen operator calls in higher precision, or on the CPU, while a program runs as it is."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import get_worker_info

from npuport.precision.bisect.plan import Plan, Unit, write_seen
from npuport.precision.operators.execution import written
from npuport.precision.operators.modules import Modules
from npuport.precision.operators.unrecorded import called, lengths_read_first, with_lazy_views

# They compute nothing: numbers are moved, or turned into another dtype, which is what the program asks for.
_NOTHING_COMPUTED = ("empty", "new_", "resize", "set_", "copy_", "_to_copy", "clone", "detach", "_local_scalar", "fill")
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Raising(TorchDispatchMode):
    """Computes the units of a plan in higher precision while it is entered, and notes which units there are.

    What such a call gives has the dtype and lies on the device as without.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan
        self._seen: dict[Unit, None] = {}
        self._modules = Modules()
        self._of_sequence: dict[int, str] = {}
        self._dtypes: dict[Any, list[torch.dtype | None]] = {}
        self._hooks: list[Any] = []
        self._entered = ExitStack()

    def start(self) -> None:
        self._hooks = [
            register_module_forward_pre_hook(lambda module, arguments: self._modules.enters(module, (), 0)),  # noqa: ARG005
            register_module_forward_hook(
                lambda module, _arguments, _result: self._modules.leaves(module, {}, None, 0), always_call=True
            ),
            register_optimizer_step_post_hook(lambda *_: self._forget()),
        ]
        self._entered.enter_context(lengths_read_first())
        self._entered.enter_context(self)

    def stop(self) -> None:
        self._entered.close()
        for hook in self._hooks:
            hook.remove()
        if self._seen:
            write_seen(self._plan.seen, list(self._seen))

    def _forget(self) -> None:
        """A step is over: nothing of it is asked for again."""
        self._modules.take()
        self._of_sequence.clear()

    @property
    def seen(self) -> list[Unit]:
        """The units that were called, in order."""
        return list(self._seen)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        module = self._module()
        is_plain = all(type(one) in _PLAIN and one.layout is torch.strided for one in tensors)
        is_floating = any(one.is_floating_point() or one.is_complex() for one in tensors)
        if not is_plain or not is_floating or not _can_be_raised(func) or get_worker_info() is not None:
            return called(func, args, kwargs)
        unit = Unit(func.__name__.partition(".")[0], module)
        self._seen.setdefault(unit)
        if unit not in self._plan.units:
            return called(func, args, kwargs)
        return self._raised(func, args, kwargs, tensors[0].device)

    def _module(self) -> str:
        """The module that a call belongs to, in the backward pass too."""
        node = torch._C._current_autograd_node()
        if node is not None and not self._modules.path:  # what checkpointing computes again runs in its modules
            return self._of_sequence.get(node._sequence_nr(), "")
        # The first call after a node was made is the one that made it; later ones may make none.
        self._of_sequence.setdefault(torch.autograd._get_sequence_nr() - 1, self._modules.path)
        return self._modules.path

    def _raised(self, func: Any, args: Any, kwargs: Any, device: torch.device) -> Any:
        with_lazy_views()
        given: list[tuple[torch.Tensor, torch.Tensor]] = []

        def raised(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                copy = value.to(device=self._device(value.device), dtype=self._dtype(value.dtype), copy=True)
                given.append((value, copy))
                return copy
            if isinstance(value, torch.dtype):
                return self._dtype(value)
            return self._device(value) if isinstance(value, torch.device) else value

        dtypes = self._dtypes_of(func, args, kwargs)
        arguments, keywords = tree_map(raised, (args, kwargs))
        try:
            result = func(*arguments, **keywords)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):  # no such kernel: it stays as it is
            return func(*args, **kwargs)
        originals = {id(copy): value for value, copy in given}
        for copy in written(func, arguments, keywords):
            originals[id(copy)].copy_(copy)
        left = iter(dtypes)

        def lowered(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            dtype = next(left, None)
            return originals.get(id(value)) if id(value) in originals else value.to(device=device, dtype=dtype)

        return tree_map(lowered, result)

    def _dtypes_of(self, func: Any, args: Any, kwargs: Any) -> list[torch.dtype | None]:
        """The dtypes of the results as they are without raising, found once by computing so."""
        key = (func, tuple(str(getattr(one, "dtype", one)) for one in tree_leaves((args, kwargs))))
        if key not in self._dtypes:
            copies = tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, (args, kwargs))
            made = tree_leaves(func(*copies[0], **copies[1]))
            self._dtypes[key] = [one.dtype for one in made if isinstance(one, torch.Tensor)]
        return self._dtypes[key]

    def _device(self, device: torch.device) -> torch.device:
        return device if self._plan.how == "float32" else torch.device("cpu")

    def _dtype(self, dtype: torch.dtype) -> torch.dtype:
        if self._plan.how == "float64":
            return torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype
        is_short = dtype in (torch.float16, torch.bfloat16)
        return torch.float32 if self._plan.how == "float32" and is_short else dtype


@cache
def _can_be_raised(func: Any) -> bool:
    """Whether an operator computes: it makes no views, no random numbers, and does not only move values."""
    returns = func._schema.returns
    makes_views = any(one.alias_info is not None and not one.alias_info.is_write for one in returns)
    is_random = torch.Tag.nondeterministic_seeded in func.tags
    moves = func.__name__.startswith(_NOTHING_COMPUTED)
    return func.namespace == "aten" and bool(returns) and not (makes_views or is_random or moves)
