"""A dump of msprobe as a recorded step, so that what compares our recordings compares these.

msprobe does not tell which tensors are the same. Two with equal dtype, number of values and statistics are taken for
one: so a result and the input that it becomes are known to be the same values. They may be in another order, as those
of a transposed matrix: each order that was saved is an offset in the storage, as if they lay one behind another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from npuport.errors import UserError
from npuport.precision.msprobe.names import ApiName, ModuleName, parsed
from npuport.precision.msprobe.reading import Dump, find_dumps, read_dump
from npuport.precision.msprobe.tensor_files import DumpedStep, Files, checksums_of
from npuport.precision.operators.calls import Call, ModuleCall, Step, TensorRef
from npuport.precision.operators.statistics import Statistics

_FRAME = re.compile(r"File (?P<file>.+?), line (?P<line>\d+), in ")
_NOT_THE_USERS = ("site-packages", "dist-packages", "/lib/python3")


def read_step_of_msprobe(file: Path) -> Step:
    """The step that a dump.json or debug.json holds.

    Raises:
        UserError: the file is missing, not whole, or holds no call (task "structure").
    """
    return as_step(*_read(file))


def _read(file: Path) -> tuple[Dump, int, int]:
    """(the dump, its step, its rank)."""
    ((place, _),) = find_dumps(file).items()
    dump = read_dump(file)
    if not dump.data:
        raise UserError("{path} holds no call: msprobe recorded the structure only.", path=file)
    return dump, *place


def read_api_calls(file: Path) -> Step:
    """The API calls that a dump.json with tensors holds, to be executed alone.

    Raises:
        UserError: the file is missing, not whole, or has no APIs or no tensors.
    """
    dump, *place = _read(file)
    if not any(isinstance(parsed(name), ApiName) for name in dump.data):
        raise UserError(
            "{path} has no calls of APIs (it is of level {level}): record them with msprobe's level L1 or mix.",
            path=file,
            level=dump.level or "?",
        )
    if not dump.tensors.is_dir():
        raise UserError(
            "{path} has no tensors (its task is {task}): record them with msprobe's task tensor.",
            path=file,
            task=dump.task or "?",
        )
    step = as_step(dump, *place)
    calls = [call for call in step.calls if not call.operator.startswith(("Module.", "Cell.", "saved."))]
    return replace(step, calls=calls, has_apis=True)


def as_step(dump: Dump, step: int = 0, rank: int = 0) -> Step:
    """API calls become the calls of the step, and module calls its modules; a dump of modules only (level L0) has these
    as calls."""
    return _Reader(dump).step(step, rank)


class _Reader:
    def __init__(self, dump: Dump) -> None:
        self._dump = dump
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._statistics: dict[TensorRef, Statistics] = {}
        self._files: dict[tuple[int, int], Path] = {}
        self._orders: dict[int, dict[tuple[int, ...], int]] = {}  # of each storage the offsets by checksums
        self._names: dict[int, str] = {}
        self._there = {file.name for file in dump.tensors.iterdir()} if dump.tensors.is_dir() else set()
        self._missing: set[str] = set()
        self._forward: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def step(self, step: int, rank: int) -> Step:
        names = [(name, parsed(name)) for name in self._dump.data]
        has_apis = any(not isinstance(one, ModuleName) for _, one in names)
        calls: list[Call] = []
        modules: list[ModuleCall] = []
        for name, one in names:
            entry = self._dump.data[name]
            if not isinstance(entry, dict):
                continue
            if isinstance(one, ModuleName) and has_apis:
                modules += self._module(name, one, entry, len(calls))
            else:
                calls.append(self._call(name, one, entry, len(calls)))
        return DumpedStep(
            calls,
            Files(self._files),
            step,
            rank,
            "npu",
            self._statistics,
            self._names,
            modules,
            missing=len(self._missing),
        )

    def _call(self, name: str, one: ApiName | ModuleName | None, entry: dict[str, Any], index: int) -> Call:
        phase, line = self._place(name)
        if one is None:  # a tensor that was saved by hand
            return Call(index, f"saved.{name}", "", phase, (), {}, self._value(entry), line)
        arguments, keywords, result = self._parts(name, one, entry)
        if isinstance(one, ModuleName):
            operator = f"Module.{one.kind}.{one.number}"
            if one.way != "forward":
                operator = f"Module.{one.kind}.{one.way}.{one.number}"
            return Call(index, operator, one.path, _phase(one.way), arguments, keywords, result, line)
        operator = one.without_way
        return Call(index, operator, self._module_of(name), _phase(one.way, phase), arguments, keywords, result, line)

    def _parts(
        self, name: str, one: ApiName | ModuleName, entry: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Arguments, keywords and result. A backward call also depends on what the forward call was given."""
        whole = name.replace(f".{one.way}", "", 1)
        parameters = self._value(entry.get("parameters") or {})
        for key, value in parameters.items():
            if isinstance(value, TensorRef) and isinstance(one, ModuleName):
                self._names[value.storage] = f"parameter {one.path}.{key}".replace(" .", " ")
        if one.way == "forward":
            arguments = tuple(self._value(entry.get("input_args") or []))
            keywords = {**self._value(entry.get("input_kwargs") or {}), **parameters}
            self._forward[whole] = arguments, keywords
            return arguments, keywords, self._value(entry.get("output") or [])
        if one.way == "parameters_grad":
            whole = next((key for key in reversed(self._forward) if key.startswith(whole)), whole)
            return (), {"forward": self._forward.get(whole, ())}, self._value(entry)
        given = self._forward.get(whole, ((), {}))
        return tuple(self._value(entry.get("input") or [])), {"forward": given}, self._value(entry.get("output") or [])

    def _module(self, name: str, one: ModuleName, entry: dict[str, Any], calls: int) -> Iterator[ModuleCall]:
        arguments, keywords, result = self._parts(name, one, entry)
        if one.way == "parameters_grad":
            for key, value in result.items():
                for ref in value if isinstance(value, list) else [value]:
                    if isinstance(ref, TensorRef):
                        self._names.setdefault(ref.storage, f"gradient of {one.path}.{key}")
        else:
            yield ModuleCall(one.path, one.kind, one.way, arguments, keywords, result, calls, calls - 1)

    def _module_of(self, name: str) -> str:
        parent = self._dump.parents.get(name)
        for _ in range(100):
            one = parsed(parent) if parent is not None else None
            if isinstance(one, ModuleName):
                return one.path
            if parent is None:
                return ""
            parent = self._dump.parents.get(parent)
        return ""

    def _place(self, name: str) -> tuple[str, str]:
        """(phase, line of the user's code)."""
        frames = self._dump.stacks.get(name, [])
        phase = "optimizer" if any("torch/optim/" in frame for frame in frames) else "forward"
        for frame in frames:
            match = _FRAME.match(frame)
            if match is not None and not any(part in match["file"] for part in _NOT_THE_USERS):
                return phase, f"{Path(match['file']).name}:{match['line']}"
        return phase, ""

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(one) for one in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("type")
        if not isinstance(kind, str):
            return {key: self._value(one) for key, one in value.items()}
        if "dtype" in value and "shape" in value:
            return self._reference(value)
        if kind == "torch.dtype":
            return ("dtype", str(value.get("value")).removeprefix("torch."))
        return value["value"] if kind in _SCALARS and "value" in value else ("object", kind)

    def _reference(self, value: dict[str, Any]) -> TensorRef:
        shape = tuple(value["shape"])
        dtype = str(value["dtype"]).removeprefix("torch.")
        numbers = tuple(map(value.get, _NUMBERS))
        key: tuple[Any, ...] = (
            dtype,
            math.prod(shape),
            *("nan" if type(one) is float and math.isnan(one) else one for one in numbers),
        )
        if numbers == _NONE:
            key = (value.get("data_name"), len(self._numbers))  # nothing tells which it is
        number = self._numbers.setdefault(key, len(self._numbers))
        ref = TensorRef(number, dtype, shape, _contiguous(shape), self._offset(number, dtype, math.prod(shape), value))
        if ref not in self._statistics:
            self._statistics[ref] = _statistics(*numbers)
        return ref

    def _offset(self, number: int, dtype: str, count: int, value: dict[str, Any]) -> int:
        """Where the values of a tensor begin in its storage, by the order that its file has them in."""
        name = value.get("data_name")
        if not isinstance(name, str) or name == _NO_FILE:
            return 0
        if name not in self._there:
            self._missing.add(name)
            return 0
        path = self._dump.tensors / name
        orders = self._orders.setdefault(number, {})
        offset = orders.setdefault(checksums_of(path, count * _item_size(dtype)), count * len(orders))
        self._files.setdefault((number, offset), path)
        return offset


