"""Apex's DistributedDataParallel and Reducer."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

_NUMBERS_IN_A_MEGABYTE = 1024**2 // 4
_SYNC_BUFFERS = next(  # its name before torch 2.13 and since
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(nn.parallel.DistributedDataParallel).parameters
)


class DistributedDataParallel(nn.parallel.DistributedDataParallel):
    """torch's, with Apex's options for how gradients are averaged; parameters may go unused, as there.

    What Apex says about streams, buffers and when communication starts is torch's business here and has no effect.

    Raises:
        ValueError: for ``shared_param``, as Apex.
    """

    def __init__(
        self,
        module: nn.Module,
        message_size: int = 10_000_000,
        delay_allreduce: bool = False,  # noqa: ARG002 - Apex's signature
        shared_param: bool | None = None,
        allreduce_trigger_params: Any = None,  # noqa: ARG002
        retain_allreduce_buffers: bool = False,  # noqa: ARG002
        allreduce_always_fp32: bool = False,
        num_allreduce_streams: int = 1,  # noqa: ARG002
        allreduce_communicators: Any = None,  # noqa: ARG002
        gradient_average: bool = True,
        gradient_predivide_factor: float = 1.0,
        gradient_average_split_factor: float | None = None,  # noqa: ARG002
        prof: bool = False,  # noqa: ARG002
    ) -> None:
        if shared_param is not None:
            raise ValueError("shared_param is no longer supported as an option, and parameters may be shared anyway")
        super().__init__(
            module,
            bucket_cap_mb=max(1, message_size // _NUMBERS_IN_A_MEGABYTE),
            find_unused_parameters=True,
            **{_SYNC_BUFFERS: False},  # Apex never does, so that one process may evaluate alone
        )
        self.allreduce_always_fp32 = allreduce_always_fp32
        self.gradient_average = gradient_average
        self.gradient_predivide_factor = gradient_predivide_factor
        if allreduce_always_fp32 or not gradient_average or gradient_predivide_factor != 1.0:
            self.register_comm_hook(None, lambda _state, bucket: self._average(bucket))

    def _average(self, bucket: Any) -> torch.futures.Future[Tensor]:
        gradients = bucket.buffer()
        numbers = gradients.float() if self.allreduce_always_fp32 else gradients
        numbers = numbers / self.gradient_predivide_factor
        after = self.gradient_predivide_factor / dist.get_world_size() if self.gradient_average else 1.0
        work = dist.all_reduce(numbers, async_op=True)
        return work.get_future().then(lambda done: (done.value()[0] * after).to(gradients.dtype))

    def enable_allreduce(self) -> None:
        """Average the gradients of the following backward passes."""
        self.require_backward_grad_sync = True

    def disable_allreduce(self) -> None:
        """Leave the gradients of the following backward passes where they are."""
        self.require_backward_grad_sync = False


class Reducer:
    """Averages a module's gradients, or given tensors, over all processes when ``reduce()`` is called."""

    def __init__(self, module_or_grads_list: Any) -> None:
        self.module = module_or_grads_list if isinstance(module_or_grads_list, nn.Module) else None
        self.grads = [] if self.module is not None else list(_tensors(module_or_grads_list))
        if self.module is not None:
            with torch.no_grad():
                for parameter in self.module.parameters():
                    dist.broadcast(parameter, 0)

    def reduce(self) -> None:
        """Average."""
        if self.module is None:
            _average_together(self.grads)
        else:
            _average_together([each.grad for each in self.module.parameters() if each.grad is not None])


def _tensors(nested: Any) -> Iterator[Tensor]:
    if isinstance(nested, Tensor):
        yield nested
    elif isinstance(nested, Iterable) and not isinstance(nested, str):
        for item in nested:
            yield from _tensors(item)


@torch.no_grad()
def _average_together(tensors: list[Tensor]) -> None:
    kinds: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    for some in kinds.values():
        flat = _flatten_dense_tensors(some)
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for tensor, mean in zip(some, _unflatten_dense_tensors(flat, some), strict=True):
            tensor.copy_(mean)
