"""Where a module imports Apex, and what it does with each name."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.rules.grad_scaler import handed_on
from npuport.source.module import ancestors, parent

PACKAGES = ("apex",)


@dataclass(frozen=True)
class Mention:
    """One use of an imported name: the whole dotted expression and what it is called outside the project."""

    node: ast.expr
    name: str
    imported: ast.alias

    @property
    def call(self) -> ast.Call | None:
        """The call of it, if it is called."""
        around = parent(self.node)
        return around if isinstance(around, ast.Call) and around.func is self.node else None


@dataclass(frozen=True)
class Imports:
    """The imports of Apex in a module and every use of what they bind, in source order."""

    statements: tuple[ast.Import | ast.ImportFrom, ...]
    mentions: tuple[Mention, ...]

    def edits(self, converted: Collection[Mention], context: Context) -> list[Edit]:
        """The imports without the names of which every use is converted, and which no other module takes from here."""
        used = {id(mention.imported) for mention in self.mentions}
        kept = {id(mention.imported) for mention in self.mentions if mention not in converted}
        kept |= {
            id(alias)
            for statement in self.statements
            for alias in statement.names
            if handed_on(_local(alias), context, used=id(alias) in used)
        }
        left = [[alias for alias in each.names if _stays(each, alias, kept)] for each in self.statements]
        gone = [each for each, names in zip(self.statements, left, strict=True) if not names]
        return [
            _removal(statement, gone, context) if not names else _shorter(statement, names, context)
            for statement, names in zip(self.statements, left, strict=True)
            if len(names) < len(statement.names)
        ]


def is_apex(statement: ast.AST) -> bool:
    """Whether a statement imports Apex or a part of it."""
    if isinstance(statement, ast.ImportFrom):
        return not statement.level and (statement.module or "").partition(".")[0] in PACKAGES
    return isinstance(statement, ast.Import) and any(_package(alias) in PACKAGES for alias in statement.names)


def imports(context: Context) -> Imports:
    """All that a module has to do with Apex; every node of the module is linked afterwards."""
    nodes = context.module.nodes(range(1, len(context.module.lines.starts) + 1))
    statements = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) and is_apex(node)]
    bound = {
        _local(alias): alias for statement in statements for alias in statement.names if _is_ours(statement, alias)
    }
    mentions = []
    for node in nodes:
        if not (isinstance(node, ast.Name) and node.id in bound and isinstance(node.ctx, ast.Load)):
            continue
        if (context.name_of(node) or "").partition(".")[0] in PACKAGES:
            top = _whole(node)
            mentions.append(Mention(top, context.name_of(top) or "", bound[node.id]))
    return Imports(tuple(statements), tuple(mentions))


def _is_ours(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    return isinstance(statement, ast.ImportFrom) or _package(alias) in PACKAGES


def _package(alias: ast.alias) -> str:
    return alias.name.partition(".")[0]


def _local(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _whole(name: ast.Name) -> ast.expr:
    """``apex.amp.initialize`` for its ``apex``."""
    top: ast.expr = name
    while isinstance(around := parent(top), ast.Attribute):
        top = around
    return top


def falls_back(statement: ast.Import | ast.ImportFrom) -> bool:
    """Whether the import stands in a ``try`` whose handlers go another way.

    They bind one of its names, or they let the program go on; ``amp`` is asked for when a switch says so, later.
    """
    around = next((each for each in ancestors(statement) if isinstance(each, ast.Try)), None)
    if around is None or not around.handlers:
        return False
    handled = [part for handler in around.handlers for part in ast.walk(handler)]
    names = {_local(alias) for alias in statement.names}
    goes_on = not any(isinstance(part, ast.Raise) for part in handled)
    return any(_binds(part, names) for part in handled) or (goes_on and not names & {"amp", "apex"})


def _binds(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return any(_local(alias) in names for alias in node.names)
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name in names
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names


def _stays(statement: ast.Import | ast.ImportFrom, alias: ast.alias, kept: set[int]) -> bool:
    return id(alias) in kept or alias.name == "*" or not _is_ours(statement, alias)


def _shorter(statement: ast.Import | ast.ImportFrom, names: list[ast.alias], context: Context) -> Edit:
    """The statement with these of its names."""
    words = ", ".join(alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in names)
    head = f"from {statement.module} import" if isinstance(statement, ast.ImportFrom) else "import"
    return Edit(*context.module.lines.span(statement), f"{head} {words}")


def _removal(statement: ast.stmt, gone: Sequence[ast.stmt], context: Context) -> Edit:
    """The edit that takes a statement away with its lines; ``pass`` where a block would be empty, or shares a line."""
    start, end = context.module.lines.span(statement)
    text = context.module.text
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end + 1
    alone = not text[line_start:start].strip() and not text[end:line_end].partition("#")[0].strip()
    block = block_of(statement, context)
    needed = statement is block[0] and all(each in gone for each in block)
    if alone and not needed and not context.settings.keep_lines:
        return Edit(line_start, line_end, "")
    return Edit(start, end, "pass")


def block_of(statement: ast.stmt, context: Context) -> list[ast.stmt]:
    """The statements among which this one stands."""
    around = parent(statement) or context.module.tree
    for field in ("body", "orelse", "finalbody"):
        block = getattr(around, field, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]