_NUMBERS = ("Max", "Min", "Mean", "Norm", "md5")
_NONE = (None,) * len(_NUMBERS)
_NO_FILE = "-1"  # where msprobe could not save a tensor
_SCALARS = {"int", "float", "bool", "str", "complex", "slice", "torch.Size", "ellipsis"}


def _phase(way: str, forward: str = "forward") -> str:
    return forward if way == "forward" else "backward"


@cache
def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))


@cache
def _item_size(dtype: str) -> int:
    import torch

    return int(getattr(getattr(torch, dtype, None), "itemsize", 0))


def _statistics(largest: Any, smallest: Any, mean: Any, norm: Any, checksum: Any) -> Statistics:
    """msprobe counts no NaN and no infinity: one of each stands for some."""
    given = (largest, smallest, mean, norm)
    if all(type(value) is float and math.isfinite(value) for value in given):
        return Statistics(largest, smallest, mean, norm, 0, 0, _checksum(checksum))
    ends = [value for value in (largest, smallest) if isinstance(value, int | float)]
    finite = [value if math.isfinite(value) else math.nan for value in map(_number, given)]
    return Statistics(
        finite[0],
        finite[1],
        finite[2],
        0.0 if math.isnan(finite[3]) else finite[3],
        nans=int(any(math.isnan(value) for value in ends)),
        infs=int(any(math.isinf(value) for value in ends)),
        checksum=_checksum(checksum),
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _checksum(value: Any) -> int | None:
    try:
        return int(value, 16)
    except (TypeError, ValueError):
        return None
