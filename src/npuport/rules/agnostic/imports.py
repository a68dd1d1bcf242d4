"""Imports from ``torch.cuda.amp`` for the target "agnostic": they come from ``torch.amp``, with all that uses them."""

from __future__ import annotations

import ast

from npuport.findings import Edit
from npuport.rules.agnostic.amp import counterpart, use_edits
from npuport.rules.base import Context
from npuport.rules.grad_scaler import handed_on, only_asks
from npuport.rules.import_split import Target, retarget


def import_edits(node: ast.ImportFrom, context: Context) -> list[Edit] | None:
    """The edits of the import and of every mention of its names, right together only; [] where no name moves."""
    targets, edits = [], []
    for alias in node.names:
        name, local = f"{node.module}.{alias.name}", alias.asname or alias.name
        if counterpart(name, context) is None:
            targets.append(Target(node.module or "", context.module.segment(alias)))
            continue
        targets.append(Target("torch.amp", context.module.segment(alias)))
        mentions = _edits_of_mentions(local, name, context)
        if mentions is None:
            return None
        edits += mentions
    if not any(target.module == "torch.amp" for target in targets):
        return []
    moved = retarget(node, targets, context)
    return [*moved, *edits] if moved is not None else None


def _edits_of_mentions(local: str, name: str, context: Context) -> list[Edit] | None:
    edits: list[Edit] = []
    mentions = context.module.uses(local)
    for node in mentions:
        if context.name_of(node) != name:
            return None  # another import may bind it too
        found = [] if only_asks(node, context) else use_edits(node, name, context)
        if found is None:
            return None
        edits += found
    in_module = bool(context.module.scope.bindings.get(local))
    return None if in_module and handed_on(local, context, used=bool(mentions)) else edits
