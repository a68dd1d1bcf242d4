"""Wall clocks around work of the device, which returns before the work is done."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.numerics import torch_spelling
from npuport.source.module import ancestors, parent

_CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "timeit.default_timer", "time.process_time"}
# Calls that neither wait for the device nor hide what they do.
_LAUNCHING = {
    "backward", "step", "zero_grad", "scale", "update", "unscale_", "to", "cuda", "npu", "float", "half", "detach",
    "clone", "view", "reshape", "sum", "mean", "size", "dim", "train", "eval", "parameters", "append",
}  # fmt: skip
_PLAIN = {"builtins.range", "builtins.enumerate", "builtins.len", "builtins.zip", "tqdm.tqdm", "tqdm.auto.tqdm"}


class TimeWithoutSynchronize(Rule):
    """The time of device work is taken without waiting for it."""

    code = "NP616"
    name = "time-without-synchronize"
    severity = Severity.WARNING
    agnostic = True
    markers = (r"\btime\(\)", r"\bperf_counter\(", r"\bmonotonic\(", r"\bdefault_timer\(", r"\bprocess_time\(")
    needs = (("cuda", "npu", ".to(", "accelerator"), ("torch",))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        started = _subtracted(node, context) if context.name_of(node.func) in _CLOCKS else None
        closing = _statement(node)
        opening = _reading(started, node, context) if started is not None else None
        if closing is None or opening is None:
            return
        region = _between(opening, closing, context)
        if not region or not _launches_only(region, context):
            return
        yield context.finding(
            self,
            node,
            "operators are queued and this clock stops before the device has computed them: synchronize before both"
            " readings",
            fix=_synchronized(opening, closing, context),
            basis=Basis("torch.npu.synchronize waits for all streams of a device", "documented", "torch_npu 2.13.0"),
        )


def _subtracted(clock: ast.Call, context: Context) -> ast.Name | None:
    """``start`` in ``clock() - start``, or in ``end - start`` where ``end`` is this reading alone."""
    around = parent(clock)
    if isinstance(around, ast.BinOp) and around.left is clock:
        return around.right if isinstance(around.op, ast.Sub) and isinstance(around.right, ast.Name) else None
    if not (isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name)):
        return None
    name, scope = around.targets[0].id, context.scope(clock)
    if [binding.value for binding in scope.bindings.get(name, [])] != [clock]:
        return None
    for use in context.module.uses(name):
        taken = parent(use)
        if not isinstance(taken, ast.BinOp) or not isinstance(taken.op, ast.Sub) or taken.left is not use:
            continue
        if isinstance(taken.right, ast.Name) and context.scope(use) is scope:
            return taken.right
    return None


def _reading(started: ast.Name, clock: ast.Call, context: Context) -> ast.stmt | None:
    """The last statement before ``clock`` that set the start; None unless all that set it are readings of a clock."""
    bound = [binding.value for binding in context.scope(clock).bindings.get(started.id, [])]
    if not bound or not all(isinstance(value, ast.Call) and context.name_of(value.func) in _CLOCKS for value in bound):
        return None
    before = [value for value in bound if value is not None and value.lineno < clock.lineno]
    return _statement(max(before, key=lambda value: value.lineno)) if before else None


def _statement(node: ast.AST) -> ast.stmt | None:
    return next((around for around in ancestors(node) if isinstance(around, ast.stmt)), None)


def _between(opening: ast.stmt, closing: ast.stmt, context: Context) -> list[ast.stmt]:
    """The statements between two of one block; [] where they are not in one, or in the other order."""
    around = parent(opening) or context.module.tree
    for body in ("body", "orelse", "finalbody"):
        block = getattr(around, body, None)
        if isinstance(block, list) and opening in block and closing in block:
            context.module.nodes(range(opening.lineno, closing.lineno))  # links them, so that their names are known
            return block[block.index(opening) + 1 : block.index(closing)]
    return []


def _launches_only(region: list[ast.stmt], context: Context) -> bool:
    """Whether the statements launch device work, and hold no call that waits for it or may do so."""
    launches = False
    for statement in region:
        for part in ast.walk(statement):
            if isinstance(part, ast.JoinedStr | ast.Await | ast.Yield | ast.FunctionDef | ast.With):
                return False
            if not isinstance(part, ast.Call):
                continue
            kind = _kind(part, context)
            if kind is None:
                return False
            launches |= kind
    return launches


def _kind(call: ast.Call, context: Context) -> bool | None:
    """True for a call that launches device work, False for one that does nothing of note, None for any other."""
    function = call.func
    if _is_moved_model(function, context):
        return True
    name = context.name_of(function)
    if name in _PLAIN:
        return False
    if name is not None and name.startswith("torch."):
        return False if "synchronize" not in name and ".cuda." not in name and ".npu." not in name else None
    if isinstance(function, ast.Attribute) and function.attr in _LAUNCHING and name is None:
        return function.attr == "backward"
    return None


_MOVES = r"\s*(?::[^=\n]+)?=[^\n]*\.(?:cuda|npu)\(\)|\.(?:cuda|npu)\(\)"


def _is_moved_model(function: ast.expr, context: Context) -> bool:
    """Whether a name that is called was moved to a device in this file: ``model = Net().cuda()``."""
    if not isinstance(function, ast.Name) or context.definition_of(function) is not None:
        return False
    if context.name_of(function) is not None:
        return False
    name = re.escape(function.id)
    moved = rf"(?m)^[ \t]*{name}(?:{_MOVES}|\s*=[^\n]*\.to\([^\n]*device|\.to\([^\n]*device)"
    return re.search(moved, context.module.text) is not None


def _synchronized(opening: ast.stmt, closing: ast.stmt, context: Context) -> Fix | None:
    torch = torch_spelling(opening, context)
    if torch is None or (context.agnostic and not context.settings.torch_at_least("2.6")):
        return None
    call = f"{torch}.{'accelerator' if context.agnostic else 'npu'}.synchronize()"
    edits = []
    for statement in (opening, closing):
        start = context.module.lines.span(statement)[0]
        indent = context.module.text[context.module.lines.starts[statement.lineno - 1] : start]
        if indent.strip() or not isinstance(statement, ast.Assign | ast.Expr | ast.AugAssign | ast.Return):
            return None
        joint = "; " if context.settings.keep_lines else f"{context.newline}{indent}"
        edits.append(Edit(start, start, call + joint))
    return context.fix(edits, Applicability.UNSAFE, "wait for the device before each reading")


RULES: tuple[type[Rule], ...] = (TimeWithoutSynchronize,)
