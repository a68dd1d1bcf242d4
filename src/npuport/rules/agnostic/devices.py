"""Device strings, comparisons with them, ``.cuda()`` and ``is_cuda`` for the target "agnostic"."""

from __future__ import annotations

import ast
import re

from npuport.findings import Edit
from npuport.rules.agnostic.device_type import PAIR, device_type
from npuport.rules.base import Context
from npuport.source.module import parent

_COUNTERPARTS = {"cuda": "npu", "nccl": "hccl", "NCCL": "HCCL"}
# One literal of one line: its prefix, its quotes, and what stands between them.
_LITERAL = re.compile(
    r"(?P<prefix>[rRbBfFuU]*)(?P<quote>\"\"\"|'''|\"|')(?P<word>cuda|nccl|NCCL)(?P<rest>[^\r\n]*)(?P=quote)"
)
# What binds less tightly than a comparison: there ``x in y`` needs no parentheses.
LOOSE = (
    ast.If, ast.While, ast.Assert, ast.Return, ast.Assign, ast.AnnAssign, ast.Expr, ast.BoolOp, ast.keyword, ast.Call,
    ast.IfExp, ast.Lambda, ast.comprehension, ast.NamedExpr,
)  # fmt: skip


# -- strings that become devices -------------------------------------------------------------------------------------


def device_string(node: ast.expr, context: Context) -> list[Edit] | None:
    """``"cuda:0"`` becomes ``f"{DEVICE_TYPE}:0"``; ``"cuda" if torch.cuda.is_available() else "cpu"`` the constant."""
    if is_choice(node):
        return beside_choices(node, context)
    if _in_device_table(node):
        return None
    named = device_type(node, context)
    if named is None:
        return None
    whole = choice_of(node, context)
    if whole is not None:
        return [*named.edits, Edit(*context.module.lines.span(whole), named.name)]
    text = _spelt(node, named.name, context)
    return [*named.edits, Edit(*context.module.lines.span(node), text)] if text is not None else None


def beside_choices(node: ast.expr, context: Context) -> list[Edit] | None:
    """``choices=["cpu", "cuda"]`` gets ``"npu"`` as well."""
    around = parent(node)
    return None if around is None or _speaks_of_npu(around) else _beside(node, ", ", context)


def is_choice(node: ast.expr) -> bool:
    """Whether a literal stands in the list of what an option may be, or in ``Literal["cpu", "cuda"]``."""
    around = parent(node)
    subscript = parent(around) if isinstance(around, ast.Tuple) else around
    if isinstance(subscript, ast.Subscript) and node is not subscript.value:
        kind = subscript.value
        return (kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", "")) == "Literal"
    outer = parent(around) if isinstance(around, ast.List | ast.Tuple | ast.Set) else None
    return isinstance(outer, ast.keyword) and outer.arg == "choices"


def _in_device_table(node: ast.expr) -> bool:
    """Whether a literal, be it formatted, is a key or a value of a table from device to device."""
    around = parent(node)
    while isinstance(around, ast.BinOp | ast.Call | ast.Attribute):
        around = parent(around)
    return isinstance(around, ast.Dict) and any(key is not None and _names_a_device(key) for key in around.keys)


def _names_a_device(node: ast.expr) -> bool:
    first = next((part for part in ast.walk(node) if isinstance(part, ast.Constant)), None)
    return first is not None and str(first.value).startswith(("cuda", "npu"))


def choice_of(node: ast.expr, context: Context) -> ast.IfExp | None:
    """``"cuda" if torch.cuda.is_available() else "cpu"`` around its first literal: just what the constant says."""
    around = parent(node)
    if not isinstance(around, ast.IfExp) or not isinstance(node, ast.Constant) or node.value != "cuda":
        return None
    asks = isinstance(around.test, ast.Call) and context.name_of(around.test.func) in _AVAILABLE
    otherwise = isinstance(around.orelse, ast.Constant) and around.orelse.value == "cpu"
    return around if around.body is node and asks and otherwise else None


_AVAILABLE = {"torch.cuda.is_available", "torch.accelerator.is_available"}


def _spelt(node: ast.expr, name: str, context: Context) -> str | None:
    """A literal with the constant in the place of ``cuda``; None where the source does not show it plainly."""
    literal = _LITERAL.fullmatch(context.module.segment(node))
    if literal is None:
        return name if isinstance(node, ast.Constant) and node.value == "cuda" else None
    rest = literal["rest"]
    if not rest:
        return name
    is_format = "f" in literal["prefix"].lower()
    if not is_format:
        rest = rest.replace("{", "{{").replace("}", "}}")
    prefix = literal["prefix"] if is_format else f"f{literal['prefix'].strip('uU')}"
    return f"{prefix}{literal['quote']}{{{name}}}{rest}{literal['quote']}"


def _beside(node: ast.expr, between: str, context: Context) -> list[Edit] | None:
    """``"cuda"`` becomes ``"cuda", "npu"``."""
    text = _for_npu(node, context)
    end = context.module.lines.span(node)[1]
    return [Edit(end, end, f"{between}{text}")] if text is not None else None


def _for_npu(node: ast.expr, context: Context) -> str | None:
    """A literal as the NPU's."""
    literal = _LITERAL.fullmatch(context.module.segment(node))
    if literal is None:
        return None
    return f"{literal['prefix']}{literal['quote']}{_COUNTERPARTS[literal['word']]}{literal['rest']}{literal['quote']}"


def _speaks_of_npu(node: ast.AST) -> bool:
    texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return any(isinstance(text, str) and text.lower().startswith(("npu", "hccl")) for text in texts)


# -- comparisons -----------------------------------------------------------------------------------------------------


def comparison(node: ast.expr, context: Context) -> list[Edit] | None:
    """The edits that make a comparison with CUDA's device hold for an NPU too; other devices are as before."""
    around = parent(node)
    if isinstance(around, ast.Compare) and len(around.ops) == 1:
        return _compared(node, around, context)
    if isinstance(around, ast.List | ast.Tuple | ast.Set):
        return None if _speaks_of_npu(around) else _beside(node, ", ", context)
    if isinstance(around, ast.MatchValue):
        return _beside(node, " | ", context)
    if isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute) and around.func.attr == "startswith":
        pair = _pair(node, context)
        return [Edit(*context.module.lines.span(node), pair)] if pair and len(around.args) == 1 else None
    return None


