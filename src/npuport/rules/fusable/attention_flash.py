"""Calls of flash-attn's functions for training.

Signatures: flash_attn/flash_attn_interface.py of Dao-AILab/flash-attention. Up to ``causal`` the arguments in order are
those of every release. Its masks are anchored bottom right since 2.1, and top left in flash-attn 1, whose functions for
sequences of different lengths are called "unpadded".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from npuport.facts import fused_operator, library
from npuport.findings import Applicability, Claim, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.fusable import attention_calls as calls
from npuport.rules.fusable.attention_calls import Arguments, Causal, Query
from npuport.rules.fusable.attention_imports import unused_import, without_statement
from npuport.rules.fusable.attention_layouts import as_owner
from npuport.rules.fusable.attention_references import Reference, claim_against
from npuport.rules.fusable.attention_rewrite import laid_out
from npuport.rules.fusable.attention_steps import flat
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import name_in_scope
from npuport.rules.fusable.renaming import Inputs

_OPTIONS = ("dropout_p", "softmax_scale", "causal")
_LENGTHS = ("cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k")
_TOP_LEFT, _BOTTOM_RIGHT = 2, 3  # sparse modes of the operator


@dataclass(frozen=True)
class _Function:
    """One function: its tensors, whether sequences have lengths of their own, and how its causal mask is anchored."""

    tensors: tuple[str, ...]
    varlen: bool = False
    anchor: int = _BOTTOM_RIGHT

    @property
    def names(self) -> tuple[str, ...]:
        if not self.varlen:
            return (*self.tensors, *_OPTIONS)
        lengths = ("cu_seqlens", "max_seqlen") if self.tensors == ("qkv",) else _LENGTHS
        return (*self.tensors, *lengths, *_OPTIONS)


_TENSORS = {"": ("q", "k", "v"), "_kvpacked": ("q", "kv"), "_qkvpacked": ("qkv",)}
_FUNCTIONS = {
    **{f"flash_attn{packed}_func": _Function(tensors) for packed, tensors in _TENSORS.items()},
    **{f"flash_attn_varlen{packed}_func": _Function(tensors, True) for packed, tensors in _TENSORS.items()},
    **{
        f"flash_attn_unpadded{packed}_func": _Function(tensors, True, _TOP_LEFT) for packed, tensors in _TENSORS.items()
    },
}
_MODULES = ("flash_attn", "flash_attn.flash_attn_interface")
_ABSENT = {
    "softcap": ("softcap", (0, 0.0)),
    "alibi_slopes": ("alibi_slopes", ()),
    "return_attn_probs": ("return_attn_probs", (False,)),
    "block_table": ("block_table", ()),
}


class FlashAttentionCall(Rule):
    """A call of flash-attn, which does not run on an NPU."""

    code = "NP651"
    name = "flash-attention-call"
    severity = Severity.ERROR
    markers = tuple(rf"\b{name}\b" for name in _FUNCTIONS)
    nodes = (ast.Call, ast.ImportFrom, ast.Assert)
    agnostic = True

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.ImportFrom | ast.Assert):
            left = _needless(node, context) if isinstance(node, ast.Assert) else unused_import(node, _MODULES, context)
            if left is not None:
                yield context.finding(self, node, "nothing calls this function of flash-attn any more", fix=left)
            return
        assert isinstance(node, ast.Call)
        function = _function_called(node.func, context)
        known, fact = library("flash_attn"), fused_operator("npu_fusion_attention")
        if function is None or known is None or fact is None:
            return
        message, fix = "", None
        if function.varlen:
            message = (
                "; it takes the lengths as lists of Python's integers, so reading cu_seqlens waits for the device"
                " in each call: make the lists once for each batch, and hand them on"
            )
        try:
            fix = _agnostic(node, function, context) if context.agnostic else _npu(node, function, context)
        except Unfit as why:
            message += f"; left as it is, for {why}"
        is_causal = fix is not None and context.agnostic and any("is_causal" in edit.new for edit in fix.edits)
        if is_causal and function.tensors != ("qkv",):
            message = "; its causal mask starts top left, so this is for as many queries as keys"
        instead = "scaled_dot_product_attention" if context.agnostic else fact.call
        yield context.finding(
            self, node.func, f"flash-attn does not run on an NPU: {instead} computes this{message}",
            basis=fact.basis, fix=fix,
        )  # fmt: skip


def _function_called(node: ast.expr, context: Context) -> _Function | None:
    """The function of flash-attn that is called; the newer where one import stands in for another (Megatron-LM)."""
    name = context.name_of(node)
    names = [name] if name is not None else []
    if name is None and isinstance(node, ast.Name):
        names = [one.target for one in context.scope(node).lookup(node.id) if one.target]
    parts = [one.rpartition(".") for one in names]
    known = [_FUNCTIONS[short] for module, _, short in parts if module in _MODULES and short in _FUNCTIONS]
    if not known or len(known) != len(names) or len({(one.tensors, one.varlen) for one in known}) > 1:
        return None
    return max(known, key=lambda one: one.anchor)


def _needless(node: ast.Assert, context: Context) -> Fix | None:
    """The removal of ``assert flash_attn_func is not None`` after the last call was converted."""
    asserted = re.fullmatch(r"(\w+) is not None", ast.unparse(node.test))
    if asserted is None or asserted[1] not in _FUNCTIONS:
        return None
    call = f"{asserted[1]}("
    if call in context.module.text or call not in context.text_before:
        return None
    return without_statement(node, context)


def _npu(call: ast.Call, function: _Function, context: Context) -> Fix | None:
    """The call of npu_fusion_attention."""
    given = Arguments.of(call, function.names)
    _check_absent(given)
    query, tensors = _tensors(given, function, call, context)
    causal = _causal(given, function, context)
    window = _window(given, causal, context)
    named: dict[str, str | None] = {
        "scale": calls.scale_text(given.get("softmax_scale"), query, context),
        "keep_prob": None,  # 1 where it is tried, for it gives other numbers each time
    }
    named |= calls.npu_options(causal, query, window)
    if function.varlen:
        named |= _lengths(given, call, context)
    if context.settings.keep_lines or context.settings.target == "import":
        return None
    positional = [*tensors, f"{query.again}.shape[-2]", '"TND"' if function.varlen else '"BSND"']
    inputs = _inputs(given, function)
    calls.name_query(query, given.must(function.tensors[0]), inputs)
    near = _near(window)
    as_tried = named | calls.npu_options(causal, query, near)
    tried = f"{calls.NPU}({', '.join(calls.joined(positional, as_tried))})[0]"
    claim = _claim(given, function, (causal, near), tried, inputs, context)
    named["keep_prob"] = calls.kept(calls.dropout_of(given.get("dropout_p"), context))
    masked = causal is not None or window is not None
    edits = calls.needed_by_mask(call, context) if masked else []
    span = context.module.lines.span(call)
    edits.append(Edit(*span, laid_out(calls.NPU, calls.joined(positional, named), "[0]", span, context)))
    needs = ("functools", "torch", "torch_npu") if masked else ("torch_npu",)
    title = "call npu_fusion_attention"
    return context.fix(edits, Applicability.UNSAFE, title, needs=needs, claim=claim)


def _agnostic(call: ast.Call, function: _Function, context: Context) -> Fix:
    """The call of PyTorch's own function, for sequences of one length."""
    given = Arguments.of(call, function.names)
    _check_absent(given)
    if function.varlen:
        raise Unfit("PyTorch's own function has no sequences of different lengths in one")
    causal = _causal(given, function, context)
    if _window(given, causal, context) is not None:
        raise Unfit("PyTorch's own function has no window")
    scale = given.get("softmax_scale")
    named: dict[str, str | None] = {
        "is_causal": None if causal is None else causal.condition or "True",
        "scale": None if scale is None else flat(scale, context),
        "enable_gqa": None if function.tensors == ("qkv",) else "True",
    }
    if named["enable_gqa"] and not context.settings.torch_at_least("2.5"):
        raise Unfit("before torch 2.5 its function takes no fewer heads of keys than of queries")
    *separate, last = (flat(given.must(name), context) for name in function.tensors)
    packed = [f"*{as_owner(last)}.permute(2, 0, 3, 1, 4)"] if function.tensors[-1] != "v" else []
    texts = separate if packed else [*separate, last]
    tensors, as_tried = ([*map(turn, texts), *packed] for turn in (calls.transposed, calls.turned))
    functional = name_in_scope("torch.nn.functional", call, context)
    name, after = f"{functional}.scaled_dot_product_attention", ".transpose(1, 2)"
    inputs = _inputs(given, function)
    tried = f"{name}({', '.join(calls.joined(as_tried, named))}){after}"
    claim = _claim(given, function, (causal, None), tried, inputs, context)
    named = {"dropout_p": calls.dropout_of(given.get("dropout_p"), context), **named}
    span = context.module.lines.span(call)
    text = laid_out(name, calls.joined(tensors, named), after, span, context)
    needs = "torch" if functional == "torch.nn.functional" else None
    return context.fix([Edit(*span, text)], Applicability.UNSAFE, f"call {name}", needs=needs, claim=claim)


