"""Code that is about CUDA and must stay so: an NPU neither needs what it does nor could do it."""

from __future__ import annotations

import ast
import re

from npuport.rules.base import Context
from npuport.source.module import ancestors, parent

_CAPABILITY = re.compile(r"get_device_capability|compute_capability")
_SETTINGS = ("torch.backends.cuda.", "torch.backends.cudnn.")


def asks_for_capability(node: ast.AST, context: Context) -> bool:
    """``device == "cuda" and get_device_capability() >= (8, 9)``: an NPU has none, and must not get there."""
    inner = node
    for around in ancestors(node):
        if isinstance(around, ast.stmt):
            return False
        if isinstance(around, ast.BoolOp) and isinstance(around.op, ast.And):
            later = around.values[around.values.index(inner) + 1 :] if inner in around.values else []
            if any(_CAPABILITY.search(context.module.segment(value)) for value in later):
                return True
        inner = around
    return False


def guards_settings(node: ast.AST, context: Context) -> bool:
    """Whether a condition holds back nothing but settings of CUDA's libraries, which an NPU does not read."""
    inner = node
    for around in ancestors(node):
        if isinstance(around, ast.If):
            return inner is around.test and not around.orelse and all(_is_setting(one, context) for one in around.body)
        if isinstance(around, ast.stmt):
            return False
        inner = around
    return False


def _is_setting(statement: ast.stmt, context: Context) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return bool(targets) and all((context.name_of(target) or "").startswith(_SETTINGS) for target in targets)


def is_name_of_cuda(node: ast.AST) -> bool:
    """``NCCL_BACKEND = "nccl"``: a name that must go on meaning NCCL where NCCL is one of several."""
    around = parent(node)
    targets = around.targets if isinstance(around, ast.Assign) else []
    return any(isinstance(target, ast.Name) and "nccl" in target.id.lower() for target in targets)
