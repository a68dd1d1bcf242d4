"""What the functions of flash-attn and xformers compute, in plain PyTorch: the other side of the claims.

Written after the text of both libraries: flash_attn/flash_attn_interface.py (causal and window end bottom right) and
xformers/ops/fmha (LowerTriangularMask starts top left), with one product, one softmax and one product each.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from npuport.findings import Claim, Input
from npuport.rules.fusable.attention_calls import FAR, Causal
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.renaming import ROUNDINGS, FreeNameError, Inputs, renamed

_ATTEND = """def attend(q, k, v):
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    scores = q @ k.transpose(-2, -1) * ({scale}){bias}
    ahead = torch.arange(k.shape[-2], device=q.device) - torch.arange(q.shape[-2], device=q.device)[:, None]
    ahead = ahead - ({offset})
    return torch.softmax(scores.masked_fill({hidden}, float("-inf")), dim=-1) @ v
"""
_BY_LAYOUT = {
    "dense": "return attend(*(t.transpose(1, 2) for t in ({tensors},))).transpose(1, 2)",
    "one head": "return attend(*(t.unsqueeze(1) for t in ({tensors},))).squeeze(1)",
    "tokens": """q, k, v = ({tensors},)
starts, others = {starts}.tolist(), {others}.tolist()
parts = [
    attend(*(t.transpose(0, 1)[None] for t in (q[a:b], k[c:d], v[c:d])))[0].transpose(0, 1)
    for a, b, c, d in zip(starts, starts[1:], others, others[1:])
]
return torch.cat(parts)""",
}
_BY_LAYOUT["tokens of one batch"] = (
    _BY_LAYOUT["tokens"]
    .replace("({tensors},)", "(t.squeeze(0) for t in ({tensors},))")
    .replace("torch.cat(parts)", "torch.cat(parts)[None]")
)
_BOTTOM_RIGHT = 3


@dataclass(frozen=True)
class Reference:
    """A call of a library: which of ``_BY_LAYOUT`` its tensors have, and what it hides, adds and scales with.

    ``tensors`` is the source of query, key and value, ``starts`` and ``others`` where the sequences of queries and keys
    begin, with the end.
    """

    layout: str
    tensors: str
    scale: str | None = None
    bias: str | None = None
    causal: Causal | None = None
    window: tuple[str, str] | None = None
    starts: str = ""
    others: str = ""

    def body(self) -> str:
        """The body of a function."""
        default = "q.shape[-1] ** -0.5"
        hidden = "torch.zeros_like(ahead, dtype=torch.bool)"
        if self.window is not None:
            sides = zip(("ahead < -{}", "ahead > {}"), self.window, strict=True)
            hidden = " | ".join(f"({test.format(side)})" for test, side in sides if side != FAR) or hidden
        elif self.causal is not None:
            hidden = "ahead > 0" if self.causal.condition is None else f"(ahead > 0) & {self.causal.condition}"
        anchored = self.window is not None or (self.causal is not None and self.causal.mode == _BOTTOM_RIGHT)
        attend = _ATTEND.format(
            scale=default if self.scale is None else f"{default} if {self.scale} is None else {self.scale}",
            bias="" if self.bias is None else f" + {self.bias}",
            offset="k.shape[-2] - q.shape[-2]" if anchored else "0",
            hidden=hidden,
        )
        rest = _BY_LAYOUT[self.layout].format(tensors=self.tensors, starts=self.starts, others=self.others)
        return attend + rest


def claim_against(
    reference: Reference, call: str, inputs: Inputs, cases: tuple[str, ...], name_of: Callable[[ast.expr], str | None]
) -> Claim:
    """The call that is put in, in the names of ``inputs``, against the library's.

    Raises:
        Unfit: when the call takes what is no input.
    """
    try:
        after = renamed(ast.parse(call, mode="eval").body, inputs.roles, name_of)
    except FreeNameError as left:
        raise Unfit(f"what {left} is, is not seen, so that the call cannot be tried") from left
    described = tuple(Input(name, value) for name, value in inputs.values.items())
    return Claim(described, reference.body(), f"return {after}", cases, ROUNDINGS)