def _inputs(given: Arguments, function: _Function) -> Inputs:
    """The tensors of a claim; those of flash-attn have the heads before their size."""
    lead = "T{of}" if function.varlen else "2, S{of}"
    query, key = (lead.format(of=of) for of in ("", "K" if function.tensors != ("qkv",) else ""))
    sizes = {
        "q": f"{query}, 4, D", "k": f"{key}, G, D", "v": f"{key}, G, D", "kv": f"{key}, 2, G, D",
        "qkv": f"{query}, 3, 4, D",
    }  # fmt: skip
    inputs = Inputs()
    for name in function.tensors:
        inputs.add(name, given.must(name), f"tensor({sizes[name]})")
    return inputs


def _claim(
    given: Arguments,
    function: _Function,
    hidden: tuple[Causal | None, tuple[str, str] | None],
    call: str,
    inputs: Inputs,
    context: Context,
) -> Claim:
    """The call against what flash-attn computes, without dropout. ``hidden`` is by what: a causal mask or a window."""
    roles = [inputs.roles[ast.unparse(given.must(name))] for name in function.tensors]
    dimension = 1 if function.varlen else 2
    tensors = [*roles[:-1], f"*{roles[-1]}.unbind({dimension})"] if function.tensors[-1] != "v" else roles
    starts = others = ""
    if function.varlen:
        names = ("cu_seqlens", "cu_seqlens") if "cu_seqlens" in given.given else _LENGTHS[:2]
        starts = inputs.add("starts", given.must(names[0]), "starts")
        others = inputs.add("others", given.must(names[1]), "others")
        inputs.roles |= {name: name for name in re.findall(r"(\w*ends) :=", call)}
    scale = calls.input_of_scale(given.get("softmax_scale"), inputs)
    causal = calls.causal_of_claim(hidden[0], inputs)
    layout = "tokens" if function.varlen else "dense"
    alone = len(set(roles)) < len(roles) or roles == ["qkv"]
    reference = Reference(layout, ", ".join(tensors), scale, None, causal, hidden[1], starts, others)
    sizes = _sizes(function.varlen, starts != others, alone, alone or context.agnostic)
    cases = calls.cases_of(inputs, sizes, " is None else " in call or context.agnostic)
    return claim_against(reference, call, inputs, cases, context.name_of)


