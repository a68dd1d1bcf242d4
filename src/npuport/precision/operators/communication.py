"""What a collective operator is given, what it writes, over which ranks, and how it reduces.

torch.distributed has two families: ``c10d`` (what ``dist.all_reduce`` calls; it tells torch of no write, and may return
before the result is there) and ``_c10d_functional`` (DTensor and compiled code; the result is a new tensor that is
there after ``wait_tensor``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NAMESPACES = ("c10d", "_c10d_functional")
# These hand a result on as it is.
_NO_WORK = ("_c10d_functional.wait_tensor.default", "_c10d_functional._wrap_tensor_autograd.default")
# c10d's operators by the position of the argument that they write; reduce_ and gather_ write on one rank only.
WRITTEN = {
    "allreduce_": 0,
    "allreduce_coalesced_": 0,
    "reduce_": 0,
    "broadcast_": 0,
    "allgather_": 0,
    "allgather_coalesced_": 0,
    "_allgather_base_": 0,
    "allgather_into_tensor_coalesced_": 0,
    "gather_": 0,
    "scatter_": 0,
    "reduce_scatter_": 0,
    "_reduce_scatter_base_": 0,
    "reduce_scatter_tensor_coalesced_": 0,
    "alltoall_": 0,
    "alltoall_base_": 0,
    "recv_": 0,
    "recv_any_source_": 0,
}
# torch/csrc/distributed/c10d/Types.hpp, RedOpType, in order.
_REDUCTIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum")


def is_collective(operator: str) -> bool:
    return operator.partition(".")[0] in NAMESPACES


def only_waits(operator: str) -> bool:
    return operator in _NO_WORK


def written_by(operator: str, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    """The tensors that an operator of c10d writes in place."""
    namespace, name = operator.split(".")[:2]
    if namespace != "c10d" or name not in WRITTEN or len(arguments) <= WRITTEN[name]:
        return []
    return list(_tensors(arguments[WRITTEN[name]]))


def described(value: Any) -> tuple[Any, ...]:
    """A process group or a reduction as plain values: ("group", its name, its ranks), ("reduction", "sum")."""
    from torch.distributed import ProcessGroup, get_process_group_ranks

    kind = value._type().name()
    if kind == "ProcessGroup":
        group = ProcessGroup.unbox(value)
        return ("group", group.group_name, tuple(get_process_group_ranks(group)))
    if kind == "ReduceOp":
        number = int(value.op())
        return ("reduction", _REDUCTIONS[number] if number < len(_REDUCTIONS) else str(number))
    return ("object", kind)


def with_group(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The recorded arguments of a collective, with the group itself where a functional one names it."""
    from torch.distributed import get_process_group_ranks
    from torch.distributed.distributed_c10d import _resolve_process_group

    names = [argument.name for argument in function._schema.arguments]
    return tuple(
        ("group", value, tuple(get_process_group_ranks(_resolve_process_group(value))))
        if names[position] == "group_name" and isinstance(value, str)
        else value
        for position, value in enumerate(arguments)
    )


def results_of(operator: str, arguments: tuple[Any, ...], result: Any) -> list[torch.Tensor]:
    """The tensors that a collective makes or writes, without the handle of its work."""
    return written_by(operator, arguments) if operator.startswith("c10d.") else list(_tensors(result))


def dispatches_by_itself(kind: type) -> bool:
    """Whether a class of tensors stands for others, and its operators call those of the others: DTensor, results to be
    waited for. By name, for importing them takes seconds."""
    return kind.__module__.startswith("torch.distributed") and kind.__name__ in ("DTensor", "AsyncCollectiveTensor")


def is_pretended(kind: type) -> bool:
    """Whether a class of tensors has no values: DTensor finds the shapes of results with such."""
    return kind.__name__ == "FakeTensor"


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
