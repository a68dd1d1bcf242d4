"""A piece of the user's code as a piece that stands by itself: inputs by their roles, all else by full names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

ROUNDINGS = 2e-6
"""What a claim on attention allows beyond the rule: its softmax and its sums have another order in one kernel."""

OWN = frozenset({"torch", "torch_npu", "math", "float", "int", "len", "list", "bool", "None", "True", "False"})


@dataclass
class Inputs:
    """The inputs of a claim: ``values`` by name, and which expressions of the user's code they stand for."""

    roles: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, node: ast.expr, value: str) -> str:
        """The input that an expression is; a name that is taken gets a number."""
        text = ast.unparse(node)
        if text not in self.roles:
            number = sum(one.rstrip("23456789") == name for one in self.values)
            name = f"{name}{number + 1}" if number else name
            self.roles[text], self.values[name] = name, value
        return self.roles[text]


class FreeNameError(Exception):
    """A name is left of which nothing is known."""


def renamed(node: ast.expr, roles: Mapping[str, str], name_of: Callable[[ast.expr], str | None]) -> str:
    """The source of ``node`` with every expression of ``roles`` (by its normal form) replaced by its name there.

    ``name_of`` gives the full names of modules and functions.

    Raises:
        FreeNameError: for a name that is neither.
    """
    return ast.unparse(_Renaming(roles, name_of).visit(node))


class _Renaming:
    def __init__(self, roles: Mapping[str, str], name_of: Callable[[ast.expr], str | None]) -> None:
        self._roles = roles
        self._name_of = name_of

    def visit(self, node: ast.AST) -> ast.AST:
        """A changed copy."""
        if isinstance(node, ast.expr):
            role = self._roles.get(ast.unparse(node))
            if role is not None:
                return ast.parse(role, mode="eval").body
            if isinstance(node, ast.Name | ast.Attribute):
                full = self._name_of(node)
                if full is not None and full.partition(".")[0] in OWN:
                    return ast.parse(full, mode="eval").body
        if isinstance(node, ast.Name) and node.id not in OWN:
            raise FreeNameError(node.id)
        fields = {
            name: [self.visit(one) if isinstance(one, ast.AST) else one for one in value]
            if isinstance(value, list)
            else self.visit(value)
            if isinstance(value, ast.AST)
            else value
            for name, value in ast.iter_fields(node)
        }
        return type(node)(**fields)
