"""The model itself: moved to the device of the process first, then wrapped in DistributedDataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Edit
from npuport.rules.parallel.script import Script, block_of, class_of, function_of, statement_of
from npuport.rules.parallel.steps import Step
from npuport.source.module import ancestors, parent
from npuport.source.scopes import BindingKind

_MOVES = {"cuda", "npu", "to"}


def wrap_step(call: ast.Call, device_ids: str, dist: str, script: Script) -> Step:
    """DistributedDataParallel in the place of one ``DataParallel(…)``, and of the condition it depends on."""
    line = f"line {call.lineno}"
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "module"), None)
    outer, suffix = _moved_after(call, script)
    model = script.text(given) if given is not None else "model"
    words = f"{line}: DistributedDataParallel({model}, device_ids={device_ids}), the model being on its device before"
    if given is None or isinstance(given, ast.Starred):
        return Step(words, unclear=f"{line} does not say which model it wraps")
    if len(call.args) > 3 or any(keyword.arg in ("dim", None) for keyword in call.keywords):
        return Step(words, unclear=f"{line} splits the batch along another dimension than the first")
    unclear = _not_the_whole_model(call, outer, script)
    if unclear:
        return Step(words.replace(model, "the whole model", 1), unclear=unclear)
    if not suffix and not _is_move(given, script):
        suffix = _later_move(call, script) or ""
        if not suffix and not _moved_before(call, given, script):
            return Step(words, unclear=f"{line} wraps a model, and nothing beside it moves that to a device")
    conditions = _condition_edits(outer, dist, script)
    if conditions is None:
        return Step(words, unclear=f"{line} wraps the model in one branch of several")
    new = f"DistributedDataParallel({model}{suffix}, device_ids={device_ids})"
    return Step(words, (Edit(*script.module.lines.span(outer), new), *conditions))


def _moved_after(call: ast.Call, script: Script) -> tuple[ast.expr, str]:
    """``DataParallel(model).cuda()``: the whole expression, and ``.cuda()``."""
    outer: ast.expr = call
    while True:
        attribute = parent(outer)
        around = parent(attribute) if attribute is not None else None
        if not isinstance(attribute, ast.Attribute) or attribute.attr not in _MOVES:
            break
        if not isinstance(around, ast.Call) or around.func is not attribute:
            break
        outer = around
    end = script.module.lines.span(call)[1]
    return outer, script.module.text[end : script.module.lines.span(outer)[1]].strip()


def _not_the_whole_model(call: ast.Call, outer: ast.expr, script: Script) -> str:
    """Why a wrapped thing may be a part of a model only, whose other parts would go their own ways; "" if it is not."""
    statement, line = parent(outer), f"line {call.lineno}"
    if isinstance(statement, ast.IfExp):
        statement = parent(statement)
    if isinstance(statement, ast.Return):
        return ""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if target is None or isinstance(target, ast.Tuple | ast.List):
        return f"{line} hands the wrapped model on at once"
    if isinstance(target, ast.Attribute):
        around = class_of(call)
        own = isinstance(target.value, ast.Name) and target.value.id == "self" and around is not None
        if not own:
            return f"{line} wraps a part of a model: what stays outside would not be kept equal between processes"
        bases = {script.context.name_of(base) or "" for base in (around.bases if around is not None else ())}
        if any(base.startswith("torch.nn") for base in bases):
            return f"{line} wraps a part of a module: what stays outside would not be kept equal between processes"
    elif not isinstance(target, ast.Name):
        return f"{line} keeps the wrapped model in a container"
    return ""


def _is_move(node: ast.expr, script: Script) -> bool:
    """``….cuda()``, ``….to(device)``, as it stands."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _MOVES:
        return False
    return node.func.attr != "to" or _names_device(node, script)


def _names_device(call: ast.Call, script: Script) -> bool:
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
    return any(not (script.context.name_of(one) or "").startswith("torch.float") for one in given)


def _moved_before(call: ast.Call, given: ast.expr, script: Script) -> bool:
    """Whether an earlier statement of the function moves the model: ``model.cuda()``, ``model = Net().to(device)``."""
    return any(script.before(move, call) for move in _moves_of(given, call, script))


def _moves_of(given: ast.expr, call: ast.Call, script: Script) -> Iterator[ast.Call]:
    text, function = script.text(given), function_of(call)
    for move in script.calls:
        if not _is_move(move, script) or function_of(move) is not function:
            continue
        assert isinstance(move.func, ast.Attribute)
        statement = statement_of(move)
        assigned = isinstance(statement, ast.Assign) and any(script.text(t) == text for t in statement.targets)
        if script.text(move.func.value) == text or (assigned and _outermost(move) is getattr(statement, "value", None)):
            yield move


def _outermost(move: ast.Call) -> ast.expr:
    """``Net().to(device).train()`` for ``Net().to(device)``."""
    outer: ast.expr = move
    while isinstance(parent(outer), ast.Attribute) and isinstance(parent(parent(outer) or outer), ast.Call):
        around = parent(parent(outer) or outer)
        assert isinstance(around, ast.Call)
        if around.func is not parent(outer):
            break
        outer = around
    return outer


