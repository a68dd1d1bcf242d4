"""Calls of fused attention as they are put in the place of a library's: npu_fusion_attention and PyTorch's own.

Layouts, sparse modes and the compressed mask: op-plugin's document on torch_npu.npu_fusion_attention.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.rules.fusable.attention_layouts import as_owner
from npuport.rules.fusable.attention_steps import flat, part
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.renaming import Inputs
from npuport.source.module import ancestors

NPU = "torch_npu.npu_fusion_attention"
FAR = "2147483647"
MASK = "npu_causal_mask"
_MASK_ITSELF = "torch.ones(2048, 2048, dtype=torch.bool, device={query}.device).triu(1)"
_MASK_TEXT = f'''@functools.cache
def {MASK}(device):
    """The causal mask of npu_fusion_attention, which is cut to any size; True is left out."""
    return torch.ones(2048, 2048, dtype=torch.bool, device=device).triu(1)
'''
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call by their names."""

    given: dict[str, ast.expr]

    @classmethod
    def of(cls, call: ast.Call, names: tuple[str, ...]) -> Arguments:
        """Bind a call to a signature.

        Raises:
            Unfit: for ``*`` and ``**``, and for more arguments than are known.
        """
        if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
            raise Unfit("some of its arguments are known at run time only")
        if len(call.args) > len(names):
            raise Unfit("it has more arguments in order than every release has")
        return cls(dict(zip(names, call.args, strict=False)) | {str(one.arg): one.value for one in call.keywords})

    def get(self, *names: str) -> ast.expr | None:
        """What one of the names is given; None where it is not, or None itself."""
        found = next((self.given[name] for name in names if name in self.given), None)
        return None if isinstance(found, ast.Constant) and found.value is None else found

    def must(self, name: str) -> ast.expr:
        """What a name is given.

        Raises:
            Unfit: when it is not.
        """
        found = self.get(name)
        if found is None:
            raise Unfit(f"{name} is not seen")
        return found


@dataclass(frozen=True)
class Causal:
    """That keys after a query are hidden, always or under a condition. ``mode`` is the operator's sparse mode."""

    mode: int
    condition: str | None = None


@dataclass(frozen=True)
class Query:
    """The query of a call: ``first`` where it is an argument, ``again`` where its sizes are asked for."""

    first: str
    again: str

    @property
    def default_scale(self) -> str:
        return f"{self.again}.shape[-1] ** -0.5"


def query_of(node: ast.expr, call: ast.Call, context: Context) -> Query:
    """A query whose sizes can be asked for; an expression is given a name on the way.

    Raises:
        Unfit: where no name can be given.
    """
    text = flat(node, context)
    if isinstance(node, ast.Name | ast.Attribute):
        return Query(text, text)
    name = free_name("query", call, context)
    return Query(f"({name} := {text})", name)


def free_name(wanted: str, call: ast.Call, context: Context) -> str:
    """A name that nothing in the file has.

    Raises:
        Unfit: inside of an expression that has names of its own.
    """
    if any(
        isinstance(one, ast.Lambda | ast.comprehension | ast.GeneratorExp | ast.ListComp) for one in ancestors(call)
    ):
        raise Unfit("the call stands in an expression with names of its own")
    while re.search(rf"\b{wanted}\b", context.module.text):
        wanted = f"fused_{wanted}"
    return wanted


def scale_text(given: ast.expr | None, query: Query, context: Context) -> str:
    """The scale, which may be None at run time where a name is given."""
    if given is None:
        return query.default_scale
    text = flat(given, context)
    if isinstance(given, ast.Name | ast.Attribute) and not _is_number_of_class(given, context):
        return f"{query.default_scale} if {text} is None else {text}"
    return text


def _is_number_of_class(given: ast.Name | ast.Attribute, context: Context) -> bool:
    around = context.scope(given).enclosing_class()
    if around is None or not isinstance(given, ast.Attribute) or ast.unparse(given.value) != "self":
        return False
    values = [value for value, _ in around.assigned_on_self.get(given.attr, ())]
    return bool(values) and all(isinstance(value, ast.BinOp | ast.Call) for value in values)


