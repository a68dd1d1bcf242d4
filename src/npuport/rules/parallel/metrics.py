"""Figures that a training loop adds up: of all processes together, where the form is known."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum

from npuport.findings import Edit
from npuport.rules.agnostic.device_type import device_type
from npuport.rules.parallel.loaders import TrainingLoop
from npuport.rules.parallel.script import Script, block_of, function_of
from npuport.rules.parallel.steps import Step
from npuport.source.scopes import Scope

_SIZES = (".size(0)", ".shape[0]", "len(", ".numel()")
_WHOLE = (*_SIZES, "==", ".eq(")


class Kind(Enum):
    """How a figure is made of those of the processes."""

    COUNT = "sum, an integer"
    SUM = "sum"
    MEAN = "mean"  # a sum over batches, of which each process has as many as there were


@dataclass(frozen=True)
class Figures:
    """What a loop adds up: by kind, and the names whose making is not understood."""

    kinds: dict[str, Kind]
    own: tuple[str, ...]


def figures_of(loop: TrainingLoop, script: Script) -> Figures:
    """The variables that a loop only adds to, which start at zero right before it."""
    block = block_of(loop.node, script)
    before = block[: block.index(loop.node)] if loop.node in block else []
    started = {name for statement in before for name in _zeroed(statement)}
    added: dict[str, list[ast.AugAssign]] = {}
    for node in ast.walk(loop.node):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            added.setdefault(node.target.id, []).append(node)
    reset = {
        target.id
        for node in ast.walk(loop.node)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    kinds: dict[str, Kind] = {}
    own: list[str] = []
    for name, additions in added.items():
        found = {_kind(script.text(addition.value)) for addition in additions}
        kind = found.pop() if len(found) == 1 else None
        if kind is None and all(isinstance(addition.value, ast.Constant) for addition in additions):
            continue  # a counter of steps
        if kind is not None and name in started and name not in reset:
            kinds[name] = kind
        else:
            own.append(name)
    return Figures(kinds, tuple(own))


def _zeroed(statement: ast.stmt) -> list[str]:
    """``total = 0``, ``loss_sum, correct = 0.0, 0``, ``a = b = 0``."""
    if not isinstance(statement, ast.Assign):
        return []
    names = []
    for target in statement.targets:
        pairs = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = list(zip(target.elts, statement.value.elts, strict=False))
        names += [one.id for one, value in pairs if isinstance(one, ast.Name) and _is_zero(value)]
    return names


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 0


def _kind(text: str) -> Kind | None:
    """What an addition adds, by its words: the loss of a batch, a number of samples, or a loss times such a number."""
    sized = any(word in text for word in _SIZES)
    scalar = text.endswith(".item()") or text.startswith(("float(", "int(", "len(")) or ".item() *" in text
    if "/" in text:
        return None
    if "loss" in text.lower():
        if not scalar:
            return None  # a tensor that stays on the device
        return Kind.SUM if sized and "*" in text else Kind.MEAN
    if not (scalar or text.endswith(_SIZES)):
        return None
    if any(word in text for word in _WHOLE) and "*" not in text:
        return Kind.COUNT
    return Kind.SUM if ".sum()" in text else None


def metrics_step(loop: TrainingLoop, dist: str, script: Script) -> Step | None:
    """The figures of all processes after a training loop; None where it adds nothing up in a known form."""
    figures, meters = figures_of(loop, script), _meters(loop, script)
    # Of a quotient both parts or neither: one sum over all processes divided by one of a single process is wrong.
    kinds = figures.kinds if not figures.own and _read_after(loop, set(figures.kinds), script) else {}
    device, more = _device(loop, script)
    if not (kinds or meters) or device is None:
        return None
    name = script.free_name("figures", "over_processes")
    lines = []
    if kinds:
        names = ", ".join(kinds)
        lines += [
            f"{name} = torch.tensor([{names}], dtype=torch.float32, device={device})",
            f"{dist}.all_reduce({name})",
            f"{names} = {name}.tolist()" if len(kinds) > 1 else f"{names} = {name}.item()",
            *(f"{one} /= {dist}.get_world_size()" for one, kind in kinds.items() if kind is Kind.MEAN),
            *(f"{one} = int({one})" for one, kind in kinds.items() if kind is Kind.COUNT),
        ]
    if meters:
        meter = script.free_name("meter", "one_meter")
        lines += [
            f"for {meter} in [{', '.join(meters)}]:",
            f"    {name} = torch.tensor([float({meter}.sum), {meter}.count], dtype=torch.float32, device={device})",
            f"    {dist}.all_reduce({name})",
            f"    {meter}.sum, {meter}.count = {name}.tolist()",
            f"    {meter}.avg = {meter}.sum / {meter}.count",
        ]
    edit = script.insert_after(loop.node, lines)
    every = ", ".join([*kinds, *meters])
    words = f"line {loop.node.end_lineno}: add {every} up over the processes with {dist}.all_reduce"
    return Step(words, (edit, *more)) if edit is not None else None


def _device(loop: TrainingLoop, script: Script) -> tuple[str | None, tuple[Edit, ...]]:
    if not script.context.agnostic:
        return '"npu"', ()
    named = device_type(loop.node, script.context)
    return (named.name, named.edits) if named is not None else (None, ())


def _read_after(loop: TrainingLoop, names: set[str], script: Script) -> bool:
    """Whether any of the names is read in the function after the loop."""
    function, end = function_of(loop.node), script.module.lines.span(loop.node)[1]
    return any(
        node.id in names and function_of(node) is function and script.module.lines.span(node)[0] > end
        for node in script.all(ast.Name)
        if isinstance(node.ctx, ast.Load)
    )


# -- meters ----------------------------------------------------------------------------------------------------------


def _meters(loop: TrainingLoop, script: Script) -> list[str]:
    """Objects of a class like AverageMeter, made before a loop, updated in it and read after it."""
    block = block_of(loop.node, script)
    if loop.node not in block:
        return []
    place = block.index(loop.node)
    made = [
        statement.targets[0].id
        for statement in block[:place]
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Call)
        and _is_meter(statement.value, script)
    ]
    updated = {
        call.func.value.id
        for call in ast.walk(loop.node)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "update"
        and isinstance(call.func.value, ast.Name)
    }
    read = {node.id for statement in block[place + 1 :] for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return [name for name in made if name in updated and name in read]


def _is_meter(call: ast.Call, script: Script) -> bool:
    """Whether a class of the project keeps ``sum``, ``count`` and ``avg`` as plain attributes."""
    found = script.context.definition_of(call.func)
    if found is None or not isinstance(found.node, ast.ClassDef):
        return False
    return {"sum", "count", "avg"} <= Scope.inside(found.node, found.scope).assigned_on_self.keys()
