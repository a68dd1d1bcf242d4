"""PyTorch's optimizers, of which an NPU has forms with fewer kernels: fused=True, and those of torch_npu."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import FusedOperator, chip, fused_operator
from npuport.findings import Applicability, Claim, Edit, Finding, Fix, Input, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import with_fix

_CLASSES = ("SGD", "Adam", "AdamW", "Adadelta", "RMSprop")
_NAMES = {f"torch.optim.{home}{name}": name for name in _CLASSES for home in ("", f"{name.lower()}.")}
# What torch_npu's classes take as well (their signatures in torch_npu 2.13.0).
_ARGUMENTS = {
    "params", "lr", "betas", "eps", "weight_decay", "amsgrad", "momentum", "dampening", "nesterov", "rho", "alpha",
    "centered",
}  # fmt: skip

# Libraries that put parameters and gradients elsewhere while they train.
_MOVES_MEMORY = ("deepspeed", "FullyShardedDataParallel", "fully_shard", "ZeroRedundancyOptimizer")
# Words of projects whose gradients are scaled, be it by a library's scaler.
_SCALES = ("GradScaler", "fp16", "16-mixed", "precision=16", "Accelerator(", "lightning")


class OptimizerInSteps(Rule):
    """An optimizer of torch is made that has a fused form on an NPU."""

    code = "NP647"
    name = "optimizer-in-steps"
    severity = Severity.INFO
    edits = False
    fuses = True
    markers = tuple((f"{name}(", rf"\b{name}\(") for name in _CLASSES)
    needs = (("cuda", "npu"),)  # a script that speaks of no device is left in peace
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = _NAMES.get(context.name_of(node.func) or "")
        if name is None or _fused(node, context) is not False or _moves_memory(context):
            return
        if name == "AdamW" and _has_kernel(name, context) and context.settings.torch_at_least("2.7"):  # as documented
            yield from self._for_fused(node, context)
        else:
            yield from self._for_torch_npu(node, name, context)

    def _for_fused(self, node: ast.Call, context: Context) -> Iterator[Finding]:
        fact = fused_operator("torch.optim.AdamW")
        if fact is not None:
            found = context.finding(
                self,
                node.func,
                f"{fact.call} updates each parameter with one kernel; {fact.limits}",
                basis=fact.basis,
                operator=fact.call,
            )
            yield with_fix(found, context, lambda: _adamw_fix(node, context))

    def _for_torch_npu(self, node: ast.Call, name: str, context: Context) -> Iterator[Finding]:
        fact = fused_operator(f"NpuFused{name}")
        if fact is None:
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


class FusedOptimizerOnNpu(Rule):
    """fused=True where the fused form does not do on an NPU what it does on CUDA."""

    code = "NP657"
    name = "fused-optimizer-on-npu"
    severity = Severity.WARNING
    markers = tuple((f"{name}(", rf"\b{name}\(") for name in ("SGD", "Adam", "AdamW"))
    needs = (("fused",),)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = _NAMES.get(context.name_of(node.func) or "")
        fact = fused_operator(f"torch.optim.{name}")
        asked = _fused(node, context)
        if name is None or fact is None or asked is False:
            return
        why, severity = _difference(name, fact, node, context)
        if not why:
            return
        value = _keyword(node, "fused")
        fix = context.replace_node(value, "None") if value is not None and asked else None
        yield context.finding(
            self,
            value or node.func,
            f"{fact.call}: {why}",
            fix=fix,
            basis=fact.basis,
            severity=severity if asked else Severity.WARNING,
        )


def _difference(name: str, fact: FusedOperator, node: ast.Call, context: Context) -> tuple[str, Severity]:
    """What the fused form of a class does otherwise on this port's chip, "" if nothing, and how much that matters."""
    if not _has_kernel(name, context):
        on_cpu = ", and torch_npu computes it on the CPU" if name == "Adam" else ""
        return f"it has no kernel on {context.settings.chip}{on_cpu}", Severity.WARNING
    if name == "SGD":
        return "" if _may_have_momentum(node) else fact.limits, Severity.ERROR
    if name == "AdamW" and context.project.holding("GradScaler"):
        why = f"{fact.limits}; this project has one: leave fused away where gradients are scaled"
        return why, Severity.ERROR if "GradScaler" in context.module.text else Severity.WARNING
    return "", Severity.WARNING