def is_constant(node: ast.expr | None, *values: object) -> bool:
    """Whether a node is one of the literals, by value and type."""
    return isinstance(node, ast.Constant) and any(type(node.value) is type(v) and node.value == v for v in values)


def dropout_of(given: ast.expr | None, context: Context) -> str | None:
    """The probability; None for none."""
    return None if given is None or is_constant(given, 0, 0.0) else flat(given, context)


def kept(dropout: str | None) -> str | None:
    """``keep_prob`` of a probability to drop."""
    if dropout is None:
        return None
    atom = isinstance(ast.parse(dropout, mode="eval").body, ast.Name | ast.Attribute | ast.Call | ast.Constant)
    return f"1.0 - {dropout}" if atom else f"1.0 - ({dropout})"


def npu_options(causal: Causal | None, query: Query, window: tuple[str, str] | None) -> dict[str, str | None]:
    """The arguments that say what is hidden: ``window`` is what may be seen before and after."""
    mask = f"{MASK}({query.again}.device)"
    if window is not None:
        return {"atten_mask": mask, "pre_tockens": window[0], "next_tockens": window[1], "sparse_mode": "4"}
    if causal is None:
        return {}
    shown = mask if causal.condition is None else f"{mask} if {part(causal.condition)} else None"
    return {"atten_mask": shown, "sparse_mode": str(causal.mode)}


def turned(text: str) -> str:
    """[batch, sequence, heads, size] for PyTorch's function, which has heads first."""
    return f"{as_owner(text)}.transpose(1, 2)"


def transposed(text: str) -> str:
    """The same, without two turns that make none."""
    turn = ".transpose(1, 2)"
    return text.removesuffix(turn) if text.endswith(turn) else turned(text)


def joined(positional: list[str], named: dict[str, str | None]) -> list[str]:
    """The arguments of a call as source, without those that are None."""
    return [*positional, *(f"{key}={text}" for key, text in named.items() if text is not None)]


def needed_by_mask(call: ast.Call, context: Context) -> list[Edit]:
    """The function that makes the mask, once for each device, before the first function or class of the file.

    Raises:
        Unfit: where the call runs before that.
    """
    if f"def {MASK}(" in context.module.text:
        return []
    first = next((one for one in context.module.tree.body if isinstance(one, _DEFINITIONS)), None)
    if first is None or not any(isinstance(one, _FUNCTIONS) for one in ancestors(call)):
        raise Unfit("a call outside of functions finds no function for its mask")
    line = min([first.lineno, *(one.lineno for one in first.decorator_list)])
    start = context.module.lines.starts[line - 1]
    return [Edit(start, start, _MASK_TEXT.replace("\n", context.newline) + context.newline * 2)]


def input_of_scale(given: ast.expr | None, inputs: Inputs) -> str | None:
    """The scale of a claim: a literal as it is, all else a number."""
    if given is None:
        return None
    return ast.unparse(given) if isinstance(given, ast.Constant) else inputs.add("scale", given, "scale")


def causal_of_claim(causal: Causal | None, inputs: Inputs) -> Causal | None:
    """The same with its condition as an input."""
    if causal is None or causal.condition is None:
        return causal
    name = inputs.add("causal", ast.parse(causal.condition, mode="eval").body, "causal")
    return Causal(causal.mode, name)


def cases_of(inputs: Inputs, sizes: tuple[str, ...], scale_may_be_none: bool) -> tuple[str, ...]:
    """Each size with each of the values that scale and condition can have."""
    options = {"scale": ("None", "0.3") if scale_may_be_none else ("0.3",), "causal": ("True", "False")}
    found = sizes
    for name, values in options.items():
        if name in inputs.values:
            found = tuple(f"{case}, {name}={value}" for case in found for value in values)
    return found


def name_query(query: Query, node: ast.expr, inputs: Inputs) -> None:
    """What the call says of its query is part of a claim: its name on the way, and its mask."""
    if query.first != query.again:
        inputs.roles[query.again] = query.again
    known = inputs.roles.get(ast.unparse(node), query.again)
    shown = known if query.first == query.again else query.again
    inputs.roles[f"{MASK}({query.again}.device)"] = _MASK_ITSELF.format(query=shown)
