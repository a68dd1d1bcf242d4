"""npu_swiglu or npu_geglu in the place of a gated unit in steps."""

from __future__ import annotations

import ast

from npuport.findings import Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import Match
from npuport.rules.fusable.rewriting import Call, Write, replacement
from npuport.rules.fusable.values import Value

_CASES = ("lead=(3,), D=8", "lead=(1, 5), D=33", "lead=(2, 1, 7), D=64")


def gated_fix(match: Match, flow: Flow, context: Context) -> Fix:
    """A fix for one gated unit, of two halves of a tensor or of two tensors.

    Raises:
        Unfit: no operator computes it, or the code cannot be cut out.
    """
    activated = match.anchor
    condition, assumed = _activation(activated)
    gate, up = match.roles["gate"], match.roles["up"]
    inputs: list[tuple[Input, Value]]
    if gate.op == up.op == "half" and _is_over_last(gate):
        source = gate.first
        inputs = [(Input("x", "tensor(*lead, 2 * D)"), source)]
        left = _place(gate) == 0
        if not left and activated.op != "gelu":
            raise Unfit("the second half goes through silu, where the operator has the first: swap the halves")
        both: Call = lambda write: write(source)  # noqa: E731 - one of two
    else:
        inputs = [(Input("gate", "tensor(*lead, D)"), gate), (Input("up", "tensor(*lead, D)"), up)]
        left = True
        both = lambda write: f"torch.cat(({write(gate)}, {write(up)}), dim=-1)"  # noqa: E731

    def call(write: Write) -> str:
        if activated.op == "gelu":
            form = int(_form_of_gelu(activated) == "tanh")
            return f"torch_npu.npu_geglu({both(write)}, dim=-1, approximate={form}, activate_left={left})[0]"
        return f"torch_npu.npu_swiglu({both(write)}, dim=-1)"

    when: Call | None = (lambda _: condition) if condition else None
    return replacement([(match.result, call)], inputs, _CASES, flow, context, when=when, assumed=assumed)


def _activation(activated: Value) -> tuple[str, dict[int, str]]:
    """The condition under which an activation is the one that is assumed, and which that is.

    A module that is chosen when the model is made is asked what it is.
    """
    node = activated.node
    member = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.")
    if not member:
        return "", {}
    assert isinstance(node, ast.Call)
    if activated.op == "silu":
        return "", {id(activated): "torch.nn.functional.silu"}
    if activated.op == "activation":
        name = ast.unparse(node.func)
        is_function = name.endswith("func")  # Megatron's configuration holds functions, those of others modules
        asked = f"{name} is torch.nn.functional.silu" if is_function else f"isinstance({name}, torch.nn.SiLU)"
        return asked, {id(activated): "torch.nn.functional.silu"}
    raise Unfit("which form of gelu it is, is said elsewhere")


def _form_of_gelu(activated: Value) -> str:
    form = activated.named.get("approximate")
    return str(form.constant) if form is not None else "none"


def _is_over_last(half: Value) -> bool:
    """Whether a half is one of the last dimension."""
    source = half.named.get("of")
    if source is None:
        return True  # x[..., :d]
    axis = source.named.get("dim", source.inputs[2] if len(source.inputs) > 2 else None)
    return axis is not None and axis.constant == -1


def _place(half: Value) -> int:
    assert isinstance(half.detail, tuple)
    return int(half.detail[0])
