"""The names under which PyTorch has one operation, brought to one."""

from __future__ import annotations

import ast
import re
from functools import cache

from npuport.rules.base import Context
from npuport.source.scopes import Scope

_GROUPS = {
    "matmul": "matmul bmm mm",
    "softmax": "softmax",
    "cast": "to type type_as float half bfloat16 double",
    "copy": "clone detach contiguous",
    "layout": "view reshape transpose permute swapaxes swapdims flatten unflatten squeeze unsqueeze expand expand_as"
    " repeat repeat_interleave view_as movedim t adjoint broadcast_to rearrange",
    "masked_fill": "masked_fill",
    "where": "where",
    "add": "add",
    "sub": "sub subtract",
    "mul": "mul multiply",
    "div": "div divide true_divide",
    "pow": "pow",
    "square": "square",
    "neg": "neg negative",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "mean": "mean",
    "norm": "norm vector_norm",
    "chunk": "chunk tensor_split",
    "split": "split",
    "unbind": "unbind",
    "cat": "cat concat concatenate",
    "stack": "stack",
    "dropout": "dropout feature_alpha_dropout",
    "silu": "silu",
    "gelu": "gelu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "erf": "erf",
    "cos": "cos",
    "sin": "sin",
    "linear": "linear",
    "layer_norm": "layer_norm",
    "rms_norm": "rms_norm",
    "einsum": "einsum",
    "baddbmm": "baddbmm",
    "clamp": "clamp clamp_min clip maximum minimum",
    "as_complex": "view_as_complex",
    "as_real": "view_as_real",
    "polar": "polar",
    "normalize": "normalize",
    "sdpa": "scaled_dot_product_attention",
}
OPERATIONS = {name: op for op, names in _GROUPS.items() for name in names.split()}
# Methods that dictionaries, strings or modules have too say nothing without a tensor that is known as one.
_NOT_METHODS = {"linear", "stack", "cat", "concat", "concatenate", "einsum", "rearrange", "layer_norm", "rms_norm"}
_MODULES = {
    "Softmax": "softmax",
    "Dropout": "dropout",
    "SiLU": "silu",
    "GELU": "gelu",
    "Sigmoid": "sigmoid",
    "Linear": "linear",
    "LayerNorm": "layer_norm",
    "RMSNorm": "rms_norm",
    "Identity": "copy",
}
_ACTIVATIONS_BY_NAME = {
    "silu": "silu",
    "gelu": "gelu",
    "act": "activation",
    "act_fn": "activation",
    "activation_fn": "activation",
    "activation_func": "activation",
}
_OTHER_FRAMEWORKS = {"numpy", "scipy", "tensorflow", "keras", "jax", "flax", "paddle", "mindspore", "builtins", "math"}
_TOLD_BY_CLASS = re.compile(r"(?i)act|lu|swish|sigm|nonlin|norm")
# Tables of activations, from which a configuration chooses: transformers' and timm's.
_TABLES = {"ACT2FN", "ACT2CLS"}
_CHOOSERS = {"get_activation", "get_activation_fn", "get_act_fn", "get_act_layer", "create_act_layer"}


def may_be_operation(short: str) -> bool:
    """Whether a name, without the module, can be that of a function that is known here."""
    return short.rstrip("_") in OPERATIONS or operation_by_name(short) is not None


def operation_of_function(name: str) -> str | None:
    """The operation of a qualified name such as "torch.nn.functional.softmax"; None for what is none of these."""
    if name == "xformers.ops.unbind":
        return "unbind"
    if not name.startswith(("torch.", "einops.")):
        foreign = name.partition(".")[0] in _OTHER_FRAMEWORKS or name.startswith("torch_npu.")
        return None if foreign else operation_by_name(name.rpartition(".")[2])
    short = name.rpartition(".")[2]
    if short in _MODULES and name.startswith("torch.nn."):
        return None
    return OPERATIONS.get(short.rstrip("_"))


def operation_of_method(name: str) -> str | None:
    """The operation of a tensor's method; in-place ones end with an underscore."""
    return None if name in _NOT_METHODS else OPERATIONS.get(name.removesuffix("_"))


def operation_of_member(name: str, scope: Scope, context: Context) -> str | None:
    """The operation of ``self.name(…)``: from what the class assigns to it, or from the name where that is plain."""
    plain = operation_by_name(name)
    if plain not in {None, "activation"} or not _TOLD_BY_CLASS.search(name):
        return plain
    around = scope.enclosing_class()
    for value, inner in around.assigned_on_self.get(name, ()) if around is not None else ():
        made = _operation_of_value(value, inner, context) if value is not None else None
        if made is not None:
            return made
    return plain


@cache
def operation_by_name(name: str) -> str | None:
    """What a module called ``attn_dropout`` or ``scale_mask_softmax`` does; its class is known at run time only."""
    lowered = name.lower()
    if lowered in _ACTIVATIONS_BY_NAME:
        return _ACTIVATIONS_BY_NAME[lowered]
    if "drop" in lowered and "path" not in lowered and "shape" not in lowered:
        return "dropout"
    if "softmax" in lowered and "log" not in lowered:
        return "softmax"
    return None


def _operation_of_value(value: ast.expr, scope: Scope, context: Context) -> str | None:
    if isinstance(value, ast.IfExp):
        found = {_operation_of_value(part, scope, context) for part in (value.body, value.orelse)} - {"copy"}
        return found.pop() if len(found) == 1 else None
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in _TABLES:
        return _named_activation(value.slice) or "activation"
    if isinstance(value, ast.Call):
        called = value.func
        short = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if short in _CHOOSERS:
            return (_named_activation(value.args[0]) if value.args else None) or "activation"
        name = context.resolver.name(called, scope)
        if name is not None and name.startswith("torch.nn."):
            return _MODULES.get(short)
        if short.endswith("RMSNorm"):
            return "rms_norm"
        if short in {"act_layer", "act_cls", "act_fn", "activation"}:
            return "activation"
        return None
    name = context.resolver.name(value, scope) if isinstance(value, ast.Name | ast.Attribute) else None
    return operation_of_function(name) if name is not None else None


def operation_of_object(made: ast.Call, scope: Scope, context: Context) -> str | None:
    """The operation of ``nn.Softmax(dim=-1)``, an object made by a call."""
    return _operation_of_value(made, scope, context)


def _named_activation(value: ast.expr) -> str | None:
    known = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu"}
    return known.get(str(value.value)) if isinstance(value, ast.Constant) else None
