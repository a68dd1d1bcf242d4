"""The communication backend for the target "agnostic": the one that belongs to the device type."""

from __future__ import annotations

import ast

from npuport.findings import Edit
from npuport.rules.agnostic.device_type import device_type
from npuport.rules.agnostic.devices import beside_choices, comparison, is_choice
from npuport.rules.base import Context
from npuport.rules.usage import Use
from npuport.source.module import parent


def backend_edits(node: ast.Constant, use: Use, context: Context) -> list[Edit] | None:
    """The edits that make the literal ``"nccl"`` hold on every device."""
    if use in (Use.COMPARED, Use.COMPARED_UNKNOWN):
        return comparison(node, context)
    if node.value not in ("nccl", "NCCL"):
        # "cpu:gloo,cuda:nccl": without a name PyTorch makes just these groups, for the devices there are.
        return (
            [Edit(*context.module.lines.span(node), "None")]
            if isinstance(parent(node), ast.Call | ast.keyword)
            else None
        )
    if is_choice(node):
        return beside_choices(node, context)
    named = device_type(node, context)
    if named is None:
        return None
    if context.settings.torch_at_least("2.7"):
        text = f"{_distributed(context)}.get_default_backend_for_device({named.name})"
    else:
        text = f'{{"cuda": "nccl", "npu": "hccl"}}.get({named.name}, "gloo")'
    return [*named.edits, Edit(*context.module.lines.span(node), text)]


def _distributed(context: Context) -> str:
    """What the module calls torch.distributed."""
    for name, bindings in context.module.scope.bindings.items():
        if len(bindings) == 1 and bindings[0].target == "torch.distributed":
            return name if name != "torch" else "torch.distributed"
    return "torch.distributed"
