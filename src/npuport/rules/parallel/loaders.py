"""Which DataLoaders a script trains from: followed through variables, functions, parameters and attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from npuport.rules.parallel.script import Function, Script, class_of
from npuport.source.module import ancestors
from npuport.source.scopes import Binding, BindingKind, Scope

DATA_LOADER = {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}
_DEPTH = 8  # longer ways from a loop to its DataLoader are taken as unknown; also ends cycles
_PASS_ON = {"builtins.enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm"}


@dataclass(frozen=True)
class TrainingLoop:
    """A loop over batches that computes gradients."""

    node: ast.For
    batches: ast.expr  # what it iterates, without enumerate and tqdm
    loaders: tuple[ast.Call, ...]


def training_loops(script: Script) -> list[TrainingLoop]:
    """The loops over known DataLoaders whose body computes gradients."""
    found = []
    for loop in script.all(ast.For):
        batches = _batches(loop.iter, script)
        loaders = loader_calls(batches, script) if computes_gradients(loop, script) else None
        if loaders:
            found.append(TrainingLoop(loop, batches, tuple(loaders)))
    return found


def computes_gradients(node: ast.AST, script: Script, depth: int = 4) -> bool:
    """Whether ``.backward()`` is called inside ``node``, or in a function of the file that is called there."""
    for call in script.calls_in(node):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            return True
        function = script.callee(call) if depth else None
        if function is not None and computes_gradients(function, script, depth - 1):
            return True
    return False


def stray_backward(loops: list[TrainingLoop], script: Script) -> ast.Call | None:
    """A call of ``.backward()`` that no loop of ``loops`` reaches."""
    reached: set[ast.Call] = set()
    for loop in loops:
        reached.update(_reached(loop.node, script, 4))
    return next(
        (
            call
            for call in script.calls
            if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and call not in reached
        ),
        None,
    )


def _reached(node: ast.AST, script: Script, depth: int) -> Iterator[ast.Call]:
    for call in script.calls_in(node):
        yield call
        function = script.callee(call) if depth else None
        if function is not None:
            yield from _reached(function, script, depth - 1)


def _batches(node: ast.expr, script: Script) -> ast.expr:
    """What a loop really iterates: ``loader`` of ``enumerate(tqdm(loader), 1)``."""
    while isinstance(node, ast.Call) and node.args and script.context.name_of(node.func) in _PASS_ON:
        node = node.args[0]
    if isinstance(node, ast.Name):  # bar = tqdm(loader)
        bound = script.context.scope(node).lookup(node.id)
        value = bound[0].value if len(bound) == 1 else None
        if isinstance(value, ast.Call) and script.context.name_of(value.func) in _PASS_ON:
            return _batches(value, script)
    return node


def loader_calls(node: ast.expr, script: Script, depth: int = _DEPTH) -> list[ast.Call] | None:
    """Every ``DataLoader(…)`` that an expression can be; None where it can be something else."""
    if depth <= 0:
        return None
    if isinstance(node, ast.Call):
        if script.name_of_call(node) in DATA_LOADER:
            return [node]
        function = script.callee(node)
        returned = _returned(function) if function is not None else None
        return loader_calls(returned, script, depth - 1) if returned is not None else None
    if isinstance(node, ast.Name):
        return _union(_of_binding(found, node.id, script, depth) for found in _bindings(node, script))
    around = class_of(node)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" and around:
        assigned = Scope.inside(around, script.context.scope(around)).assigned_on_self.get(node.attr, [])
        return _union(loader_calls(value, script, depth - 1) if value is not None else None for value, _ in assigned)
    return None


def _bindings(node: ast.Name, script: Script) -> list[Binding]:
    return script.context.scope(node).lookup(node.id)


def _union(parts: Iterator[list[ast.Call] | None]) -> list[ast.Call] | None:
    together: list[ast.Call] = []
    for part in parts:
        if part is None:
            return None
        together += [call for call in part if call not in together]
    return together or None


def _of_binding(binding: Binding, name: str, script: Script, depth: int) -> list[ast.Call] | None:
    if binding.kind is BindingKind.VALUE and binding.value is not None:
        return loader_calls(binding.value, script, depth - 1)
    if binding.kind is BindingKind.PARAMETER and isinstance(binding.scope.node, Function):
        return _of_parameter(binding.scope.node, name, script, depth)
    if isinstance(binding.node, ast.Assign) and len(binding.node.targets) == 1:
        return _of_unpacking(binding.node.targets[0], binding.node.value, name, script, depth)
    return None


def _of_parameter(function: Function, name: str, script: Script, depth: int) -> list[ast.Call] | None:
    given = [script.argument(call, function, name) for call in script.call_sites(function)]
    return _union(loader_calls(node, script, depth - 1) if node is not None else None for node in given)


def _of_unpacking(target: ast.expr, value: ast.expr, name: str, script: Script, depth: int) -> list[ast.Call] | None:
    """``train_loader, test_loader = make_loaders()``."""
    function = script.callee(value) if isinstance(value, ast.Call) else None
    returned = _returned(function) if function is not None else None
    if not isinstance(target, ast.Tuple) or not isinstance(returned, ast.Tuple):
        return None
    if len(target.elts) != len(returned.elts):
        return None
    places = [i for i, part in enumerate(target.elts) if isinstance(part, ast.Name) and part.id == name]
    return loader_calls(returned.elts[places[0]], script, depth - 1) if len(places) == 1 else None


def _returned(function: Function) -> ast.expr | None:
    """What a function with a single ``return`` gives back."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and next(a for a in ancestors(node) if isinstance(a, Function)) is function
    ]
    return found[0].value if len(found) == 1 else None
