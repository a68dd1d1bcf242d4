"""Where a program names something of ``torch.cuda``, and the edits that make it the NPU's."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from npuport.facts import CudaName, torch_cuda
from npuport.findings import Applicability, Edit, Fix
from npuport.rules.base import Context
from npuport.source.module import parent

ROOT = "torch.cuda"
_LOOKUPS = {"builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.delattr"}


@dataclass(frozen=True, slots=True)
class CudaUse:
    """One mention of a name of ``torch.cuda``: an attribute chain, an alias, or ``getattr(torch.cuda, "…")``."""

    top: ast.expr  # the whole chain
    node: ast.expr  # the part of it that stands for ``fact``
    name: str  # the whole dotted name
    fact: CudaName  # of the longest known part of ``name``
    token: ast.Attribute | None  # ``torch.cuda`` as it stands in the chain; None when an alias stands for it
    lookup: str | None = None  # "builtins.getattr" and the like
    literal: ast.Constant | None = None  # the name that is looked up

    @property
    def alias(self) -> str | None:
        """The variable that stands for something of torch.cuda at the root of the chain; None for ``torch.cuda.…``."""
        root = chain_of(self.node)[-1]
        return root.id if self.token is None and isinstance(root, ast.Name) else None

    @property
    def known(self) -> bool:
        """Whether the facts speak of this very name; members and dunder names are those of their owner."""
        rest = self.name[len(self.fact.name) + 1 :]
        return not rest or self.fact.kind != "module" or rest.startswith("__")

    @property
    def stored(self) -> bool:
        """Whether the program assigns or deletes the name."""
        return isinstance(getattr(self.top, "ctx", None), ast.Store | ast.Del) or self.lookup in {
            "builtins.setattr",
            "builtins.delattr",
        }


# The rules of a family see the same node one after the other; the last answer serves them all.
@lru_cache(maxsize=1)
def cuda_use(node: ast.expr, context: Context) -> CudaUse | None:
    """What ``node``, the top of a chain, names in ``torch.cuda``; None for parts of chains and for anything else."""
    around = parent(node)
    if isinstance(around, ast.Attribute) and around.value is node:
        return None
    name = context.name_of(node)
    if name is None or not (name == ROOT or name.startswith(f"{ROOT}.")):
        return None
    if not isinstance(getattr(node, "ctx", None), ast.Load) and not _inside_torch(node, context):
        return None  # self.stream = torch.cuda.Stream
    chain = chain_of(node)
    if isinstance(chain[-1], ast.Call):
        return None  # getattr(torch.cuda, "x").y: the lookup itself is the use
    if isinstance(around, ast.Call) and around.args and around.args[0] is node:
        called = context.name_of(around.func)
        if called in _LOOKUPS and len(around.args) > 1:
            literal = around.args[1]
            if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                looked_up = f"{name}.{literal.value}"
                return CudaUse(node, node, looked_up, _known(looked_up), _token(chain, context), called, literal)
            return CudaUse(node, node, name, _known(name), _token(chain, context), called)
    fact = _known(name)
    below = name.count(".") - fact.name.count(".")
    return CudaUse(node, chain[min(below, len(chain) - 1)], name, fact, _token(chain, context))


def _inside_torch(node: ast.expr, context: Context) -> bool:
    """Whether an assigned or deleted name is an attribute of torch or of something in torch.cuda."""
    owner = context.name_of(node.value) if isinstance(node, ast.Attribute) else None
    return owner is not None and (owner == "torch" or f"{owner}.".startswith(f"{ROOT}."))


def chain_of(node: ast.expr) -> list[ast.expr]:
    """``a.b.c``, ``a.b``, ``a``."""
    chain = [node]
    while isinstance(chain[-1], ast.Attribute):
        chain.append(chain[-1].value)
    return chain


def _known(name: str) -> CudaName:
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        fact = torch_cuda(".".join(parts[:end]))
        if fact is not None:
            return fact
    raise KeyError(name)  # the table has torch.cuda itself


def _token(chain: Sequence[ast.expr], context: Context) -> ast.Attribute | None:
    for node in chain:
        if isinstance(node, ast.Attribute) and node.attr == "cuda" and context.name_of(node.value) == "torch":
            return node
    return None


def last_part(node: ast.expr, context: Context) -> tuple[int, int]:
    """Where the last identifier of a name stands."""
    end = context.module.lines.span(node)[1]
    return end - len(node.attr if isinstance(node, ast.Attribute) else context.module.segment(node)), end


def token_edit(use: CudaUse, context: Context) -> Edit | None:
    """``torch.cuda`` becomes ``torch.npu``."""
    if use.token is None:
        return None
    start, end = last_part(use.token, context)
    return Edit(start, end, "npu") if context.module.text[start:end] == "cuda" else None


def name_edits(use: CudaUse, context: Context) -> list[Edit] | None:
    """The edits that make the name the NPU's; [] where its alias does, None where the source cannot show it."""
    new = use.fact.npu_name
    if new is None:
        return None
    if use.fact.status == "same":
        edit = token_edit(use, context)
        return [edit] if edit else [] if use.token is None else None
    return edits_to(use, new, context)


