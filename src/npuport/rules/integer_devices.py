"""Devices given as integers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Basis, Edit, Finding, Severity
from npuport.rules.agnostic.device_type import device_type
from npuport.rules.base import Context, Rule
from npuport.rules.settings import Settings


class IntegerDevice(Rule):
    """An integer as device where torch is older than 2.5.1."""

    code = "NP106"
    name = "integer-device"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\.to\(", r"\bdevice\b")
    nodes = (ast.Call,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        return not settings.torch_at_least("2.5.1")  # from then on an integer is an index of the current accelerator

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        for argument in self._devices(node, context):
            values = context.constants_of(argument)
            if values and all(isinstance(value, int) and not isinstance(value, bool) for value in values):
                text = context.module.segment(argument)
                quotable = '"' not in text and "\n" not in text and "{" not in text
                named = device_type(argument, context) if context.agnostic else None
                if named is not None:
                    index = text if text.isdecimal() else f"{{{text}}}"
                    edit = Edit(*context.module.lines.span(argument), f'f"{{{named.name}}}:{index}"')
                    fix = context.fix([*named.edits, edit])
                else:
                    new = f'"npu:{text}"' if text.isdecimal() else f'f"npu:{{{text}}}"'
                    fix = context.replace_node(argument, new)
                yield context.finding(
                    self,
                    argument,
                    "before torch 2.5.1 an integer device means a CUDA device",
                    fix=fix if quotable and (named is not None or not context.agnostic) else None,
                    basis=Basis("torch 2.5.1 resolves integer devices to the accelerator", "documented", "2.5.1"),
                )

    @staticmethod
    def _devices(node: ast.Call, context: Context) -> list[ast.expr]:
        function = node.func
        name = context.name_of(function) or ""
        if name.startswith(("torch.cuda.", "torch.npu.")):
            return []  # there an integer is the index of that backend
        found = [keyword.value for keyword in node.keywords if keyword.arg == "device"]
        first = node.args[0] if node.args else None
        method = function.attr if isinstance(function, ast.Attribute) else ""
        if first is not None and (method == "to" or name == "torch.device"):
            found.append(first)
        return found


RULES: tuple[type[Rule], ...] = (IntegerDevice,)
