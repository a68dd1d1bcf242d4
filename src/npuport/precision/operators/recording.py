"""Recording operator calls below autograd, where no list of names decides what is seen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from npuport.precision.operators import communication
from npuport.precision.operators.calls import ModuleCall, Plain, Recorded, Step, references_in
from npuport.precision.operators.execution import joined, written_arguments
from npuport.precision.operators.keeping import Keeper, Tensors
from npuport.precision.operators.modules import Modules
from npuport.precision.operators.plain_values import AS_THEY_ARE, plain
from npuport.precision.operators.scope import Scope
from npuport.precision.operators.unrecorded import (
    differentiated_inside,
    is_differentiated_inside,
    lengths_read_first,
    with_lazy_views,
)

_node, _next_sequence = torch._C._current_autograd_node, torch.autograd._get_sequence_nr
_MARK = "_npuport_known"  # attribute of storages
_NOT_OF_THE_RUN = ("profiler", "npuport_sim")  # namespaces whose operators compute nothing of the training
_OWN_CODE = ("site-packages", "dist-packages", "/lib/python3", "/npuport/", "<frozen", "<string>")


_FORKS: list[None] = []
"""One for each fork between the first process and this one: to ask for its number takes longer, at each call."""
os.register_at_fork(after_in_child=lambda: _FORKS.append(None))


class Recorder(TorchDispatchMode):
    """Sees every operator call of a step while it is entered; ``take`` hands the step over and begins the next.

    Calls that only make views are not recorded: their results are told by the storage that they look into. Collectives
    are operators like others; the values of their results are taken when they are used.
    """

    def __init__(self, keeper: Keeper | None = None, scope: Scope | None = None) -> None:
        super().__init__()
        self._keeper = keeper if keeper is not None else Tensors()
        self._scope = scope if scope is not None else Scope()
        self._is_everything = self._scope.is_everything
        self._forks = len(_FORKS)
        self._calls: list[Plain] = []
        self._step = object()
        self._refs: dict[tuple[Any, ...], Plain] = {}
        self._next_storage = 0
        self._kept: set[int] = set()
        self._awaited: dict[int, tuple[Plain, torch.Tensor]] = {}
        self._is_early = False
        self._modules = Modules()
        self._names: dict[int, str] = {}
        self._of_sequence: dict[int, tuple[str, str]] = {}
        self._in_optimizer = False
        self._device = "cpu"

    def take(self, step: int, rank: int) -> Step:
        """The step that was recorded until now."""
        return self.recorded(step, rank).decoded()

    def recorded(self, step: int, rank: int) -> Recorded:
        """The same as the step's file has it."""
        self._name(self._modules.names())
        for ref, tensor in self._awaited.values():
            self._keep(ref, tensor)
        storages, statistics = self._keeper.take()
        modules = [tuple(getattr(one, name) for name in ModuleCall.__slots__) for one in self._modules.take()]
        taken = Recorded(self._calls, storages, step, rank, self._device, statistics, self._names, modules)
        self._calls, self._names, self._refs, self._step, self._next_storage = [], {}, {}, object(), 0
        self._awaited, self._kept = {}, set()
        self._of_sequence.clear()
        return taken

    def _name(self, named: Iterator[tuple[torch.Tensor, str]]) -> None:
        """Say what the storages of some tensors are, whatever values they have had in this step."""
        for tensor, name in named:
            known = self._known(getattr(tensor, "_local_tensor", tensor))  # of a DTensor that of this rank
            for number in known.numbers if known is not None else ():
                self._names.setdefault(number, name)

    def _known(self, tensor: torch.Tensor) -> _Known | None:
        """What is known of a tensor's storage in this step."""
        if tensor.layout is not torch.strided or not _has_plain_class(tensor):
            return None
        known: _Known | None = getattr(tensor.untyped_storage(), _MARK, None)
        return known if known is not None and known.step is self._step else None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with_lazy_views()
        if self._forks != len(_FORKS):  # a worker of a data loader, forked while recording
            return func(*args, **kwargs)
        for one in types:
            if not _is_plain(one):
                # What a DTensor and the like is made of comes here by itself; what only pretends has no values.
                return func(*args, **kwargs) if communication.is_pretended(one) else NotImplemented
        facts = _facts(func)
        if facts.is_skipped or (self._awaited and facts.is_copy and self._ends_collective(args[0])):
            if not self._in_optimizer and _node() is None:
                self._remember(_next_sequence() - 1)  # what its node does in the backward pass belongs here
            return self._differentiated(func, args, kwargs) if facts.is_differentiated_inside else func(*args, **kwargs)
        module, phase, line = self._place()
        is_recorded = self._is_everything or self._scope.holds(facts.name, module, phase)
        given: Plain = (self._values(args), self._values(kwargs)) if is_recorded else ()
        is_inside = facts.is_differentiated_inside
        result = self._differentiated(func, args, kwargs) if is_inside else func(*args, **kwargs)
        if type(result) is not torch.Tensor and communication.is_pretended(type(result)):
            return result
        written = facts.written_tensors(args, kwargs) if facts.written else []
        for tensor in (*written, *_tensors(result)) if facts.is_custom else written:
            if (known := self._known(tensor)) is not None:
                known.is_written = True
        if not is_recorded:
            return result
        if facts.is_collective:
            given = ("tuple", *communication.with_group(func, given[0][1:])), given[1]
            made = self._soon(communication.results_of(facts.name, args, result))
        else:
            is_told = not written or (len(written) == 1 and written[0] is result)
            made = self._values(result if is_told else joined(result, written))
        self._calls.append((len(self._calls), facts.name, module, phase, *given, made, line))
        return result

    def _place(self) -> tuple[str, str, str]:
        """(module, phase, line) of the call that is being made."""
        if self._in_optimizer:
            return "", "optimizer", ""
        node = _node()
        if node is not None and not self._modules.path:
            module, line = self._of_sequence.get(node._sequence_nr(), ("", ""))
            return module, "backward", line
        module, line = self._modules.path, _line()
        # The node of this call was made before it; of a call without one, that of the last call stays.
        self._of_sequence.setdefault(_next_sequence() - 1, (module, line))
        return module, "forward" if node is None else "backward", line

    def _differentiated(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operator that is differentiated inside, with the graph that it has without a mode."""
        first = _next_sequence()
        with differentiated_inside():
            result = func(*args, **kwargs)
        if _node() is None and not self._in_optimizer:
            for sequence in range(first, _next_sequence()):
                self._remember(sequence)
        return result

    def _remember(self, sequence: int) -> None:
        """Say where the node of a number was made."""
        if sequence not in self._of_sequence:
            self._of_sequence[sequence] = self._modules.path, _line()

    def _values(self, value: Any) -> Any:
        """A value as the step's file has it."""
        kind = type(value)
        if kind is torch.Tensor:  # the most frequent first: this is called for each argument
            return self._reference(value)
        if kind in AS_THEY_ARE:
            return value
        if kind is tuple:
            return ("tuple", *[self._values(one) for one in value])
        if kind is list:
            return [self._values(one) for one in value]
        if kind is dict:
            return {str(key): self._values(one) for key, one in value.items()}
        if isinstance(value, torch.Tensor):
            return self._reference(value)
        return self._values(_unwrapped(value)) if isinstance(value, tuple | list | dict) else plain(value)

    def _soon(self, tensors: list[torch.Tensor]) -> Any:
        """References to results that a collective may not have written yet: their values are taken when they are
        used."""
        self._is_early = True
        try:
            return self._values(tensors)
        finally:
            self._is_early = False

    def _ends_collective(self, tensor: torch.Tensor) -> bool:
        """Whether the last call was a collective with this result that is still to come: gloo copies it there at
        last."""
        known = self._known(tensor) if self._awaited else None
        number = known.numbers[-1] if known is not None and known.numbers else -1
        return number in self._awaited and number in [ref[1] for ref in references_in(self._calls[-1][6])]

    def _reference(self, tensor: torch.Tensor) -> Any:
        kind: Any = type(tensor)
        if kind is not torch.Tensor and not _is_plain(kind):
            return ("object", f"{kind.__name__} {tensor.layout}")
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:  # a sparse tensor and the like
            return ("object", f"{kind.__name__} {tensor.layout}")
        known = getattr(storage, _MARK, None)
        if known is None or known.step is not self._step:
            known = _Known(self._step, _without_values(tensor))
            setattr(storage, _MARK, known)
        if known.is_without:
            return ("object", known.is_without)
        dtype = tensor.dtype
        if tensor.is_neg() or (dtype.is_complex and tensor.is_conj()):
            return ("object", "a lazy view")  # its storage is not its values
        if known.is_written:
            known.is_written = False
            known.numbers.append(self._next_storage)
            self._next_storage += 1
            if not tensor.is_cpu:
                self._device = tensor.device.type
        number = known.numbers[-1]
        if self._awaited and number in self._awaited and not self._is_early:
            self._keep(*self._awaited.pop(number))
        shape, stride, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
        key = (number, dtype, shape, stride, offset)
        ref = self._refs.get(key)
        if ref is None:
            ref = self._refs[key] = ("tensor", number, _name_of(dtype), tuple(shape), stride, offset)
            if self._is_early:
                self._awaited[number] = (ref, tensor)
            else:
                self._keep(ref, tensor)
        return ref

    def _keep(self, ref: Plain, tensor: torch.Tensor) -> None:
        if ref[1] not in self._kept:
            self._kept.add(ref[1])
            self._keeper.storage(ref[1], tensor)
        self._keeper.view(ref, tensor)

    def _enters(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        with _unseen():
            self._modules.enters(module, self._values(arguments), len(self._calls))

    def _leaves(self, module: torch.nn.Module, _: tuple[Any, ...], *rest: Any) -> None:
        # When the module raised, torch tells no keywords.
        keywords, result = rest if len(rest) == 2 else ({}, rest[0])
        with _unseen():
            self._modules.leaves(module, self._values(keywords), self._values(result), len(self._calls))

    def optimizer_begins(self) -> None:
        self._in_optimizer = True

    def optimizer_ended(self, optimizer: torch.optim.Optimizer) -> None:
        self._in_optimizer = False
        self._name(self._modules.names_of_state(optimizer))

    @contextmanager
    def following(self) -> Iterator[None]:
        """See operators, and which modules run."""
        hooks = [
            register_module_forward_pre_hook(self._enters),
            register_module_forward_hook(self._leaves, with_kwargs=True, always_call=True),
        ]
        try:
            with lengths_read_first(), self:
                yield
        finally:
            for hook in hooks:
                hook.remove()


@dataclass(slots=True)
class _Known:
    """A storage that was seen: the numbers of the values that it has had, and whether it was written since the last.

    It is an attribute of the storage's Python object, which lives as long as the storage does: so it cannot be taken
    for that of another storage at the same address, and nothing that is held keeps memory from being used again.
    """

    step: object
    is_without: str  # why no values can be read from it; "" if they can
    numbers: list[int] = field(default_factory=list)
    is_written: bool = True


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is fixed for an operator."""

    name: str
    is_skipped: bool  # makes only views, waits, or marks a range of a profiler
    is_collective: bool
    # What a custom operator returns may look into an argument that was written, without its schema saying so: those of
    # FSDP fill a buffer and return parts of it, and so does npu_apply_adam.out. A new tensor is unknown anyway.
    is_custom: bool
    is_copy: bool
    is_differentiated_inside: bool
    written: tuple[tuple[int, str], ...]  # arguments that it writes, by position and name

    def written_tensors(self, args: Any, kwargs: Any) -> list[torch.Tensor]:
        values = [args[position] if position < len(args) else kwargs.get(name) for position, name in self.written]
        return list(_tensors(values))


@cache
def _facts(func: Any) -> _Facts:
    schema, name = func._schema, str(func)
    aliases = [one.alias_info for one in schema.returns]
    makes_only_views = bool(aliases) and all(one is not None and not one.is_write for one in aliases)
    written = written_arguments(func)
    place = communication.WRITTEN.get(func._opname) if func.namespace == "c10d" else None
    if place is not None and not written:
        written = ((place, schema.arguments[place].name),)
    is_skipped = (
        func.namespace in _NOT_OF_THE_RUN or communication.only_waits(name) or (makes_only_views and not written)
    )
    is_custom = func.namespace not in ("aten", "prims", "c10d", "_c10d_functional")
    is_copy = name == "aten.copy_.default"
    is_inside = is_differentiated_inside(func)
    return _Facts(name, is_skipped, communication.is_collective(name), is_custom, is_copy, is_inside, written)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)


def _unwrapped(value: Any) -> Any:
    """Values of a class of its own, such as an output of transformers, as a plain tuple, list or dictionary."""
    return next(kind(value) for kind in (dict, list, tuple) if isinstance(value, kind))


@contextmanager
def _unseen() -> Iterator[None]:
    """Operators called here are neither recorded nor differentiated."""
    with torch._C._DisableTorchDispatch(), torch.no_grad():
        yield


def _without_values(tensor: torch.Tensor) -> str:
    """Why the values of a strided tensor, and of others with its storage, are not recorded; "" if they are."""
    if tensor.is_quantized:
        return f"{type(tensor).__name__} {tensor.layout}"
    if tensor._is_zerotensor():
        return "a lazy view"  # there is no memory behind it
    return "a tensor without values" if tensor.is_meta else ""


def _has_plain_class(tensor: Any) -> bool:
    kind: Any = type(tensor)
    return _is_plain(kind)


@cache
def _is_plain(kind: Any) -> bool:
    """Whether tensors of a class do nothing of their own below autograd."""
    return bool(kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__)


@cache
def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@cache
def _users_file(name: str) -> str:
    """The name of a file of code without its folder; "" for one that is not the user's."""
    return "" if any(part in name for part in _OWN_CODE) else Path(name).name


def _line() -> str:
    """The line of the user's code that is running."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if file := _users_file(frame.f_code.co_filename):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