def _later_move(call: ast.Call, script: Script) -> str | None:
    """``.to(device)`` of the statement ``model.to(device)`` that follows, where ``device`` is known before."""
    statement = statement_of(call)
    if not isinstance(statement, ast.Assign):
        return None
    target = script.text(statement.targets[0])
    blocks, place = [block_of(statement, script)], parent(statement)
    while isinstance(place, ast.If):
        blocks.append(block_of(place, script))
        place = parent(place)
    for later in (one for block in blocks for one in block if script.before(call, one)):
        value = later.value if isinstance(later, ast.Expr | ast.Assign) else None
        if not isinstance(value, ast.Call) or not _is_move(value, script):
            continue
        assert isinstance(value.func, ast.Attribute)
        if script.text(value.func.value) == target and all(_known_before(name, call, script) for name in _names(value)):
            return script.module.text[
                slice(script.module.lines.span(value.func.value)[1], script.module.lines.span(value)[1])
            ]
    return None


def _names(call: ast.Call) -> list[ast.Name]:
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [node for argument in arguments for node in ast.walk(argument) if isinstance(node, ast.Name)]


def _known_before(name: ast.Name, call: ast.Call, script: Script) -> bool:
    bound = script.context.scope(name).lookup(name.id)
    scope = script.context.scope(call)
    return bool(bound) and all(
        binding.scope is not scope or binding.kind is BindingKind.PARAMETER or script.before(binding.node, call)
        for binding in bound
    )


# -- conditions ------------------------------------------------------------------------------------------------------


def _condition_edits(outer: ast.expr, dist: str, script: Script) -> list[Edit] | None:
    """Conditions around the wrapping, such that it always happens where there is more than one process."""
    edits: list[Edit] = []
    inner: ast.AST = outer
    for around in ancestors(outer):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) or _is_main_guard(around):
            break
        if isinstance(around, ast.If | ast.IfExp):
            body = around.body if isinstance(around.body, list) else [around.body]
            if inner not in body or (isinstance(around, ast.If) and _is_elif(around)):
                return None
            edits += _for_processes(around.test, dist, script)
        elif isinstance(around, ast.For | ast.While | ast.Try | ast.Match | ast.Lambda | ast.BoolOp):
            return None
        inner = around
    return edits


def _is_elif(node: ast.If) -> bool:
    around = parent(node)
    return isinstance(around, ast.If) and around.orelse == [node]


def _for_processes(test: ast.expr, dist: str, script: Script) -> list[Edit]:
    """``device_count() > 1`` becomes ``get_world_size() > 1``; any other condition holds for several processes too."""
    many, (start, end) = f"{dist}.get_world_size() > 1", script.module.lines.span(test)
    if any(_counts_devices(node, script) for node in ast.walk(test) if isinstance(node, ast.expr)):
        return [Edit(start, end, many)]
    if _asks_for_device(test, script) and not script.context.agnostic:
        return []  # each process has taken its device before
    if isinstance(test, ast.Name | ast.Attribute | ast.Call):
        return [Edit(end, end, f" or {many}")]
    return [Edit(start, start, "("), Edit(end, end, f") or {many}")]


def _asks_for_device(test: ast.expr, script: Script) -> bool:
    """``torch.cuda.is_available()``, as it stands or in a variable, or ``device == "cuda"``."""
    if isinstance(test, ast.Name):
        bound = script.context.scope(test).lookup(test.id)
        value = bound[0].value if len(bound) == 1 else None
        return isinstance(value, ast.Call) and _asks_for_device(value, script)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        sides = [test.left, *test.comparators]
        return any(isinstance(side, ast.Constant) and side.value in ("cuda", "npu") for side in sides)
    return isinstance(test, ast.Call) and script.name_of_call(test).endswith(".is_available")


def _counts_devices(node: ast.expr, script: Script, depth: int = 3) -> bool:
    """``torch.cuda.device_count()``, as it stands, through a variable, or ``len(gpu_ids)``."""
    if isinstance(node, ast.Call):
        name = script.name_of_call(node)
        if name == "builtins.len" and node.args:
            return any(word in script.text(node.args[0]).lower() for word in ("gpu", "npu", "device"))
        return name.endswith(".device_count")
    if isinstance(node, ast.Name) and depth:
        bound = script.context.scope(node).lookup(node.id)
        value = bound[0].value if len(bound) == 1 else None
        return value is not None and _counts_devices(value, script, depth - 1)
    return False


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and is_main_test(node.test)


def is_main_test(test: ast.expr) -> bool:
    """``__name__ == "__main__"``."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = [test.left, *test.comparators]
    names = {side.id for side in sides if isinstance(side, ast.Name)}
    texts = {side.value for side in sides if isinstance(side, ast.Constant)}
    return "__name__" in names and "__main__" in texts
