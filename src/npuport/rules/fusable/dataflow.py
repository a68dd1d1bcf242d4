"""The dataflow of one function: what each of its expressions computes, whatever it is called on the way.

Statements are followed in order. Where branches give a name different values, its value from there on is a "choice";
a branch that returns or raises has none to give. The body of a loop is followed once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from npuport.rules.base import Context
from npuport.rules.fusable.expressions import Evaluator
from npuport.rules.fusable.values import Value
from npuport.source.module import ancestors
from npuport.source.scopes import Scope


class Flow:
    """What the expressions of a function compute.

    ``values`` are all of them in order; ``operations`` are the names of their operations; ``scope`` is its own.
    """

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, context: Context) -> None:
        self.function = function
        self.found: dict[str, Any] = {}  # what each pattern found here
        self.scope = scope
        # What names stand for around each statement, by its id; kept only for those who rewrite code.
        self.names_before: dict[int, dict[str, Value]] = {}
        self.names_after: dict[int, dict[str, Value]] = {}
        self._keeps_names = context.settings.fuse
        self._evaluator = Evaluator(scope, context)
        self._evaluator.parameters(function.args)
        self._run(function.body)
        self.values = self._evaluator.values
        self._by_node = {id(value.node): value for value in self.values if value.node is not None}
        self.operations = frozenset(value.op for value in self.values)

    def forget(self) -> None:
        """Cut the ways from values to their uses, which would keep all of it in memory with the syntax tree."""
        for value in self.values:
            value.uses.clear()

    def value(self, node: ast.expr) -> Value | None:
        """What an expression of this very function computes; what a name or attribute stands for where it is read."""
        return self._evaluator.read.get(id(node)) or self._by_node.get(id(node))

    def name_of(self, node: ast.expr, context: Context) -> str | None:
        """The dotted name outside the project that an expression of this function stands for."""
        return context.resolver.name(node, self.scope)

    def assigned_on_self(self, attribute: str) -> list[ast.expr | None]:
        """What the class around the function assigns to ``self.attribute``; None where it is no plain value."""
        around = self.scope.enclosing_class()
        return [value for value, _ in around.assigned_on_self.get(attribute, ())] if around is not None else []

    def parameter(self, name: str) -> Value:
        """The value that a parameter begins with."""
        return next(value for value in self.of("parameter") if value.detail == name)

    def of(self, op: str) -> list[Value]:
        """The values made by an operation, in order."""
        return [value for value in self.values if value.op == op] if op in self.operations else []

    def _run(self, body: Iterable[ast.stmt]) -> bool:
        """Follow statements; whether what stands after them is reached."""
        return all(self._reached(statement) for statement in body)

    def _reached(self, node: ast.stmt) -> bool:
        if not self._keeps_names:
            return self._statement(node)
        self.names_before[id(node)] = dict(self._evaluator.names)
        reached = self._statement(node)
        self.names_after[id(node)] = dict(self._evaluator.names)
        return reached

    def _statement(self, node: ast.stmt) -> bool:
        evaluate = self._evaluator
        if isinstance(node, ast.Assign):
            evaluate.assign(node.targets, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                evaluate.assign([node.target], node.value)
        elif isinstance(node, ast.AugAssign):
            evaluate.augment(node)
        elif isinstance(node, ast.Expr):
            evaluate.value(node.value)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                evaluate.value(node.value)
            return False
        elif isinstance(node, ast.Raise | ast.Continue | ast.Break):
            return False
        elif isinstance(node, ast.If):
            test = evaluate.value(node.test)
            return self._branches([node.body, node.orelse], test)
        elif isinstance(node, ast.For | ast.AsyncFor):
            evaluate.loop(node)
            self._branches([node.body, []])
            self._run(node.orelse)
        elif isinstance(node, ast.While):
            evaluate.value(node.test)
            self._branches([node.body, []])
            self._run(node.orelse)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                evaluate.value(item.context_expr)
                if item.optional_vars is not None:
                    evaluate.forget(item.optional_vars)
            return self._run(node.body)
        elif isinstance(node, ast.Try):
            reached = self._branches([[*node.body, *node.orelse], *(one.body for one in node.handlers)])
            return self._run(node.finalbody) and reached
        elif isinstance(node, ast.Match):
            evaluate.value(node.subject)
            return self._branches([*(case.body for case in node.cases), []])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            evaluate.forget(ast.Name(node.name))
        return True

    def _branches(self, bodies: list[list[ast.stmt]], test: Value | None = None) -> bool:
        """Follow each body from here, then let names be a choice of what they are after those that end."""
        before = self._evaluator.names
        ends = []
        for body in bodies:
            self._evaluator.names = dict(before)
            if self._run(body):
                ends.append(self._evaluator.names)
        self._evaluator.names = self._evaluator.merged(ends, test) if ends else before
        return bool(ends)


def function_around(node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function around a linked node; None at module and class level."""
    for around in ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            return around
    return None


def flow_of(function: ast.FunctionDef | ast.AsyncFunctionDef, context: Context) -> Flow:
    """The dataflow of a linked function, made once."""
    kept = vars(function)
    if "npuport_flow" not in kept:
        kept["npuport_flow"] = Flow(function, Scope.inside(function, context.scope(function)), context)
    flow: Flow = kept["npuport_flow"]
    return flow