def _sizes(varlen: bool, own_ends: bool, alone: bool, alike: bool) -> tuple[str, ...]:
    """Sizes to try: ragged batches, and half as many heads of keys.

    ``own_ends`` says that keys have ends of their own, ``alone`` that one tensor is both, and ``alike`` that there are
    as many keys as queries.
    """
    heads = "4" if alone else "2"
    if not varlen:
        even = f"S=6, SK=6, G={heads}, D=16"
        return (even,) if alike else ("S=5, SK=7, G=2, D=8", even)
    starts = "starts=torch.tensor([0, 3, 4, 12]), T=12"
    even = f"{starts}, others=torch.tensor([0, 3, 4, 12]), TK=12, G={heads}, D=16"
    return (f"{starts}, others=torch.tensor([0, 5, 6, 14]), TK=14, G=2, D=8", even) if own_ends else (even,)


def _check_absent(given: Arguments) -> None:
    """What the operator does not have.

    Raises:
        Unfit: naming it.
    """
    for name, (shown, without) in _ABSENT.items():
        asked = given.get(name)
        if asked is not None and not calls.is_constant(asked, *without):
            raise Unfit(f"npu_fusion_attention has no {shown}")


def _tensors(given: Arguments, function: _Function, call: ast.Call, context: Context) -> tuple[Query, list[str]]:
    """The query, and the first arguments of the call."""
    dimension = 1 if function.varlen else 2
    first = given.must(function.tensors[0])
    query = calls.query_of(first, call, context)
    if function.tensors == ("qkv",):
        return query, [f"*{query.first}.unbind({dimension})"]
    rest = [flat(given.must(name), context) for name in function.tensors[1:]]
    if function.tensors == ("q", "kv"):
        rest = [f"*{as_owner(rest[0])}.unbind({dimension})"]
    return query, [query.first, *rest]


