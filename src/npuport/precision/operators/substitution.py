"""Replaying a stretch of calls in float64, with some of its tensors replaced by those of another run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.drawing import holds_anything

if TYPE_CHECKING:
    from torch import Tensor


class Replay:
    """A stretch of calls of one step, to be replayed in float64."""

    def __init__(self, step: Step, calls: Sequence[Call], wanted: Sequence[TensorRef]) -> None:
        self._step, self._calls, self._wanted = step, calls, wanted

    def needed(self) -> dict[int, TensorRef]:
        """The storages that the stretch does not make itself, with a tensor that looks into each."""
        made = {ref.storage for call in self._calls for ref in call.outputs}
        refs = [*(ref for call in self._calls for ref in call.inputs), *self._wanted]
        return {ref.storage: ref for ref in refs if ref.storage not in made}

    def depending_on(self, storages: Iterable[int]) -> set[int]:
        """Some storages and those that the stretch makes from them."""
        found = set(storages)
        for call in self._calls:
            if any(ref.storage in found for ref in call.inputs):
                found.update(ref.storage for ref in call.outputs)
        return found

    def results(self, given: Sequence[tuple[TensorRef, Tensor]]) -> list[Tensor] | None:
        """The wanted tensors, with some tensors given and the others as recorded; None if a call cannot be replayed."""
        from npuport.precision.operators.execution import NotExecutableError, execute

        values = _Values(self._step)
        for ref, tensor in given:
            values.put(ref, tensor)
        for call in self._calls:
            try:
                truths = execute(call, values)
            except NotExecutableError:
                if holds_anything(call) or not call.outputs:
                    continue
                return None
            for ref, truth in zip(call.outputs, truths, strict=False):
                if tuple(truth.shape) != ref.shape:
                    return None
                values.put(ref, truth, values.written_in_place(call, ref))
        return [values.tensor(ref) for ref in self._wanted]


class _Values(Step):
    """A step of which some tensors are others than were recorded, in float64."""

    def __init__(self, step: Step) -> None:
        super().__init__(step.calls, step.storages)
        self._step = step
        self._flat: dict[int, Tensor] = {}

    def tensor(self, ref: TensorRef) -> Tensor:
        import torch

        flat = self._flat.get(ref.storage)
        return self._step.tensor(ref) if flat is None else torch.as_strided(flat, ref.shape, ref.stride, ref.offset)

    def put(self, ref: TensorRef, tensor: Tensor, before: Tensor | None = None) -> None:
        """Have a tensor with other values; the rest of its storage is as in ``before``, or as recorded."""
        import torch

        if ref.storage not in self._flat:
            size = self._step.storages[ref.storage].numel() // _item_size(ref.dtype)
            whole = TensorRef(ref.storage, ref.dtype, (size,), (1,), 0)
            recorded = self._step.tensor(whole) if before is None else before
            is_inexact = recorded.is_floating_point()
            self._flat[ref.storage] = recorded.double() if is_inexact else recorded.clone()
        # What is expanded along a dimension is one value there.
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in ref.stride)
        torch.as_strided(self._flat[ref.storage], ref.shape, ref.stride, ref.offset)[once].copy_(tensor[once])

    def written_in_place(self, call: Call, result: TensorRef) -> Tensor | None:
        """What the storage of a result held before, if the call wrote into one of its inputs."""
        for ref in call.inputs:
            if (ref.shape, ref.stride, ref.offset, ref.dtype) == (
                result.shape,
                result.stride,
                result.offset,
                result.dtype,
            ):
                flat = self._flat.get(ref.storage)
                if (
                    flat is not None
                    and flat.numel() * _item_size(ref.dtype) == self._step.storages[result.storage].numel()
                ):
                    return flat.clone()
        return None


def _item_size(dtype: str) -> int:
    import torch

    return int(getattr(torch, dtype).itemsize)
