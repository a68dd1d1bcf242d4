"""What the rewriting of a hand-written attention rests on, as a claim that can be tried."""

from __future__ import annotations

import ast
from collections.abc import Callable

from npuport.findings import Claim, Input
from npuport.rules.base import Context
from npuport.rules.fusable.attention_layouts import is_folded, key_of, without_float
from npuport.rules.fusable.attention_masks import told
from npuport.rules.fusable.attention_rewrite import Rewriting
from npuport.rules.fusable.attention_steps import Step
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.renaming import ROUNDINGS, FreeNameError, Inputs, renamed

_LOW = "torch.finfo(scores.dtype).min"
_COMPARED: dict[type[ast.cmpop], Callable[[int, float], bool]] = {
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}


def claim_of(found: Rewriting, function: str, flow: Flow, context: Context) -> Claim:
    """The steps against the call, without dropout.

    Raises:
        Unfit: when the steps take what cannot be made up.
    """
    inputs = _inputs(found)
    for name in found.region.scores:
        inputs.roles.setdefault(name, "scores")

    def name_of(node: ast.expr) -> str | None:
        return flow.name_of(node, context)

    try:
        before = _before(found, inputs, name_of)
        call = ast.parse(f"{function}({', '.join(found.to_try)}){found.after}", mode="eval").body
        after = f"return {renamed(call, inputs.roles, name_of)}"
    except FreeNameError as left:
        raise Unfit(f"what {left} is in the steps is not seen, so that they cannot be tried") from left
    conditions = [name for name in inputs.values if name.startswith("given")]
    cases = [f"S={size}, T={other}, D=16" for size, other in _sizes(found, inputs)]
    given = (True, False) if conditions else (True,)
    tried = tuple(f"{case}{''.join(f', {name}={value}' for name in conditions)}" for case in cases for value in given)
    described = tuple(Input(name, value) for name, value in inputs.values.items())
    return Claim(described, before, after, tried, ROUNDINGS)


def _sizes(found: Rewriting, inputs: Inputs) -> list[tuple[int, int]]:
    """Lengths of queries and keys that are tried: equal ones where the code says that they are."""
    alone = found.mask.causal or "key" not in inputs.values
    return [(5, 5), (32, 32)] if alone else [(5, 7), (32, 32)]


def _inputs(found: Rewriting) -> Inputs:
    inputs = Inputs()
    product, result = found.steps.product, found.steps.result
    lead = "2" if is_folded(product) else "2, 3"
    if product.op == "einsum":
        _add_tensors_of_einsum(inputs, product, result)
    else:
        inner, turned = key_of(product)
        _add_tensor(inputs, "query", without_float(product.operands[-2]), [lead, "S", "D"])
        _add_tensor(inputs, "key", inner, [lead, "T", "D"] if turned else [lead, "D", "T"])
        _add_tensor(inputs, "value", result.operands[0], [lead, "T", "D"])
    for step in found.steps:
        _add_step(inputs, step, lead, found)
    return inputs


def _add_tensors_of_einsum(inputs: Inputs, product: Step, result: Step) -> None:
    query, key = product.operands[-2:]
    equation = str(product.value.detail).replace(" ", "")
    left, right, out = equation.replace("->", ",").split(",")
    if out[-2] not in left:
        query, key, left, right = key, query, right, left
    of = dict(zip(out[:-2], ("2", "3"), strict=False)) | {out[-2]: "S", out[-1]: "T"}
    _add_tensor(inputs, "query", query, [of.get(letter, "D") for letter in left])
    _add_tensor(inputs, "key", key, [of.get(letter, "D") for letter in right])
    value = str(result.value.detail).replace(" ", "").replace("->", ",").split(",")[1]
    names = dict(zip(str(result.value.detail).replace(" ", ""), out, strict=False))
    _add_tensor(inputs, "value", result.operands[-1], [of.get(names.get(letter, letter), "D") for letter in value])


def _add_tensor(inputs: Inputs, name: str, node: ast.expr, sizes: list[str]) -> None:
    inputs.add(name, node, f"tensor({', '.join(sizes)})")