def _causal(given: Arguments, function: _Function, context: Context) -> Causal | None:
    asked = given.get("causal")
    if asked is None or calls.is_constant(asked, False):
        return None
    condition = None if calls.is_constant(asked, True) else flat(asked, context)
    return Causal(function.anchor, condition)


def _window(given: Arguments, causal: Causal | None, context: Context) -> tuple[str, str] | None:
    """(pre_tockens, next_tockens) of a window; None for none.

    Raises:
        Unfit: for one that is known at run time only, where -1 would stand for no limit.
    """
    asked = given.get("window_size")
    if asked is None:
        return None
    sides = [context.constants_of(one) for one in asked.elts] if isinstance(asked, ast.Tuple | ast.List) else []
    numbers = [next(iter(side)) for side in sides if side is not None and len(side) == 1]
    if len(numbers) != 2 or not all(isinstance(number, int) for number in numbers):
        raise Unfit("its window is known at run time only")
    if numbers == [-1, -1]:
        return None
    if causal is not None and causal.condition is not None:
        raise Unfit("its window depends on whether it is causal")
    before, after = (calls.FAR if number == -1 else str(number) for number in numbers)
    return before, "0" if causal is not None else after


def _near(window: tuple[str, str] | None) -> tuple[str, str] | None:
    """A window that tells the few tokens of a claim apart."""
    if window is None:
        return None
    before, after = (side if side in {calls.FAR, "0"} else str(near) for side, near in zip(window, (2, 1), strict=True))
    return before, after


def _lengths(given: Arguments, call: ast.Call, context: Context) -> dict[str, str | None]:
    """The ends of the sequences, as lists; one list where queries and keys have the same."""
    names = ("cu_seqlens", "cu_seqlens") if "cu_seqlens" in given.given else _LENGTHS[:2]
    queries, keys = (f"{as_owner(flat(given.must(name), context))}[1:].tolist()" for name in names)
    if queries == keys:
        name = calls.free_name("ends", call, context)
        queries, keys = f"({name} := {queries})", name
    return {"actual_seq_qlen": queries, "actual_seq_kvlen": keys}
