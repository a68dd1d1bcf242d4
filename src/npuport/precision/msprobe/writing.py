"""A recorded step in the layout of msprobe's dumps, as mindstudio-probe 26.2.0 writes and compares them.

Each operator call becomes an API of type Aten (`Aten.addmm.3.forward`), those of the backward pass too: at the
dispatcher they are calls of operators of their own. Each module call becomes a `Module.` entry.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.precision.msprobe.reading import CONSTRUCT, DUMP, STACK, TENSORS
from npuport.precision.operators.calls import Call, ModuleCall, Step, TensorRef, references

if TYPE_CHECKING:
    import torch

_FLOATING = ("float", "bfloat")


def write_dump(step: Step, folder: Path) -> Path:
    """Write a step to ``folder``/stepN/rankR, aside first; the dump.json."""
    place = folder / f"step{step.step}" / f"rank{step.rank}"
    aside = place.with_name(f".{place.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    writer = _Writer(step, aside if step.has_tensors else None)
    data = writer.entries()
    document = {
        "task": "tensor" if step.has_tensors else "statistics",
        "level": "mix" if step.modules else "L1",
        "framework": "pytorch",
        "dump_data_dir": str((place / TENSORS).absolute()) if step.has_tensors else None,
        "data": data,
    }
    for name, content in ((DUMP, document), (CONSTRUCT, writer.parents), (STACK, dict(writer.stacks()))):
        (aside / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
    shutil.rmtree(place, ignore_errors=True)
    aside.replace(place)
    return place / DUMP


class _Writer:
    def __init__(self, step: Step, folder: Path | None) -> None:
        self._step = step
        self._tensors = folder / TENSORS if folder is not None else None
        if self._tensors is not None:
            self._tensors.mkdir()
        self.parents: dict[str, str | None] = {}
        self._lines: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._number = 0

    def entries(self) -> dict[str, Any]:
        """The entry of each call, in the order in which calls ended, and of the gradients of parameters."""
        modules = [one for one in self._step.modules if one.path]  # msprobe has no entry for the model itself
        names = {id(one): self._named(f"Module.{one.path}.{one.class_name}.{one.phase}", "") for one in modules}
        of_calls, of_modules = _innermost(modules, names, len(self._step.calls))
        ending: dict[int, list[ModuleCall]] = {}
        for one in reversed(modules):  # those that were entered last end first
            ending.setdefault(max(one.last, one.first - 1), []).append(one)
        data: dict[str, Any] = {}
        for call in [None, *self._step.calls]:
            if call is not None:
                short = call.operator.removeprefix("aten.").rpartition(".")[0].replace(".", "_")
                name = self._named(f"Aten.{short}", ".forward")
                data[name] = self._entry(name, call)
                self.parents[name] = of_calls[call.index]
                self._lines[name] = call.line
            for one in ending.get(call.index if call is not None else -1, []):
                name = names[id(one)]
                data[name] = self._entry(name, one)
                self.parents[name] = of_modules[id(one)]
        data.update(self._gradients(modules))
        return data

    def stacks(self) -> Iterator[tuple[str, Any]]:
        """Calls by their line of code: of the stack no more is recorded."""
        by_line: dict[str, list[str]] = {}
        for name, line in self._lines.items():
            by_line.setdefault(line, []).append(name)
        for number, (line, calls) in enumerate(by_line.items()):
            file, _, at = line.rpartition(":")
            frames = [f"File {file}, line {at}, in <unknown>, \n "] if file else []
            yield str(number), [calls, frames]

    def _named(self, name: str, way: str) -> str:
        number = self._counts[name]
        self._counts[name] += 1
        return f"{name}.{number}{way}"

    def _entry(self, name: str, call: Call | ModuleCall) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "input_args": [self._value(f"{name}.input.{at}", value) for at, value in enumerate(call.arguments)],
            "input_kwargs": {key: self._value(f"{name}.input.{key}", value) for key, value in call.keywords.items()},
        }
        result = call.result if isinstance(call.result, list | tuple) else [call.result]
        entry["output"] = [self._value(f"{name}.output.{at}", value) for at, value in enumerate(result)]
        if isinstance(call, ModuleCall):
            entry["parameters"] = {
                key: self._value(f"{name}.parameters.{key}", ref) for key, ref in self._parameters(call)
            }
        return entry

    def _parameters(self, module: ModuleCall) -> Iterator[tuple[str, TensorRef]]:
        """The parameters of a module itself that the calls inside were given."""
        start = f"parameter {module.path}."
        seen: set[str] = set()
        for call in self._step.calls[module.first : module.last + 1]:
            for ref in call.inputs:
                name = self._step.names.get(ref.storage, "")
                key = name.removeprefix(start)
                if name.startswith(start) and "." not in key and key not in seen:
                    seen.add(key)
                    yield key, ref

    def _gradients(self, modules: list[ModuleCall]) -> dict[str, Any]:
        classes = {one.path: one.class_name for one in modules}
        found: dict[str, Any] = {}
        for call in self._step.calls:
            for ref in references((call.arguments, call.result)):
                name = self._step.names.get(ref.storage, "")
                path, _, key = name.removeprefix("gradient of ").rpartition(".")
                if name.startswith("gradient of ") and path in classes:
                    entry = f"Module.{path}.{classes[path]}.parameters_grad"
                    values = found.setdefault(entry, {})
                    if key not in values:
                        values[key] = [self._value(f"{entry}.{key}", ref)]
                        self.parents[entry] = None
        return found

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, TensorRef):
            return self._tensor(name, value)
        if isinstance(value, tuple) and value and value[0] in ("dtype", "device", "layout", "memory_format", "object"):
            return {"type": "str", "value": str(value[1])}
        if isinstance(value, list | tuple):
            return [self._value(f"{name}.{at}", one) for at, one in enumerate(value)]
        if isinstance(value, Mapping):
            return {str(key): self._value(f"{name}.{key}", one) for key, one in value.items()}
        if value is None:
            return None
        if isinstance(value, bool | int | float | str):
            return {"type": type(value).__name__, "value": value}
        return {"type": "str", "value": str(value)}

    def _tensor(self, name: str, ref: TensorRef) -> dict[str, Any]:
        entry = {"type": "torch.Tensor", "dtype": f"torch.{ref.dtype}", "shape": list(ref.shape), **self._numbers(ref)}
        entry["requires_grad"] = False  # below autograd nothing tells
        if self._tensors is not None and ref.storage in self._step.storages:
            import torch

            torch.save(self._step.tensor(ref).clone(), self._tensors / f"{name}.pt")
            entry["data_name"] = f"{name}.pt"
        return entry

    def _numbers(self, ref: TensorRef) -> dict[str, Any]:
        if ref.storage in self._step.storages:
            return _numbers_of(self._step.tensor(ref))
        known = self._step.statistics_of(ref)
        if known is None or not math.prod(ref.shape) or "complex" in ref.dtype:
            return dict.fromkeys(("Max", "Min", "Mean", "Norm"))
        if known.nans:
            return dict.fromkeys(("Max", "Min", "Mean", "Norm"), math.nan)
        if ref.dtype == "bool":
            return {"Max": bool(known.max), "Min": bool(known.min), "Mean": None, "Norm": None}
        if not ref.dtype.startswith(_FLOATING):
            return {"Max": int(known.max), "Min": int(known.min), "Mean": None, "Norm": None}
        if known.infs:  # of which sign is not recorded: the largest and smallest finite values stay
            return {"Max": known.max, "Min": known.min, "Mean": math.nan, "Norm": math.inf}
        return {"Max": known.max, "Min": known.min, "Mean": known.mean, "Norm": known.norm}


def _numbers_of(tensor: torch.Tensor) -> dict[str, Any]:
    """As msprobe has them: whole numbers have no mean and no norm, complex and empty tensors nothing."""
    import torch

    if not tensor.numel() or tensor.is_complex():
        return dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if tensor.dtype == torch.bool:
        return {"Max": bool(tensor.any()), "Min": bool(tensor.all()), "Mean": None, "Norm": None}
    if not tensor.is_floating_point():
        return {"Max": int(tensor.max()), "Min": int(tensor.min()), "Mean": None, "Norm": None}
    values = tensor.float() if tensor.dtype != torch.float64 else tensor
    numbers = (values.max(), values.min(), values.mean(), torch.linalg.vector_norm(values))
    return dict(zip(("Max", "Min", "Mean", "Norm"), (float(one) for one in numbers), strict=True))


def _innermost(
    modules: list[ModuleCall], names: Mapping[int, str], count: int
) -> tuple[list[str | None], dict[int, str | None]]:
    """The name of the innermost module call around each operator call, and around each module call (by its id)."""
    of_calls: list[str | None] = [None] * count
    of_modules: dict[int, str | None] = {}
    for one in modules:  # as they were entered: the outer ones first
        of_modules[id(one)] = of_calls[one.first] if one.first <= one.last else None
        of_calls[one.first : one.last + 1] = [names[id(one)]] * (one.last + 1 - one.first)
    return of_calls, of_modules
