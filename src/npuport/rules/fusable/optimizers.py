"""PyTorch's optimizers of which torch_npu has a form that updates all parameters at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import fused_operator
from npuport.findings import Finding, Severity
from npuport.rules.base import Context, Rule

_CLASSES = ("SGD", "Adam", "AdamW", "Adadelta", "RMSprop")
_NAMES = {f"torch.optim.{home}{name}": name for name in _CLASSES for home in ("", f"{name.lower()}.")}
# What torch_npu's classes take as well (their signatures in torch_npu 2.13.0).
_ARGUMENTS = {
    "params", "lr", "betas", "eps", "weight_decay", "amsgrad", "momentum", "dampening", "nesterov", "rho", "alpha",
    "centered",
}  # fmt: skip

# Libraries that put parameters and gradients elsewhere while they train.
_MOVES_MEMORY = ("deepspeed", "FullyShardedDataParallel", "fully_shard", "ZeroRedundancyOptimizer")


class OptimizerInSteps(Rule):
    """An optimizer of torch is made that torch_npu has a fused form of."""

    code = "NP647"
    name = "optimizer-in-steps"
    severity = Severity.INFO
    edits = False
    markers = tuple((f"{name}(", rf"\b{name}\(") for name in _CLASSES)
    needs = (("cuda", "npu"),)  # a script that speaks of no device is left in peace
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = _NAMES.get(context.name_of(node.func) or "")
        fact = fused_operator(f"NpuFused{name}") if name is not None else None
        if fact is None or _may_be_fused(node, context) or any(word in context.module.text for word in _MOVES_MEMORY):
            return
        others = [keyword.arg for keyword in node.keywords if keyword.arg is not None and keyword.arg not in _ARGUMENTS]
        without = f" (without {', '.join(others)})" if others else ""
        yield context.finding(
            self,
            node.func,
            f"{fact.call}{without} updates all parameters at once, with the same numbers; {fact.limits}",
            basis=fact.basis,
            operator=fact.call,
        )


def _may_be_fused(node: ast.Call, context: Context) -> bool:
    """Whether ``fused`` is given and may be true, or may be among arguments that are not written here."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    value = given.get("fused")
    if value is not None:
        return not (isinstance(value, ast.Constant) and not value.value)
    return None in given and "fused" in context.module.text
