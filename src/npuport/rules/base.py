"""What a rule is, and what it may ask."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from npuport.findings import Applicability, Basis, Claim, Edit, Finding, Fix, Location, Severity
from npuport.rules.npu_branches import tells_npus_apart
from npuport.rules.settings import Settings
from npuport.source.module import Module, scope_of
from npuport.source.names import Definition
from npuport.source.project import Project
from npuport.source.resolver import Resolver
from npuport.source.scopes import Scope


class Rule(ABC):
    """One kind of CUDA code that matters on Ascend. Rules keep no state, read no files and print nothing.

    A rule is shown every node of the types in ``nodes`` that stands in a statement with a line that one of its
    ``markers`` matches. A marker is a regular expression, or a pair of a plain text and a regular expression for the
    lines that hold the text. All texts are sought together, so their number costs nothing and each that is rare is
    welcome: many names are many markers. A marker without a text of its own is refused.
    """

    code: ClassVar[str]
    name: ClassVar[str]  # kebab-case, states the bad pattern
    severity: ClassVar[Severity]
    markers: ClassVar[tuple[str | tuple[str, str], ...]] = ("cuda",)
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()  # plain texts: of each group a file holds one, or the rule rests
    nodes: ClassVar[tuple[type[ast.AST], ...]]
    follows_names: ClassVar[bool] = True  # whether lines with a name that stands for what a marker matches matter too
    edits: ClassVar[bool] = True  # whether what it finds may ask for an edit; what does not is no part of a conversion
    fuses: ClassVar[bool] = False  # whether its fixes put fused operators in: part of a conversion that is to fuse
    agnostic: ClassVar[bool] = False  # whether its fixes are right for the target "agnostic" too

    @classmethod
    def applies(cls, settings: Settings) -> bool:  # noqa: ARG003 - most rules always apply
        """Whether the rule has anything to say for this port; a rule that has not costs nothing."""
        return True

    @abstractmethod
    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        """Findings at ``node``."""


@dataclass(frozen=True, eq=False)
class Context:
    """One module as rules see it."""

    module: Module
    project: Project
    settings: Settings

    @property
    def resolver(self) -> Resolver:
        return self.project.resolver

    def scope(self, node: ast.AST) -> Scope:
        return scope_of(node, self.module.scope)

    def name_of(self, node: ast.expr) -> str | None:
        """The dotted name outside the project that ``node`` stands for, such as "torch.cuda.synchronize"."""
        return self.resolver.name(node, self.module.scope)

    def definition_of(self, node: ast.expr) -> Definition | None:
        """The project's own class or function that ``node`` names."""
        return self.resolver.definition(node, self.scope(node))

    def constants_of(self, node: ast.expr) -> frozenset[object] | None:
        """Every constant ``node`` can be; None when unknown. Unknown parts of strings are resolver.HOLE."""
        return self.resolver.constants(node, self.scope(node))

    @property
    def agnostic(self) -> bool:
        """Whether the converted code is to run on CUDA and on the CPU as before."""
        return self.settings.target == "agnostic"

    @cached_property
    def has_npu_branches(self) -> bool:
        """Whether the code told NPUs from other devices before npuport touched it, here or in a module beside this."""
        return tells_npus_apart(self.text_before) or self.has_counterpart

    @property
    def has_counterpart(self) -> bool:
        """Whether this is CUDA's module where NPUs have one as well: cuda_accelerator.py and npu_accelerator.py."""
        path = self.module.path
        return any(word in path and self.project.has(path.replace(word, "npu")) for word in ("cuda", "gpu"))

    @property
    def text_before(self) -> str:
        """The text of the file before the conversion that is under way."""
        before = self.project.text_before(self.module.path)
        return self.module.text if before is None else before

    # -- making findings -------------------------------------------------------------------------------------------

    def finding(
        self,
        rule: Rule,
        at: ast.AST | tuple[int, int],
        message: str,
        *,
        fix: Fix | None = None,
        basis: Basis | None = None,
        severity: Severity | None = None,
        **evidence: object,
    ) -> Finding:
        """A finding of ``rule`` at a node or at a pair of character offsets."""
        start, end = at if isinstance(at, tuple) else self.module.lines.span(at)
        line, column = self.module.lines.position(start)
        end_line, end_column = self.module.lines.position(end)
        return Finding(
            code=rule.code,
            name=rule.name,
            severity=severity or rule.severity,
            location=Location(self.module.path, line, column, end_line, end_column),
            message=message,
            evidence={key: value for key, value in evidence.items() if value is not None},
            basis=basis,
            fix=fix,
        )

    def replace_node(
        self, node: ast.AST, new: str, applicability: Applicability = Applicability.SAFE, title: str = ""
    ) -> Fix:
        """A fix that replaces the text of ``node``."""
        start, end = self.module.lines.span(node)
        return self.fix([Edit(start, end, new)], applicability, title)

    def replace_word(
        self, node: ast.AST, old: str, new: str, applicability: Applicability = Applicability.SAFE, title: str = ""
    ) -> Fix | None:
        """A fix that replaces the only ``old`` (a whole word) inside ``node``; None where it is not there just once."""
        start, end = self.module.lines.span(node)
        found = list(re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", self.module.text[start:end]))
        if len(found) != 1:
            return None
        edit = Edit(start + found[0].start(), start + found[0].end(), new)
        return self.fix([edit], applicability, title)

    def fix(
        self,
        edits: Iterable[Edit],
        applicability: Applicability = Applicability.SAFE,
        title: str = "",
        needs: str | tuple[str, ...] | None = None,
        claim: Claim | None = None,
    ) -> Fix:
        """A fix of ``edits``; ``needs`` names modules whose imports come with it when the file lacks them."""
        together = list(edits)
        asked = (needs,) if isinstance(needs, str) else needs or ()
        missing = [module for module in asked if not self._imports(module)]
        if missing:
            together.append(self._import_edit(missing))
        return Fix(tuple(sorted(together)), applicability, title, claim)

    def _imports(self, module: str) -> bool:
        return any(binding.target == module for binding in self.module.scope.bindings.get(module.partition(".")[0], []))

    def _import_edit(self, modules: list[str]) -> Edit:
        """``import …`` for each, after the plain imports at the head of the module or before its first statement."""
        separator = "; " if self.settings.keep_lines else self.newline
        together = separator.join(f"import {module}" for module in modules)
        body = self.module.tree.body
        head = 0
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            head = 1
        last: ast.stmt | None = body[0] if head else None
        for statement in body[head:]:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                break
            last = statement
        if last is None:
            return Edit(0, 0, together + separator)
        end = self.module.lines.span(last)[1]
        if self.settings.keep_lines:
            return Edit(end, end, f"; {together}")
        index = self.module.lines
        line = index.position(end)[0]
        if line < len(index.starts):
            return Edit(index.starts[line], index.starts[line], together + self.newline)
        return Edit(len(self.module.text), len(self.module.text), self.newline + together)

    @cached_property
    def newline(self) -> str:
        """The line ending that the file uses."""
        return "\r\n" if "\r\n" in self.module.text else "\n"


def with_applicability(fix: Fix | None, applicability: Applicability) -> Fix | None:
    """``fix`` demoted to ``applicability``."""
    return replace(fix, applicability=applicability) if fix is not None else None
