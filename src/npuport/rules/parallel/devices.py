"""Places that name the first device by its number: there the process must take its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Edit
from npuport.rules.parallel.script import Script
from npuport.rules.parallel.steps import Step

_NUMBERED = re.compile(r"(?:cuda|npu):(\d*)")
_SET_DEVICE = (".cuda.set_device", ".npu.set_device", ".set_device_index")


def device_steps(script: Script) -> Iterator[Step]:
    """One step for each place; a device without a number is the one that the process has taken."""
    for node in script.nodes:
        if isinstance(node, ast.Constant):
            yield from _in_string(node, script)
        elif isinstance(node, ast.JoinedStr):
            yield from _in_joined(node, script)
        elif isinstance(node, ast.Call):
            yield from _in_call(node, script)


def _in_string(node: ast.Constant, script: Script) -> Iterator[Step]:
    found = _NUMBERED.fullmatch(node.value) if isinstance(node.value, str) else None
    if found is None:
        return
    text, start = script.text(node), script.module.lines.span(node)[0]
    words = f"line {node.lineno}: {text} without the number"
    if found[1] == "0" and text.count(":0") == 1:
        place = start + text.index(":0")
        yield Step(words, (Edit(place, place + 2, ""),))
    else:
        yield _unclear(words, node)


def _in_joined(node: ast.JoinedStr, script: Script) -> Iterator[Step]:
    first, text = node.values[0] if node.values else None, script.text(node)
    literal = first.value if isinstance(first, ast.Constant) else ""
    for_all = re.fullmatch(r'f"\{(\w+)\}:0"', text)  # what "cuda:0" becomes for the target "agnostic"
    if for_all:
        yield Step(
            f"line {node.lineno}: {text} without the number", (Edit(*script.module.lines.span(node), for_all[1]),)
        )
    elif literal in ("cuda:", "npu:") or re.match(r'f"\{\w+_TYPE\}:', text):
        yield _unclear(f"line {node.lineno}: {text} without the number", node)


def _in_call(node: ast.Call, script: Script) -> Iterator[Step]:
    name = script.name_of_call(node)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("cuda", "npu") and not name.startswith("torch"):
        yield from _in_move(node, script)
    elif name.endswith(_SET_DEVICE):
        yield _unclear(f"line {node.lineno}: leave this to the statements at the entry point", node)
    elif name == "torch.device" and len(node.args) == 2:
        yield _unclear(f"line {node.lineno}: torch.device without the number", node)


def _in_move(node: ast.Call, script: Script) -> Iterator[Step]:
    """``x.cuda(0)`` becomes ``x.cuda()``; a variable may hold a number, or None, or a device."""
    given = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "device"), None)
    if given is None or _is_device(given, script):
        return
    words = f"line {node.lineno}: {script.text(node.func)}() without the number"
    if isinstance(given, ast.Constant) and given.value == 0 and len(node.args) == 1 and not node.keywords:
        yield Step(words, (Edit(*script.module.lines.span(given), ""),))
    elif not (isinstance(given, ast.Constant) and given.value is None):
        yield _unclear(words, node)


def _is_device(node: ast.expr, script: Script) -> bool:
    """Whether a value is ``torch.device(…)`` or a string, as it stands or through variables."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Call):
        return script.name_of_call(node) == "torch.device"
    if isinstance(node, ast.IfExp):
        return _is_device(node.body, script) and _is_device(node.orelse, script)
    if isinstance(node, ast.Name):
        bound = script.context.scope(node).lookup(node.id)
        values = [binding.value for binding in bound]
        return bool(values) and all(
            value is not None and value is not node and _is_device(value, script) for value in values
        )
    return False


def _unclear(words: str, node: ast.Constant | ast.JoinedStr | ast.Call) -> Step:
    return Step(words, unclear=f"line {node.lineno} chooses a device by number")
