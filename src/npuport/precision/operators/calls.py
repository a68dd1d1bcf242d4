"""A recorded step: every operator call with its tensors, as plain values, and the file that holds them.

The file of one step of one rank is what ``torch.save`` writes: a dictionary with the calls and each storage once. Views
of a storage are told by offset, sizes and strides, so that a weight, its transpose and its use in ten calls are stored
once.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError
from npuport.precision.operators.statistics import Statistics

if TYPE_CHECKING:
    import torch

SHARD = "shard of "
FORMAT = 2


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor of a call: which storage, and how it lies in it."""

    storage: int
    dtype: str  # such as "float32"
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator. ``arguments`` and ``result`` hold TensorRefs where the call had tensors, and else plain
    values; dtypes and devices are told by name, as ("dtype", "float32") and ("device", "npu"). A collective has
    ("group", name, ranks) and ("reduction", "sum"), and its result is the list of the tensors that it made or wrote."""

    index: int
    operator: str  # such as "aten.addmm.default"
    module: str  # the path of the module, such as "layers.0.attn"; "" outside of modules
    phase: str  # "forward", "backward" or "optimizer"
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    result: Any
    line: str  # of the user's code in the forward pass, such as "model.py:63"; "" where it is not known

    @property
    def inputs(self) -> list[TensorRef]:
        return references((self.arguments, dict(self.keywords)))

    @property
    def outputs(self) -> list[TensorRef]:
        return references(self.result)


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One forward call of a module; ``arguments``, ``keywords`` and ``result`` are as those of a Call. ``first`` and
    ``last`` are the indexes of the operator calls made inside; ``last`` < ``first`` where there was none."""

    path: str  # such as "layers.0.attn"; "" for the model itself
    class_name: str
    phase: str  # "forward"
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    result: Any
    first: int
    last: int

    @property
    def inputs(self) -> list[TensorRef]:
        return references((self.arguments, dict(self.keywords)))

    @property
    def outputs(self) -> list[TensorRef]:
        return references(self.result)


@dataclass
class Step:
    """All calls of one step of one rank, with the storages. ``device`` is the type of the device, such as "npu".

    A storage number stands for values: a storage that is written has another number afterwards. ``names`` says what a
    storage number is where that is known, such as "parameter layers.0.weight", "buffer mask", "gradient of
    layers.0.weight" or "exp_avg of layers.0.weight"; of a tensor that is divided among ranks with SHARD in front.
    ``modules`` are in the order in which they were entered.
    Either ``storages`` or ``statistics`` is empty, by what was recorded. ``has_apis``: the calls are Python functions
    of torch, such as "Functional.linear.3", as msprobe records them; a backward call has the arguments and keywords of
    its forward call as the keyword "forward".
    """

    calls: list[Call]
    storages: dict[int, torch.Tensor] = field(repr=False)
    step: int = 0
    rank: int = 0
    device: str = "cpu"
    statistics: dict[TensorRef, Statistics] = field(default_factory=dict, repr=False)
    names: dict[int, str] = field(default_factory=dict, repr=False)
    modules: list[ModuleCall] = field(default_factory=list, repr=False)
    has_apis: bool = False

    @property
    def has_tensors(self) -> bool:
        """Whether the tensors themselves were recorded, not only their statistics."""
        return bool(self.storages) or not self.statistics

    def tensor(self, ref: TensorRef) -> torch.Tensor:
        """The tensor on the CPU.

        Raises:
            KeyError: only statistics were recorded, or not even those.
        """
        import torch

        whole = self.storages[ref.storage].view(getattr(torch, ref.dtype))
        return torch.as_strided(whole, ref.shape, ref.stride, ref.offset)

    def statistics_of(self, ref: TensorRef, *, with_checksum: bool = False) -> Statistics | None:
        """The statistics of a tensor, as recorded or computed from the recorded tensor; None where neither is there.

        What was recorded has a checksum only if checksums were recorded.
        """
        found = self.statistics.get(ref)
        if found is None and ref.storage in self.storages:
            from npuport.precision.operators.summing import statistics_of

            found = statistics_of(self.tensor(ref), with_checksum=with_checksum)
        return found


Plain = tuple[Any, ...]


@dataclass
class Recorded:
    """A step as its file has it, of plain values: what is recorded is made in this form, which takes a third of the
    time. A reference is ("tensor", storage, dtype, shape, stride, offset), a tuple has "tuple" in front."""

    calls: list[Plain]
    storages: dict[int, torch.Tensor] = field(repr=False)
    step: int
    rank: int
    device: str
    statistics: list[tuple[Plain, Plain]]
    names: dict[int, str]
    modules: list[Plain]

    def decoded(self) -> Step:
        return Step(
            [_call(entry) for entry in self.calls],
            self.storages,
            self.step,
            self.rank,
            self.device,
            {_decoded(ref): Statistics(*values) for ref, values in self.statistics},
            self.names,
            [_module(entry) for entry in self.modules],
        )


