"""Calls of ``xformers.ops.memory_efficient_attention`` with its kinds of masks.

Shapes and classes: xformers/ops/fmha/__init__.py and attn_bias.py of facebookresearch/xformers. Queries are [batch,
sequence, heads, size], or [batch, sequence, size] with one head.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from npuport.facts import fused_operator, library
from npuport.findings import Applicability, Claim, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.fusable import attention_calls as calls
from npuport.rules.fusable.attention_calls import Arguments, Causal
from npuport.rules.fusable.attention_imports import unused_import
from npuport.rules.fusable.attention_layouts import as_owner
from npuport.rules.fusable.attention_masks import given_to
from npuport.rules.fusable.attention_references import Reference, claim_against
from npuport.rules.fusable.attention_rewrite import laid_out
from npuport.rules.fusable.attention_steps import flat
from npuport.rules.fusable.dataflow import Flow, flow_of, function_around
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import name_in_scope
from npuport.rules.fusable.ranks import rank_before, rank_of
from npuport.rules.fusable.renaming import Inputs
from npuport.rules.fusable.rewriting import without

_FUNCTIONS = {"xformers.ops.memory_efficient_attention", "xformers.ops.fmha.memory_efficient_attention"}
_NAMES = ("query", "key", "value", "attn_bias", "p", "scale")
_MODULES = ("xformers", "xformers.ops", "xformers.ops.fmha", "xformers.ops.fmha.attn_bias")
_MASKS = {"LowerTriangularMask": 2, "LowerTriangularFromBottomRightMask": 3}
_BLOCKS = {"BlockDiagonalMask": None, "BlockDiagonalCausalMask": 2, "BlockDiagonalCausalFromBottomRightMask": 3}
_TOP_LEFT = 2
_OF_TENSORS = {
    "expand",
    "to",
    "repeat",
    "unsqueeze",
    "masked_fill",
    "contiguous",
    "view",
    "reshape",
    "permute",
    "type_as",
}


@dataclass(frozen=True)
class _Bias:
    """What is hidden or added: a causal mask, a tensor, or sequences of their own lengths (of queries, of keys)."""

    causal: Causal | None = None
    tensor: str | None = None
    lengths: tuple[str, str] | None = None


class XformersAttentionCall(Rule):
    """A call of xformers' attention, which does not run on an NPU."""

    code = "NP652"
    name = "xformers-attention-call"
    severity = Severity.ERROR
    markers = (r"\bmemory_efficient_attention\b", ("xformers", r"^\s*(?:import|from)\s+xformers\b"))
    nodes = (ast.Call, ast.Import, ast.ImportFrom)
    agnostic = True

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            left = unused_import(node, _MODULES, context)
            if left is not None:
                yield context.finding(self, node, "nothing uses this import of xformers any more", fix=left)
            return
        assert isinstance(node, ast.Call)
        known, fact = library("xformers"), fused_operator("npu_fusion_attention")
        if known is None or fact is None or context.name_of(node.func) not in _FUNCTIONS:
            return
        message, fix = "", None
        try:
            fix = _fix(node, context)
        except Unfit as why:
            message = f"; left as it is, for {why}"
        instead = "scaled_dot_product_attention" if context.agnostic else fact.call
        message = f"xformers does not run on an NPU: {instead} computes this{message}"
        yield context.finding(self, node.func, message, basis=fact.basis, fix=fix)


def _fix(call: ast.Call, context: Context) -> Fix | None:
    given = Arguments.of(call, _NAMES)
    if given.get("output_dtype") is not None:
        raise Unfit("it asks for a dtype of the output")
    function = function_around(call)
    flow = flow_of(function, context) if function is not None else None
    bias = _bias(given.get("attn_bias"), flow, context)
    rank = _rank(call, flow)
    if context.settings.keep_lines or context.settings.target == "import":
        return None
    if bias.lengths is None and (context.agnostic or bias.tensor is not None):
        return _own(call, given, bias, rank, context)
    if context.agnostic:
        raise Unfit("PyTorch's own function has no sequences of different lengths in one")
    return _npu(call, given, bias, rank, context)


def _rank(call: ast.Call, flow: Flow | None) -> int:
    """The dimensions of the tensors.

    Raises:
        Unfit: when they are not seen, or are those of groups of heads.
    """
    value = flow.value(call) if flow is not None else None
    known: int | None = None
    if value is not None:
        taken = [value.named.get(name) for name in _NAMES[:3]]
        known = rank_of([*value.inputs[: min(3, len(call.args))], *taken]) or rank_before(value.uses)
    if known is None or known not in {3, 4}:
        raise Unfit("whether its tensors have three or four dimensions is not seen")
    return known