def _fused(node: ast.Call, context: Context) -> bool | None:
    """Whether ``fused`` is given and true; None where it may be, or may be among arguments not written here."""
    value = _keyword(node, "fused")
    if value is not None:
        known = context.constants_of(value)
        told = {bool(one) for one in known} if known else set()
        return told.pop() if len(told) == 1 else None
    hidden = any(keyword.arg is None for keyword in node.keywords)
    return None if hidden and "fused" in context.module.text else False


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), None)


def _may_have_momentum(node: ast.Call) -> bool:
    """Whether SGD is given a momentum, unless it is plainly 0."""
    value = _keyword(node, "momentum") or (node.args[2] if len(node.args) > 2 else None)
    hidden = any(keyword.arg is None for keyword in node.keywords) or any(
        isinstance(one, ast.Starred) for one in node.args
    )
    return hidden if value is None else not (isinstance(value, ast.Constant) and not value.value)


def _has_kernel(name: str, context: Context) -> bool:
    """Whether this port's chip computes fused=True of a class; of a chip that is not known that is assumed."""
    fact, target = fused_operator(f"torch.optim.{name}"), chip(context.settings.chip)
    return fact is not None and (target is None or target.family in fact.families)


def _moves_memory(context: Context) -> bool:
    return any(word in context.module.text for word in _MOVES_MEMORY)


# -- the fix of AdamW ------------------------------------------------------------------------------------------------

_PLACES = ("params", "lr", "betas", "eps", "weight_decay", "amsgrad")
_PROVED = frozenset({*_PLACES, "maximize", "fused"})
_CASES = (
    "D=33, lr=1e-2, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2",
    "D=8, lr=1e-1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.0",
    "D=64, lr=1e-3, betas=(0.5, 0.6), eps=1e-6, weight_decay=0.5",
)
# Five steps with other gradients each, of three parameters, one of which has a gradient at first only.
_STEPS = """\
parameters = [x.detach().clone(), y.detach().clone(), x.detach().clone()]
optimizer = torch.optim.AdamW(parameters, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay{rest})
for step in range(5):
    parameters[0].grad = g * (step + 1)
    parameters[1].grad = g[:1] - step
    parameters[2].grad = g.clone() if step < 2 else None
    optimizer.step()
return tuple(parameters)"""
_INPUTS = (
    Input("x", "tensor(2, D)"), Input("y", "tensor(1, D)"), Input("g", "tensor(2, D).detach()"), Input("lr", "lr"),
    Input("betas", "betas"), Input("eps", "eps"), Input("weight_decay", "weight_decay"),
)  # fmt: skip


def _adamw_fix(node: ast.Call, context: Context) -> Fix:
    """``fused=True`` for AdamW, with the claim that its steps are the same.

    Raises:
        Unfit: an argument, or what the project does with gradients, forbids it.
    """
    given = [keyword.arg for keyword in node.keywords]
    other = next((name for name in given if name not in _PROVED), "")
    if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp) and not given:
        raise Unfit("its one argument is a generator without parentheses")
    if other != "" or any(isinstance(one, ast.Starred) for one in node.args) or len(node.args) > len(_PLACES):
        raise Unfit(f"{other or 'what stands behind a star'} is among its arguments")
    lr = _keyword(node, "lr") or (node.args[1] if len(node.args) > 1 else None)
    if isinstance(lr, ast.Call):
        raise Unfit(f"the learning rate may be a tensor ({ast.unparse(lr)}), which sends it to the CPU")
    scaling = next((word for word in _SCALES if context.project.holding(word)), None)
    if scaling is not None:
        raise Unfit(f"the project speaks of {scaling}, and a gradient scaler would not be heeded")
    rest = "".join(f", {name}={_flag(node, name)}" for name in ("amsgrad", "maximize") if _flag(node, name))
    before, after = (_STEPS.format(rest=f"{rest}{more}") for more in ("", ", fused=True"))
    old = _keyword(node, "fused")
    if old is not None:
        edit = Edit(*context.module.lines.span(old), "True")
    else:
        last = max(context.module.lines.span(one)[1] for one in (*node.args, *node.keywords))
        edit = Edit(last, last, ", fused=True")
    claim = Claim(_INPUTS, before, after, _CASES)
    return context.fix([edit], Applicability.UNSAFE, "say fused=True", claim=claim)


def _flag(node: ast.Call, name: str) -> bool:
    """Whether a flag of AdamW is set.

    Raises:
        Unfit: it is not written here.
    """
    place = _PLACES.index(name) if name in _PLACES else len(node.args)
    value = _keyword(node, name) or (node.args[place] if len(node.args) > place else None)
    if value is not None and not isinstance(value, ast.Constant):
        raise Unfit(f"{name} is known at run time only")
    return value is not None and bool(value.value)
