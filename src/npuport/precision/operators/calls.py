"""A recorded step: every operator call with its tensors, as plain values, and the file that holds them.

The file of one step of one rank is what ``torch.save`` writes: a dictionary with the calls and each storage once. Views
of a storage are told by offset, sizes and strides, so that a weight, its transpose and its use in ten calls are stored
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    import torch

FORMAT = 1


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
    values; dtypes and devices are told by name, as ("dtype", "float32") and ("device", "npu")."""

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
        return list(references((self.arguments, dict(self.keywords))))

    @property
    def outputs(self) -> list[TensorRef]:
        return list(references(self.result))


@dataclass
class Step:
    """All calls of one step of one rank, with the storages. ``device`` is the type of the device, such as "npu"."""

    calls: list[Call]
    storages: dict[int, torch.Tensor] = field(repr=False)
    step: int = 0
    rank: int = 0
    device: str = "cpu"

    def tensor(self, ref: TensorRef) -> torch.Tensor:
        """The tensor on the CPU."""
        import torch

        whole = self.storages[ref.storage].view(getattr(torch, ref.dtype))
        return torch.as_strided(whole, ref.shape, ref.stride, ref.offset)


def references(value: Any) -> Iterator[TensorRef]:
    """Every tensor in nested values, in order."""
    if isinstance(value, TensorRef):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from references(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from references(one)


def step_file(folder: Path, step: int, rank: int) -> Path:
    return folder / f"step{step}" / f"rank{rank}.pt"


def write_step(folder: Path, step: Step) -> Path:
    """Write a step aside, then rename: a run that is killed leaves whole steps only."""
    import torch

    path = step_file(folder, step.step, step.rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    torch.save(
        {
            "npuport": FORMAT,
            "step": step.step,
            "rank": step.rank,
            "device": step.device,
            "calls": [_plain(call) for call in step.calls],
            "storages": step.storages,
        },
        aside,
    )
    aside.replace(path)
    return path


def read_step(path: Path) -> Step:
    """Read a step.

    Raises:
        UserError: the file is missing, or none of ours.
    """
    import torch

    try:
        document = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise UserError("{path} does not exist.", path=path) from error
    except Exception as error:
        raise UserError(
            "{path} is no recorded step: {reason}", path=path, reason=str(error).partition("\n")[0]
        ) from error
    if not isinstance(document, dict) or document.get("npuport") != FORMAT:
        raise UserError("{path} is no recorded step: {reason}", path=path, reason="not written by this npuport")
    return Step(
        [_call(entry) for entry in document["calls"]],
        document["storages"],
        document["step"],
        document["rank"],
        document["device"],
    )


def _plain(call: Call) -> tuple[Any, ...]:
    values = (_encoded(value) for value in (call.arguments, dict(call.keywords), call.result))
    return (call.index, call.operator, call.module, call.phase, *values, call.line)


def _call(entry: tuple[Any, ...]) -> Call:
    arguments, keywords, result = (_decoded(value) for value in entry[4:7])
    return Call(entry[0], entry[1], entry[2], entry[3], arguments, keywords, result, entry[7])


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


_TAGS = {"dtype", "device", "layout", "memory_format", "object"}
