"""Recording operator calls below autograd, where no list of names decides what is seen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import get_worker_info

from npuport.precision.operators import communication
from npuport.precision.operators.calls import Call, Step, TensorRef, write_step
from npuport.precision.operators.execution import with_written, written
from npuport.precision.operators.modules import Modules


@dataclass(slots=True)
class _Known:
    """A storage that was seen: the numbers of the values that it has had, and whether it was written since the last.

    The weak reference keeps the address of the storage from being given to another one.
    """

    storage: StorageWeakRef
    numbers: list[int] = field(default_factory=list)
    is_written: bool = True


_OWN_CODE = ("site-packages", "dist-packages", "/lib/python3", "/npuport/", "<frozen", "<string>")


class Recorder(TorchDispatchMode):  # type: ignore[misc]  # torch gives it no type
    """Sees every operator call of a step while it is entered; ``take`` hands the step over and begins the next.

    A step ends with the optimizer's step. Calls that only make views are not recorded: their results are told by the
    storage that they look into. Collectives are operators like others.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[Call] = []
        self._storages: dict[int, torch.Tensor] = {}
        self._known: dict[int, _Known] = {}
        self._next_storage = 0
        self._awaited: dict[int, torch.Tensor] = {}
        self._is_early = False
        self._modules = Modules()
        self._names: dict[int, str] = {}
        self._of_sequence: dict[int, tuple[str, str]] = {}
        self._in_optimizer = False
        self._device = "cpu"

    def take(self, step: int, rank: int) -> Step:
        """The step that was recorded until now."""
        self._name(self._modules.names())
        self._storages.update({number: _bytes_of(tensor) for number, tensor in self._awaited.items()})
        self._awaited.clear()
        taken = Step(
            self._calls,
            self._storages,
            step,
            rank,
            self._device,
            names=self._names,
            modules=self._modules.take(),
        )
        self._calls, self._storages, self._names, self._known, self._next_storage = [], {}, {}, {}, 0
        self._of_sequence.clear()
        return taken

    def _name(self, named: Iterator[tuple[torch.Tensor, str]]) -> None:
        """Say what the storages of some tensors are, whatever values they have had in this step."""
        for tensor, name in named:
            known = self._known.get(_identity(tensor)) if type(tensor) in _PLAIN else None
            for number in known.numbers if known is not None else ():
                self._names.setdefault(number, name)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "profiler" or _makes_only_views(func) or get_worker_info() is not None:
            return func(*args, **kwargs)
        if any(map(communication.dispatches_by_itself, types)):
            return NotImplemented  # it makes calls with plain tensors, and those come here
        name = str(func)
        if communication.only_waits(name) or any(map(communication.is_pretended, types)):
            return func(*args, **kwargs)
        if name == "aten.copy_.default" and self._ends_collective(args[0]):
            return func(*args, **kwargs)
        inputs = self._values((args, kwargs))
        result = func(*args, **kwargs)
        if communication.is_pretended(type(result)):
            return result
        for tensor in (*written(func, args, kwargs), *communication.written_by(name, args)):
            if tensor.layout is torch.strided and (known := self._known.get(_identity(tensor))) is not None:
                known.is_written = True
        module, phase, line = self._place()
        if communication.is_collective(name):
            inputs = communication.with_group(func, inputs[0]), inputs[1]
            outputs = self._soon(communication.results_of(name, args, result))
        else:
            outputs = self._values(with_written(func, args, kwargs, result))
        self._calls.append(Call(len(self._calls), name, module, phase, inputs[0], inputs[1], outputs, line))
        return result

    def _place(self) -> tuple[str, str, str]:
        """(module, phase, line) of the call that is being made."""
        if self._in_optimizer:
            return "", "optimizer", ""
        node = torch._C._current_autograd_node()
        if node is not None:
            module, line = self._of_sequence.get(node._sequence_nr(), ("", ""))
            return module, "backward", line
        module = self._modules.path
        line = _line()
        self._of_sequence[torch.autograd._get_sequence_nr() - 1] = (module, line)
        return module, "forward", line

    def _values(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._reference(value)
        if isinstance(value, tuple):
            return tuple(self._values(one) for one in value)
        if isinstance(value, list):
            return [self._values(one) for one in value]
        if isinstance(value, dict):
            return {str(key): self._values(one) for key, one in value.items()}
        if isinstance(value, torch.dtype):
            return ("dtype", str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return ("device", value.type)
        if value is None or isinstance(value, bool | int | float | complex | str):
            return value
        if isinstance(value, torch.layout | torch.memory_format):
            return ("layout", str(value))
        if isinstance(value, torch.ScriptObject):
            return communication.described(value)
        return ("object", type(value).__name__)

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
        known = self._known.get(_identity(tensor))
        number = known.numbers[-1] if known is not None and known.numbers else -1
        return number in self._awaited and any(ref.storage == number for ref in self._calls[-1].outputs)

    def _reference(self, tensor: torch.Tensor) -> Any:
        if tensor.layout is not torch.strided or tensor.is_quantized or type(tensor) not in _PLAIN:
            return ("object", f"{type(tensor).__name__} {tensor.layout}")
        if tensor._is_zerotensor() or tensor.is_conj() or tensor.is_neg():
            return ("object", "a lazy view")  # its storage is not its values; a zero tensor has none at all
        if tensor.device.type == "meta":
            return ("object", "a tensor without values")
        if tensor.device.type != "cpu":
            self._device = tensor.device.type
        identity = _identity(tensor)
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = _Known(StorageWeakRef(tensor.untyped_storage()))
        if known.is_written:
            known.numbers.append(self._next_storage)
            known.is_written = False
            self._awaited[self._next_storage] = tensor
            self._next_storage += 1
        if not self._is_early and (awaited := self._awaited.pop(known.numbers[-1], None)) is not None:
            self._storages[known.numbers[-1]] = _bytes_of(awaited)
        return TensorRef(
            known.numbers[-1],
            str(tensor.dtype).removeprefix("torch."),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            int(tensor.storage_offset()),
        )

    def _enters(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        with torch._C._DisableTorchDispatch():
            self._modules.enters(module, self._values(arguments), len(self._calls))

    def _leaves(self, module: torch.nn.Module, _: tuple[Any, ...], *rest: Any) -> None:
        # When the module raised, torch tells no keywords.
        keywords, result = rest if len(rest) == 2 else ({}, rest[0])
        with torch._C._DisableTorchDispatch():
            self._modules.leaves(module, self._values(keywords), self._values(result), len(self._calls))

    @contextmanager
    def watching(self, ended: Callable[[], None]) -> Iterator[None]:
        """Follow modules and optimizers; ``ended`` is called after each optimizer step."""

        def begins(*_: Any) -> None:
            self._in_optimizer = True

        def ends(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            self._in_optimizer = False
            self._name(self._modules.names_of_state(optimizer))
            ended()

        hooks = [
            register_module_forward_pre_hook(self._enters),
            register_module_forward_hook(self._leaves, with_kwargs=True, always_call=True),
            register_optimizer_step_pre_hook(begins),
            register_optimizer_step_post_hook(ends),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


@contextmanager
def record(folder: Path, steps: range = range(1)) -> Iterator[None]:
    """Record the steps in ``steps`` (counted from 0 by optimizer steps) of the code inside, one file for each.

    Modules are known by their paths from the module that is called first. The rank is that of torch.distributed, else
    the variable RANK.
    """
    recorder = Recorder()
    done = 0
    entered = False

    def enter() -> None:
        nonlocal entered
        if not entered and done in steps:
            recorder.__enter__()
            entered = True

    def leave() -> None:
        nonlocal entered
        if entered:
            recorder.__exit__(None, None, None)
            entered = False

    def ended() -> None:
        nonlocal done
        if entered:
            leave()
            write_step(folder, recorder.take(done, _rank()))
        done += 1
        enter()

    with recorder.watching(ended):
        enter()
        try:
            yield
        finally:
            leave()


def _rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return int(os.environ.get("RANK", "0"))


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _identity(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage of a tensor, on the CPU, as bytes."""
    storage = tensor.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
    return whole.detach().to("cpu", copy=True)


def _makes_only_views(func: Any) -> bool:
    """Whether an operator's results look into its inputs and nothing is written."""
    returns = func._schema.returns
    return bool(returns) and all(one.alias_info is not None and not one.alias_info.is_write for one in returns)


def _line() -> str:
    """The line of the user's code that is running."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not any(part in file for part in _OWN_CODE):
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
