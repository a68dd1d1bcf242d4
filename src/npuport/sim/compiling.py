"""torch.compile on the simulated NPU: graphs are captured and differentiated as always, and run operator by operator.

TorchInductor writes kernels for an NPU with triton-ascend (torch_npu._inductor says so where it is not installed), and
torchair builds graphs for CANN's graph engine (refused in npuport.sim.loading). Neither can compile for this NPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from npuport.report.run_files import say


def install() -> None:
    """Have ``torch.compile`` run graphs of NPU tensors with the backend aot_eager in place of inductor."""
    from torch import _TorchCompileInductorWrapper as Inductor

    Inductor.__call__ = _instead_of(Inductor.__call__)


def _instead_of(compile_graph: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compile_graph)
    def call(self: Any, graph: Any, inputs: Sequence[Any], **settings: Any) -> Any:
        if not _is_on_npu(graph):
            return compile_graph(self, graph, inputs, **settings)
        from torch._dynamo.backends.debugging import aot_eager

        _say_once()
        return aot_eager(graph, inputs)

    return call


def _is_on_npu(graph: Any) -> bool:
    from torch import Tensor
    from torch.utils._pytree import tree_leaves

    values = (node.meta.get("example_value") for node in graph.graph.nodes)
    return any(
        isinstance(leaf, Tensor) and leaf.device.type == "npu" for value in values for leaf in tree_leaves(value)
    )


@functools.cache
def _say_once() -> None:
    say(
        "torch.compile: inductor has no kernels for the simulated NPU, so captured graphs run operator by operator; "
        "a real NPU needs triton-ascend for them"
    )