def references_in(value: Any) -> Iterator[Plain]:
    """Every reference in nested values of this form, in order."""
    if isinstance(value, tuple) and value and value[0] == "tensor":
        yield value
    elif isinstance(value, tuple | list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from references_in(one)


def encoded(step: Step) -> Recorded:
    return Recorded(
        [_plain_call(call) for call in step.calls],
        step.storages,
        step.step,
        step.rank,
        step.device,
        [(_encoded(ref), one.values()) for ref, one in step.statistics.items()],
        step.names,
        [_plain_module(one) for one in step.modules],
    )


def references(value: Any) -> list[TensorRef]:
    """Every tensor in nested values, in order."""
    found: list[TensorRef] = []
    _gather(value, found)
    return found


def _gather(value: Any, found: list[TensorRef]) -> None:
    kind = type(value)
    if kind is TensorRef:
        found.append(value)
    elif kind is list or kind is tuple:
        for one in value:
            _gather(one, found)
    elif kind is dict:
        for one in value.values():
            _gather(one, found)


def step_file(folder: Path, step: int, rank: int) -> Path:
    return folder / f"step{step}" / f"rank{rank}.pt"


def write_step(folder: Path, step: Step | Recorded) -> Path:
    """Write a step aside, then rename: a run that is killed leaves whole steps only."""
    import torch

    from npuport.precision.operators.plain_file import PlainPickle

    recorded = step if isinstance(step, Recorded) else encoded(step)
    path = step_file(folder, step.step, step.rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"npuport": FORMAT, **vars(recorded)}, aside(path), pickle if recorded.storages else PlainPickle)
    aside(path).replace(path)
    return path


def aside(path: Path) -> Path:
    """Where a step's file is until it is whole."""
    return path.with_suffix(".new")


def read_step(path: Path) -> Step:
    """Read a step.

    Raises:
        UserError: the file is missing, or none of ours.
    """
    from npuport.precision.operators.plain_file import is_cut, not_whole, read_plain

    try:
        document = read_plain(path)
        if document is None:
            import torch

            document = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except FileNotFoundError as error:
        raise UserError("{path} does not exist.", path=path) from error
    except Exception as error:
        if is_cut(path):
            raise not_whole(path) from error
        raise UserError("{path} is no recorded step: it is damaged, or holds something else.", path=path) from error
    if not isinstance(document, dict) or not isinstance(document.get("npuport"), int):
        raise UserError("{path} is no recorded step: it is damaged, or holds something else.", path=path)
    if document["npuport"] != FORMAT:
        raise UserError(
            "{path} has format {format} of recorded steps; this npuport reads format {known}. Record it again.",
            path=path,
            format=document["npuport"],
            known=FORMAT,
        )
    try:
        return Recorded(**{name: value for name, value in document.items() if name != "npuport"}).decoded()
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError("{path} is no recorded step: it is damaged, or holds something else.", path=path) from error


def _plain_call(call: Call) -> tuple[Any, ...]:
    values = (_encoded(value) for value in (call.arguments, dict(call.keywords), call.result))
    return (call.index, call.operator, call.module, call.phase, *values, call.line)


def _call(entry: tuple[Any, ...]) -> Call:
    arguments, keywords, result = (_decoded(value) for value in entry[4:7])
    return Call(entry[0], entry[1], entry[2], entry[3], arguments, keywords, result, entry[7])


def _plain_module(call: ModuleCall) -> Plain:
    values = (_encoded(value) for value in (call.arguments, dict(call.keywords), call.result))
    return (call.path, call.class_name, call.phase, *values, call.first, call.last)


def _module(entry: tuple[Any, ...]) -> ModuleCall:
    arguments, keywords, result = (_decoded(value) for value in entry[3:6])
    return ModuleCall(entry[0], entry[1], entry[2], arguments, keywords, result, entry[6], entry[7])


def _encoded(value: Any) -> Any:
    if isinstance(value, TensorRef):
        return ("tensor", value.storage, value.dtype, value.shape, value.stride, value.offset)
    if isinstance(value, tuple):
        is_tagged = bool(value) and isinstance(value[0], str) and value[0] in _TAGS
        return value if is_tagged else ("tuple", *(_encoded(one) for one in value))
    if isinstance(value, list):
        return [_encoded(one) for one in value]
    if isinstance(value, dict):
        return {key: _encoded(one) for key, one in value.items()}
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, tuple) and value and value[0] == "tensor":
        return TensorRef(value[1], value[2], tuple(value[3]), tuple(value[4]), value[5])
    if isinstance(value, tuple) and value and value[0] == "tuple":
        return tuple(_decoded(one) for one in value[1:])
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if isinstance(value, dict):
        return {key: _decoded(one) for key, one in value.items()}
    return value


_TAGS = {"dtype", "device", "layout", "memory_format", "object", "group", "reduction"}
