"""npu_rotary_mul in the place of a rotary embedding in steps."""

from __future__ import annotations

from collections.abc import Sequence

from npuport.findings import Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import Match, cast_back
from npuport.rules.fusable.rewriting import Call, Write, replacement
from npuport.rules.fusable.values import Value, same

# (batch, heads, sequence, width), (batch, sequence, heads, width) and (tokens, heads, width); the factors' width is W.
_SHAPES = (
    ("X=(2, 3, 5, 8)", "C=(2, 1, 5, {width})", 8),
    ("X=(1, 7, 2, 16)", "C=(1, 7, 1, {width})", 16),
    ("X=(7, 1, 6)", "C=(7, 1, {width})", 6),
)


def rotary_fix(matches: Sequence[Match], flow: Flow, context: Context) -> Fix:
    """One fix for all tensors that a function turns.

    Raises:
        Unfit: one of them is not turned by a cosine and a sine, or the code cannot be cut out.
    """
    if any("freqs" in match.roles for match in matches):
        raise Unfit("its factors are complex numbers, and the operator takes a cosine and a sine")
    inputs: dict[int, tuple[Input, Value]] = {}
    results = []
    subjects = [match.roles["input"] for match in matches]
    for match in matches:
        parts = (("x", "X", _subject(match)), ("cos", "C", match.roles["cos"]), ("sin", "C", match.roles["sin"]))
        for name, size, value in parts:
            inputs.setdefault(id(value), (Input(f"{name}{len(inputs)}", f"tensor(*{size})"), value))
        results.append((_whole(match, subjects), _call(match)))
    by_halves = any(_takes_parts(match) for match in matches)
    if by_halves and not all(_takes_parts(match) for match in matches):
        raise Unfit("its tensors are turned in different ways")
    cases = tuple(f"{x}, {c.format(width=width // 2 if by_halves else width)}" for x, c, width in _SHAPES)
    return replacement(results, list(inputs.values()), cases, flow, context, when=_when(matches))


def _when(matches: Sequence[Match]) -> Call | None:
    """What the factors must be, where the function does not show it.

    They have the dimensions of the tensor; for pairs only one of these but the last is no 1 (op-plugin's documents).
    """

    def condition(write: Write) -> str:
        cos, x = write(matches[0].roles["cos"]), write(_subject(matches[0]))
        parts = [] if shown else [f"{cos}.dim() == {x}.dim()"]
        if pairs:
            parts.append(f"sum(size > 1 for size in {cos}.shape[:-1]) <= 1")
        return " and ".join(parts)

    shown = all(match.roles["cos"].op == "layout" for match in matches)
    pairs = any(match.roles["mode"].detail == "interleave" for match in matches)
    return condition if pairs or not shown else None


def _takes_parts(match: Match) -> bool:
    """Whether the parts of the tensor are turned one by one: the factors are half as wide then."""
    return match.anchor.op == "sub"


def _subject(match: Match) -> Value:
    """What is turned, as it lies in memory when it is: only casts around it go."""
    if _takes_parts(match):
        return match.roles["input"]
    value = next(one for one in match.steps[0].inputs if same(one, match.roles["input"]))
    while value.op in {"cast", "copy"}:
        value = value.first
    return value


def _whole(match: Match, subjects: Sequence[Value]) -> Value:
    """The turned tensor: what both turned parts become, or the sum."""
    if not _takes_parts(match):
        return cast_back(match.result, *subjects)
    joined = next((use for use in match.result.uses if use.op in {"cat", "stack"} and match.anchor in use.inputs), None)
    if joined is None:
        raise Unfit("its two turned parts go different ways")
    if joined.op == "stack":
        flat = [use for use in joined.uses if use.op == "layout"]
        if len(joined.uses) != 1 or not flat:
            raise Unfit("its two turned parts stay apart")
        joined = flat[0]
    return cast_back(joined, *subjects)


def _call(match: Match) -> Call:
    roles, mode, subject = match.roles, str(match.roles["mode"].detail), _subject(match)

    def call(write: Write) -> str:
        cos, sin = write(roles["cos"]), write(roles["sin"])
        if _takes_parts(match):
            cos, sin = (_widened(text, mode) for text in (cos, sin))
        return f'torch_npu.npu_rotary_mul({write(subject)}, {cos}, {sin}, "{mode}")'

    return call


def _widened(text: str, mode: str) -> str:
    return f"torch.cat(({text}, {text}), dim=-1)" if mode == "half" else f"{text}.repeat_interleave(2, dim=-1)"
