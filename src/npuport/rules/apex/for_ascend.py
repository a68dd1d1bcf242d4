"""Code that keeps ``apex``, for Apex for Ascend: its fused optimizers, and gradients in one tensor.

Source: Ascend/apex, README and patch. NVIDIA's fused optimizers are gone there, since their kernels are; the new ones
have other names and defaults. Norms and parallel layers need kernels too, and become torch's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from npuport.findings import Edit
from npuport.rules.apex.classes import Blocked, Counterpart, argument_edits, counterpart_of
from npuport.rules.apex.mentions import Mention
from npuport.rules.apex.places import values_of
from npuport.rules.base import Context

_HOME = "apex.optimizers."
_NAMES = {
    "torch.optim.AdamW": "NpuFusedAdamW",
    "torch.optim.Adam": "NpuFusedAdam",
    "torch.optim.SGD": "NpuFusedSGD",
}  # the same algorithms, under torch's names


def stays(mention: Mention) -> bool:
    """Whether a mention keeps its import: apex.amp, and optimizers, which are renamed."""
    return f"{mention.name}.".startswith(("apex.amp.", _HOME))


def initialize_edits(mentions: Sequence[Mention], context: Context) -> Iterator[Edit]:
    """``combine_grad=True`` for ``amp.initialize`` at O1 or O2: one tensor for all gradients of a dtype."""
    for mention in mentions:
        call = mention.call
        if mention.name != "apex.amp.initialize" or call is None:
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        level = values_of(given["opt_level"], context) if "opt_level" in given else {"O1"}
        last = [*call.args, *(keyword.value for keyword in call.keywords)]
        if None in given or "combine_grad" in given or not level or not level <= {"O1", "O2"} or not last:
            continue
        end = max(context.module.lines.span(part)[1] for part in last)
        yield Edit(end, end, ", combine_grad=True")


def optimizer_edits(mentions: Sequence[Mention], context: Context) -> Iterator[Edit]:
    """The optimizers of one import, renamed there and where they are used.

    Raises:
        Blocked: one of them has no counterpart, or is used in a way that hides its arguments.
    """
    imported = mentions[0].imported
    named: set[str] = set()
    for mention in mentions:
        found, call = _counterpart(mention, context), mention.call
        if call is None:
            raise Blocked("it is handed on, and Apex for Ascend has other arguments")
        named.add(found.name)
        if isinstance(mention.node, ast.Attribute):
            end = context.module.lines.span(mention.node)[1]
            yield Edit(end - len(mention.node.attr), end, found.name)
        elif imported.asname is None:
            yield Edit(*context.module.lines.span(mention.node), found.name)
        yield from argument_edits(call, found, context)
    if isinstance(mentions[0].node, ast.Name):
        if imported.asname is not None and len(named) > 1:
            raise Blocked("its name stands for two optimizers of Apex for Ascend")
        start = context.module.lines.span(imported)[0]
        yield Edit(start, start + len(imported.name), ", ".join(sorted(named)))


def _counterpart(mention: Mention, context: Context) -> Counterpart:
    found = counterpart_of(mention, context)
    if found.name not in _NAMES:
        raise Blocked("Apex for Ascend has no optimizer with these numbers")
    return Counterpart(_NAMES[found.name], found.parameters, found.dropped, found.added)