def _add_step(inputs: Inputs, step: Step, lead: str, found: Rewriting) -> None:
    if step.condition is not None:
        name = inputs.add("given", step.condition, "given")
        inputs.values[name] = name
    if step.op in {"masked_fill", "where"}:
        hidden, told_to_keep = told(step)
        _add_mask(inputs, hidden, told_to_keep, lead, found.mask.causal)
    elif step.op == "add":
        inputs.add("bias", step.operands[0], f"tensor({lead}, S, T)")
    elif step.op in {"mul", "div"} and not isinstance(step.operands[0], ast.Constant):
        number = step.operands[0]
        if _has_own_names(number, inputs):
            power = "0.5" if step.op == "div" else "-0.5"
            inputs.add("scale", number, f"D ** {power}" if found.scale is None else "0.3")
    elif step.op == "baddbmm" and found.scale is not None and "alpha" in step.named:
        inputs.add("scale", step.named["alpha"], "0.3")


def _has_own_names(node: ast.expr, inputs: Inputs) -> bool:
    """Whether a number is made of more than the sizes of query and key."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return bool(names - {text.partition(".")[0] for text in inputs.roles} - {"math", "np", "numpy", "torch", "sqrt"})


def _add_mask(inputs: Inputs, hidden: ast.expr, told_to_keep: bool, lead: str, causal: bool) -> None:
    """A mask that hides about a third; for one that is causal, the triangle."""
    size = "2, 1, S, T" if "," in lead else "2, S, T"
    drawn = "torch.ones(S, T, dtype=torch.bool).triu(1)" if causal else f"mask({size})"
    if isinstance(hidden, ast.Compare) and len(hidden.ops) == 1 and isinstance(hidden.comparators[0], ast.Constant):
        holds, right = _COMPARED.get(type(hidden.ops[0])), hidden.comparators[0].value
        if holds is None or not isinstance(right, int | float):
            raise Unfit("what the mask is compared with is not seen")
        zero, one = holds(0, right), holds(1, right)
        if zero == one:
            raise Unfit("the mask has other numbers than 0 and 1")
        inputs.add("mask", hidden.left, f"({drawn}).long()" if one != told_to_keep else f"(~{drawn}).long()")
        return
    turned = isinstance(hidden, ast.UnaryOp) and isinstance(hidden.op, ast.Invert)
    base = hidden.operand if isinstance(hidden, ast.UnaryOp) and turned else hidden
    inputs.add("mask", base, f"~{drawn}" if turned != told_to_keep else drawn)


def _before(found: Rewriting, inputs: Inputs, name_of: Callable[[ast.expr], str | None]) -> str:
    lines = []
    for step in found.steps:
        roles = inputs.roles | ({ast.unparse(step.scores): "scores"} if step.scores is not None else {})
        if step.op == "baddbmm":
            roles[ast.unparse(step.operands[0])] = "torch.zeros((), dtype=query.dtype, device=query.device)"
        if step.op == "dropout":
            continue  # not tried: it gives other numbers each time
        if step.op == "cast":  # to the dtype that the scores had, which is that of the query
            roles |= {ast.unparse(one): "query" for one in step.operands if roles.get(ast.unparse(one)) == "scores"}
        if step.op == "softmax":
            wide = ", dtype=torch.float32" if "dtype" in step.named else ""
            text = f"torch.softmax(scores, dim=-1{wide})"
        else:
            text = _renamed_step(step, roles, name_of)
        indent = ""
        if step.condition is not None:
            lines.append(f"if {inputs.roles[ast.unparse(step.condition)]}:")
            indent = "    "
        lines.append(f"{indent}scores = {text}")
    return "\n".join([*lines, "return scores"])


def _renamed_step(step: Step, roles: dict[str, str], name_of: Callable[[ast.expr], str | None]) -> str:
    try:
        return renamed(step.node, roles, name_of)
    except FreeNameError:
        fill = [*step.operands[1:], *(one for key, one in step.named.items() if key == "value")]
        if step.op not in {"masked_fill", "where"} or not fill:
            raise
        return renamed(step.node, roles | {ast.unparse(one): _LOW for one in fill}, name_of)