def edits_to(use: CudaUse, new: str, context: Context) -> list[Edit] | None:
    """The edits that make a use the name ``new``; [] where its alias does, None where the source cannot show it."""
    if use.literal is not None:
        owner, _, last = new.rpartition(".")
        edit = token_edit(use, context)
        start, end = context.module.lines.span(use.literal)
        plain = context.module.text[start + 1 : end - 1] == use.literal.value
        same_owner = owner == use.fact.name.rpartition(".")[0].replace(ROOT, "torch.npu", 1)
        return [edit, Edit(start + 1, end - 1, last)] if edit and plain and same_owner else None
    chain = chain_of(use.node)
    if use.token is not None:
        anchor, stands_for = use.token.value, "torch"
    else:
        anchor = next(part for part in reversed(chain) if (context.name_of(part) or "").startswith(ROOT))
        stands_for = _alias_meaning(context.name_of(anchor))
    if anchor is use.node:
        return []  # the import or assignment of the alias is what changes
    start, end = context.module.lines.span(anchor)[1], context.module.lines.span(use.node)[1]
    if not new.startswith(f"{stands_for}."):
        if context.resolver.name(ast.Name("torch", ast.Load()), context.scope(use.node)) != "torch":
            return None
        start, new_text = context.module.lines.span(use.node)[0], new
        return [Edit(start, end, new_text)] if _one_line(context, start, end) else None
    tail = new[len(stands_for) :]
    nodes = [node for node in reversed(chain[: chain.index(anchor)]) if isinstance(node, ast.Attribute)]
    parts = tail.removeprefix(".").split(".")
    if len(nodes) == len(parts):
        return [
            Edit(*last_part(node, context), part) for node, part in zip(nodes, parts, strict=True) if node.attr != part
        ]
    return [Edit(start, end, tail)] if _one_line(context, start, end) else None


def _alias_meaning(name: str | None) -> str:
    """What an alias of a name of torch.cuda stands for once its import is the NPU's."""
    fact = torch_cuda(name or "")
    return (fact.npu_name if fact and fact.npu_name else name) or ""


def _one_line(context: Context, start: int, end: int) -> bool:
    return "\n" not in context.module.text[start:end] and "\r" not in context.module.text[start:end]


@dataclass(frozen=True, slots=True)
class Arguments:
    """What has to happen to the arguments of a call; ``problem`` says why no edit can do it."""

    edits: tuple[Edit, ...] = ()
    problem: str | None = None


def arguments_of(use: CudaUse, context: Context) -> Arguments:
    """The edits that give a call's arguments the names of the NPU's parameters."""
    parameters = use.fact.parameters
    call, given = _call(use, context)
    if not parameters or call is None or use.name != use.fact.name:
        return Arguments()
    if any(isinstance(argument, ast.Starred) for argument in given) or any(k.arg is None for k in call.keywords):
        return Arguments(problem=f"{use.fact.npu_name} names its parameters differently, and this call unpacks some")
    renamed, dropped = use.fact.renamed_arguments, use.fact.dropped_arguments
    limit = use.fact.positional_arguments
    edits: list[Edit] = []
    for place, argument in enumerate(given):
        if limit is None or place < limit or place >= len(parameters):
            continue
        if parameters[place] in dropped:
            return Arguments(problem=f"{use.fact.npu_name} has no parameter {parameters[place]}")
        start = context.module.lines.span(argument)[0]
        edits.append(Edit(start, start, f"{renamed.get(parameters[place], parameters[place])}="))
    for keyword in call.keywords:
        name = keyword.arg or ""
        if name in dropped:
            return Arguments(problem=f"{use.fact.npu_name} has no parameter {name}")
        if name in renamed:
            start = context.module.lines.span(keyword)[0]
            edits.append(Edit(start, start + len(name), renamed[name]))
    return Arguments(tuple(edits))


def _call(use: CudaUse, context: Context) -> tuple[ast.Call | None, list[ast.expr]]:
    """The call of a name, or the ``functools.partial`` of it, with the arguments it passes by position."""
    around = parent(use.node)
    if not isinstance(around, ast.Call) or use.lookup is not None:
        return None, []
    if around.func is use.node:
        return around, around.args
    if around.args and around.args[0] is use.node and context.name_of(around.func) == "functools.partial":
        return around, around.args[1:]
    return None, []


def npu_fix(context: Context, edits: Sequence[Edit], applicability: Applicability, title: str = "") -> Fix:
    """A fix that leaves names of ``torch.npu``; before torch 2.5 they exist only once torch_npu is imported."""
    needs = None if context.agnostic or context.settings.torch_at_least("2.5") else "torch_npu"
    if context.has_npu_branches:
        applicability = Applicability.UNSAFE
    return context.fix(edits, applicability, title, needs=needs)