def _bias(node: ast.expr | None, flow: Flow | None, context: Context, depth: int = 3) -> _Bias:
    """What ``attn_bias`` is.

    Raises:
        Unfit: when it is not seen.
    """
    if node is None:
        return _Bias()
    if isinstance(node, ast.IfExp) and calls.is_constant(node.orelse, None):
        found = _bias(node.body, flow, context, depth)
        if found.causal is not None and found.causal.condition is None:
            return _Bias(Causal(found.causal.mode, flat(node.test, context)))
    if isinstance(node, ast.Call):
        found_call = _of_call(node, context)
        if found_call is not None:
            return found_call
    given = _given(node, flow) if depth else None
    if given is not None:
        found = _bias(given, flow, context, depth - 1)
        return _Bias(tensor=flat(node, context)) if found.tensor is not None else found
    raise Unfit(f"what attn_bias, {flat(node, context)[:40]}, is, is known at run time only")


def _of_call(node: ast.Call, context: Context) -> _Bias | None:
    """A mask that is made, or a tensor that a method gives."""
    made = node.func
    short = (context.name_of(made) or "").rpartition(".")[2] if isinstance(made, ast.Name | ast.Attribute) else ""
    if short in _MASKS:
        return _Bias(Causal(_MASKS[short]))
    if isinstance(made, ast.Attribute) and made.attr in {"make_causal", "make_causal_from_bottomright"}:
        inner = _of_call(made.value, context) if isinstance(made.value, ast.Call) else None
        return (
            _Bias(Causal(2 if made.attr == "make_causal" else 3), lengths=inner.lengths) if inner is not None else None
        )
    if isinstance(made, ast.Attribute) and made.attr == "from_seqlens":
        owner = (context.name_of(made.value) or "").rpartition(".")[2]
        if owner in _BLOCKS and 1 <= len(node.args) <= 2 and not node.keywords:
            mode = _BLOCKS[owner]
            texts = [flat(one, context) for one in node.args]
            return _Bias(Causal(mode) if mode is not None else None, lengths=(texts[0], texts[-1]))
        return None
    is_tensor = isinstance(made, ast.Attribute) and (
        made.attr in _OF_TENSORS or (context.name_of(made) or "").startswith("torch.")
    )
    return _Bias(tensor=flat(node, context)) if is_tensor else None


def _given(node: ast.expr, flow: Flow | None) -> ast.expr | None:
    """What a name, or an attribute of the object, is given, if that is said once."""
    if flow is None:
        return None
    if isinstance(node, ast.Name):
        return given_to(node.id, flow.function)
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        values = flow.assigned_on_self(node.attr)
        return values[0] if len(values) == 1 else None
    return None


def _own(call: ast.Call, given: Arguments, bias: _Bias, rank: int, context: Context) -> Fix:
    """The call of PyTorch's own function, which has the causal mask top left."""
    if bias.causal is not None and bias.causal.mode != _TOP_LEFT:
        raise Unfit("PyTorch's own function has its causal mask top left")
    texts = [flat(given.must(name), context) for name in _NAMES[:3]]
    folded = [f"{as_owner(text)}.unsqueeze(1)" for text in texts] if rank == 3 else None
    tensors, as_tried = (folded or [*map(turn, texts)] for turn in (calls.transposed, calls.turned))
    mask = bias.tensor
    if mask is not None and rank == 3:
        mask = f"{as_owner(mask)}.unsqueeze(1)"
    scale = given.get("scale")
    named: dict[str, str | None] = {
        "attn_mask": mask,
        "dropout_p": None,  # where it is tried, for it gives other numbers each time
        "is_causal": None if bias.causal is None else bias.causal.condition or "True",
        "scale": None if scale is None else flat(scale, context),
    }
    span = context.module.lines.span(call)
    functional = name_in_scope("torch.nn.functional", call, context)
    after = ".transpose(1, 2)" if rank == 4 else ".squeeze(1)"
    name = f"{functional}.scaled_dot_product_attention"
    tried = f"{name}({', '.join(calls.joined(as_tried, named))}){after}"
    claim = _claim(given, bias, rank, tried, _inputs(given, rank, bias), context)
    named["dropout_p"] = calls.dropout_of(given.get("p"), context)
    text = laid_out(name, calls.joined(tensors, named), after, span, context)
    needs = "torch" if functional == "torch.nn.functional" else None
    edits = _without_mask(given.get("attn_bias"), call, context) if bias.causal is not None else []
    return context.fix([*edits, Edit(*span, text)], Applicability.UNSAFE, f"call {name}", needs=needs, claim=claim)


def _without_mask(node: ast.expr | None, call: ast.Call, context: Context) -> list[Edit]:
    """The removal of ``mask = LowerTriangularMask()`` where only this call reads the name."""
    function = function_around(call)
    if not isinstance(node, ast.Name) or function is None:
        return []
    nodes = list(ast.walk(function))
    made = [one for one in nodes if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == node.id]
    uses = [one for one in nodes if isinstance(one, ast.Name) and one.id == node.id]
    return [without(made[0], context)] if len(made) == 1 and len(uses) == 2 and made[0] in function.body else []


