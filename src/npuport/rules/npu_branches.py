"""Whether code already tells NPUs from other devices."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.source.module import Module, ancestors, parent
from npuport.source.text import lowered, strings_and_comments

# Sought in lower case. A pattern that begins with plain letters is many times faster than one that looks back first.
_NPU = re.compile(r"npu(?![a-z])")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_HCCL = re.compile(r"[\"']hccl[\"']")
_OF_CUDA = re.compile(r"(?i)cuda|gpu|nccl|nvidia|device")


def tells_npus_apart(text: str) -> bool:
    """Whether a name, or a text of one word such as "npu:0", speaks of NPUs. Comments and prose decide nothing."""
    lower = lowered(text)
    places = (match.start() for match in _NPU.finditer(lower))
    named = [place for place in places if lower[place - 1 : place] not in _LETTERS]
    if not named:
        return False
    spans = [(*match.span(), match.group()) for match in strings_and_comments(text, named[-1])]
    cursor = 0
    for start in named:
        while cursor < len(spans) and spans[cursor][1] <= start:
            cursor += 1
        inside = cursor < len(spans) and spans[cursor][0] <= start
        if not inside or not (spans[cursor][2].startswith("#") or re.search(r"\s", spans[cursor][2])):
            return True
    return False


def beside_npu_branch(node: ast.AST, module: Module) -> bool:
    """Whether ``node`` belongs to one of several branches, of which another is for NPUs.

    Branches are those of ``if … elif …``, of conditional expressions one in the other, and of a table by device.
    """
    inner, settled = node, set[ast.expr]()
    for around in ancestors(node):
        if isinstance(around, ast.If | ast.IfExp) and around.test not in settled:
            own = around.test if inner is around.test or _in_body(inner, around) else None
            chain = list(_tests_of_chain(around))
            settled.update(chain)
            for_npus = [place for place, test in enumerate(chain) if _is_for_npus(module.segment(test))]
            if own is None and for_npus:
                return True
            if own is not None and for_npus:
                place = chain.index(own)
                if place in for_npus:
                    return False
                if for_npus[0] < place or _OF_CUDA.search(module.segment(own)):
                    return True
                # The branch is for something else, such as a launcher, and comes first: NPUs take it as well.
        elif isinstance(around, ast.Dict):
            own_key = _key_of(inner, around)
            others = [key for key in around.keys if isinstance(key, ast.Constant) and key is not own_key]
            if any(str(key.value).startswith("npu") for key in others):
                return True
        elif isinstance(around, ast.Call):
            if inner in around.args[1:] and _is_lookup_by_device(around):
                return True
        elif isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return False
        inner = around
    return False


def _is_for_npus(test: str) -> bool:
    """Whether a condition asks for NPUs, or for the backend through which only they communicate."""
    return tells_npus_apart(test) or _HCCL.search(test) is not None


def _is_lookup_by_device(call: ast.Call) -> bool:
    """``{"npu": …}.get(device, …)``, where NPUs never get what comes last."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "get" and isinstance(function.value, ast.Dict)):
        return False
    return any(isinstance(key, ast.Constant) and key.value == "npu" for key in function.value.keys)


def _in_body(inner: ast.AST, around: ast.If | ast.IfExp) -> bool:
    return inner in around.body if isinstance(around, ast.If) else inner is around.body


def _tests_of_chain(branch: ast.If | ast.IfExp) -> Iterator[ast.expr]:
    """The questions of ``if … elif …`` around one of its branches, or of conditional expressions one in the other."""
    first = branch
    while isinstance(around := parent(first), type(branch)) and _is_otherwise(first, around):
        first = around
    link: ast.AST | None = first
    while isinstance(link, ast.If | ast.IfExp):
        yield link.test
        otherwise = link.orelse if isinstance(link, ast.If) else [link.orelse]
        link = otherwise[0] if len(otherwise) == 1 else None


def _is_otherwise(inner: ast.AST, around: ast.If | ast.IfExp) -> bool:
    return around.orelse == [inner] if isinstance(around, ast.If) else around.orelse is inner


def _key_of(value: ast.AST, table: ast.Dict) -> ast.Constant | None:
    found = next((key for key, other in zip(table.keys, table.values, strict=True) if value in (key, other)), None)
    return found if isinstance(found, ast.Constant) else None