def _pair(node: ast.expr, context: Context) -> str | None:
    """``("cuda:0", "npu:0")``."""
    other = _for_npu(node, context)
    return f"({context.module.segment(node)}, {other})" if other is not None else None


def _compared(node: ast.expr, around: ast.Compare, context: Context) -> list[Edit] | None:
    operator, left, right = around.ops[0], around.left, around.comparators[0]
    pair = _pair(node, context)
    if pair is None:
        return None
    lines = context.module.lines
    if isinstance(operator, ast.In | ast.NotIn) and node is left:
        literal, other = _LITERAL.fullmatch(context.module.segment(node)), context.module.segment(right)
        if literal is None or "\n" in other:
            return None
        negated = "not " if isinstance(operator, ast.NotIn) else ""
        variable = next(name for name in ("name", "kind", "word", "each") if not re.search(rf"\b{name}\b", other))
        return [Edit(*lines.span(around), f"{negated}any({variable} in {other} for {variable} in {pair})")]
    if not isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        return None
    word = "in" if isinstance(operator, ast.Eq | ast.Is) else "not in"
    if node is right:
        between = (lines.span(left)[1], lines.span(right)[0])
        sign = re.search(r"==|!=|\bis\b(?:\s+not\b)?", context.module.text[slice(*between)])
        if sign is None:
            return None
        start = between[0] + sign.start()
        return [Edit(start, start + len(sign[0]), word), Edit(*lines.span(right), pair)]
    return [Edit(*lines.span(around), f"{context.module.segment(right)} {word} {pair}")]


# -- methods and attributes ------------------------------------------------------------------------------------------


def cuda_method(node: ast.Attribute, context: Context) -> list[Edit] | None:
    """``x.cuda(…)`` becomes ``x.to(…)`` with the device it means."""
    call = parent(node)
    named = device_type(node, context)
    if named is None or not isinstance(call, ast.Call) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    lines, end = context.module.lines, context.module.lines.span(node)[1]
    edits = [*named.edits, Edit(end - 4, end, "to")]
    # A storage, which map_location's function is given, takes the device by keyword only.
    keyword = "device=" if "storage" in context.module.segment(node.value).lower() else ""
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    if given is None:
        opening = context.module.text.find("(", end) + 1
        return [*edits, Edit(opening, opening, keyword + named.name + (", " if call.keywords else ""))]
    text = _device_argument(given, named.name, context)
    if text is None:
        return None
    text = keyword + text if call.args else text
    return [*edits, Edit(*lines.span(given), text)] if text != context.module.segment(given) else edits


def _device_argument(given: ast.expr, name: str, context: Context) -> str | None:
    """What ``.to`` takes in the place of an argument of ``.cuda``, for which None means the current device."""
    text = context.module.segment(given)
    if isinstance(given, ast.Constant):
        if given.value is None:
            return name
        if isinstance(given.value, bool):
            return None
        return f'f"{{{name}}}:{given.value}"' if isinstance(given.value, int) else text
    if isinstance(given, ast.Name):
        return text
    return f"{name} if {text} is None else {text}" if "\n" not in text else None


def is_cuda(node: ast.Attribute, context: Context) -> list[Edit] | None:
    """``x.is_cuda`` becomes a question for the type of the device."""
    start, end = context.module.lines.span(node)
    around = parent(node)
    new = f"device.type in {PAIR}"
    edits = [Edit(end - len("is_cuda"), end, new)]
    if isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not):
        operator = context.module.lines.span(around)[0]
        between = context.module.text[operator:start]
        if between.strip() == "not":  # not x.is_cuda
            return [Edit(operator, start, ""), Edit(end - len("is_cuda"), end, f"device.type not in {PAIR}")]
    if around is None or isinstance(around, LOOSE):
        return edits
    return [Edit(start, start, "("), Edit(end - len("is_cuda"), end, f"{new})")]