def _npu(call: ast.Call, given: Arguments, bias: _Bias, rank: int, context: Context) -> Fix:
    """The call of npu_fusion_attention."""
    query = calls.query_of(given.must("query"), call, context)
    rest = [flat(given.must(name), context) for name in _NAMES[1:3]]
    named: dict[str, str | None] = {
        "scale": calls.scale_text(given.get("scale"), query, context),
        "keep_prob": None,
        **calls.npu_options(bias.causal, query, None),
    }
    tensors, after = [query.first, *rest], "[0]"
    heads, layout = (f"{query.again}.shape[-2]", '"BSND"') if rank == 4 else ("1", '"BSH"')
    needs = ["torch_npu"]
    if bias.lengths is not None:
        if rank == 3:
            raise Unfit("sequences of different lengths have four dimensions")
        tensors = [f"{as_owner(text)}.squeeze(0)" for text in tensors]
        layout, after = '"TND"', "[0].unsqueeze(0)"
        queries, keys = (f"list(itertools.accumulate({text}))" for text in bias.lengths)
        named |= {"actual_seq_qlen": queries, "actual_seq_kvlen": keys}
        needs.append("itertools")
    edits = _without_mask(given.get("attn_bias"), call, context)
    if bias.causal is not None:
        edits += calls.needed_by_mask(call, context)
        needs += ["functools", "torch"]
    inputs = _inputs(given, rank, bias)
    calls.name_query(query, given.must("query"), inputs)
    positional = [*tensors, heads, layout]
    tried = f"{calls.NPU}({', '.join(calls.joined(positional, named))}){after}"
    claim = _claim(given, bias, rank, tried, inputs, context)
    named["keep_prob"] = calls.kept(calls.dropout_of(given.get("p"), context))
    span = context.module.lines.span(call)
    edits.append(Edit(*span, laid_out(calls.NPU, calls.joined(positional, named), after, span, context)))
    title = "call npu_fusion_attention"
    return context.fix(edits, Applicability.UNSAFE, title, needs=tuple(sorted(needs)), claim=claim)


def _inputs(given: Arguments, rank: int, bias: _Bias) -> Inputs:
    """The tensors of a claim; one batch of all tokens where the sequences have lengths of their own."""
    lead, heads = ("1" if bias.lengths is not None else "2"), ("4, " if rank == 4 else "")
    inputs = Inputs()
    for name, of in zip(_NAMES[:3], ("S", "SK", "SK"), strict=True):
        inputs.add(name, given.must(name), f"tensor({lead}, {of}, {heads}D)")
    return inputs


def _claim(given: Arguments, bias: _Bias, rank: int, call: str, inputs: Inputs, context: Context) -> Claim:
    """The call against what xformers computes, without dropout."""
    roles = [inputs.roles[ast.unparse(given.must(name))] for name in _NAMES[:3]]
    scale = calls.input_of_scale(given.get("scale"), inputs)
    causal = calls.causal_of_claim(bias.causal, inputs)
    alike = len(set(roles)) < len(roles)
    sizes: tuple[str, ...] = ("S=6, SK=6, D=16",) if alike else ("S=5, SK=7, D=8", "S=6, SK=6, D=16")
    shown, starts, others = None, "", ""
    if bias.tensor is not None:
        node = ast.parse(bias.tensor, mode="eval").body
        name = inputs.add("bias", node, "tensor(2, 4, S, SK)" if rank == 4 else "tensor(2, S, SK)")
        shown = name if rank == 4 else f"{name}.unsqueeze(1)"
    if bias.lengths is not None:
        same = bias.lengths[0] == bias.lengths[1]
        starts, others = "starts", "starts" if same else "others"
        for name, text in zip((starts, others), bias.lengths, strict=True):
            inputs.values[name] = name
            inputs.roles[ast.unparse(ast.parse(f"list(itertools.accumulate({text}))", mode="eval").body)] = (
                f"{name}[1:].tolist()"
            )
        ends = "starts=torch.tensor([0, 3, 4, 12]), S=12"
        sizes = (f"{ends}, others=torch.tensor([0, {'3, 4, 12' if same or alike else '5, 6, 14'}]), D=16",)
        sizes = tuple(f"{size}, SK={12 if same or alike else 14}" for size in sizes)
    layout = "one head" if rank == 3 else "tokens of one batch" if bias.lengths is not None else "dense"
    reference = Reference(layout, ", ".join(roles), scale, shown, causal, None, starts, others)
    may_be_none = " is None else " in call or calls.NPU not in call
    return claim_against(reference, call, inputs, calls.cases_of(inputs, sizes, may_be_none), context.name_of)
