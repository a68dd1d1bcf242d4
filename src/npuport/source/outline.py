"""What a module offers to others, small enough to be kept for every module of a large project."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from npuport.source.scopes import Binding, BindingKind, Scope


@dataclass(frozen=True, slots=True)
class Defined:
    """A name that one class or function has, and nothing else."""

    line: int
    column: int
    is_class: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that one import binds; relative imports keep their leading dots."""

    target: str


@dataclass(frozen=True, slots=True)
class Computed:
    """A name whose meaning only the tree tells."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The names that a module binds, and the modules whose names it takes all."""

    exports: Mapping[str, Defined | Imported | Computed]
    stars: tuple[str, ...]


EMPTY = Outline({}, ())
_COMPUTED = Computed()


def outline(scope: Scope) -> Outline:
    """The outline of the module with this scope."""
    return Outline({name: _export(bindings) for name, bindings in scope.bindings.items()}, tuple(scope.star_imports))


def may_bind(text: str, name: str) -> bool:
    """Whether a module may give ``name`` a meaning; False only where its text shows that it does not.

    Calls, attributes and strings of that name, which are most of its uses, bind nothing.
    """
    return name in text and (not text.isascii() or _binding(name).search(text) is not None)


@lru_cache(maxsize=4096)
def _binding(name: str) -> re.Pattern[str]:
    after = r"\b(?:class|def|import|as|for|global|case)[\s\\]+"
    before = r"[\s\\]*(?:[=,:;)\]}#|]|[-+*/%&^@<>]{1,2}=|(?:in|if)\b|$)"
    return re.compile(rf"{after}{name}\b|\b{name}\b(?:{before}|[ \t]*[\r\n])")


def _export(bindings: list[Binding]) -> Defined | Imported | Computed:
    if len(bindings) > 1:
        return _COMPUTED
    (binding,) = bindings
    if binding.kind is BindingKind.IMPORT:
        return Imported(binding.target)
    node = binding.node
    # A function may define a name under a ``global`` statement; then its scope is not the module's.
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and binding.scope.parent is None:
        return Defined(node.lineno, node.col_offset, isinstance(node, ast.ClassDef))
    return _COMPUTED
