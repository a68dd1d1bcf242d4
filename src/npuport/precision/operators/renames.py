"""Which module of the candidate is which of the reference, where their paths differ.

Two programs name the same module differently: a fork says ``self_attn`` for ``attn``, a wrapper puts a level above.
What the modules do, in which order, is the same: their forward calls are matched without regard to names, and each
module goes to the one with which most of its calls are matched.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from npuport.precision.operators.calls import Call
from npuport.precision.operators.matching import matches

# What wrappers put before a module's path: DistributedDataParallel, torch.compile, FSDP, checkpointing.
_WRAPPERS = re.compile(r"(?:^|(?<=\.))(?:module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)(?:\.|$)")
_MOST = 0.5  # of a module's calls that must be matched with one other module


@dataclass(frozen=True)
class Rename:
    """A part of paths that is called otherwise in the candidate, in ``modules`` modules."""

    reference: str
    candidate: str
    modules: int


def plain_path(module: str) -> str:
    """A module's path without what wrappers add."""
    return _WRAPPERS.sub("", module).rstrip(".")


def renamed(path: str, renames: Mapping[str, str]) -> str:
    """A path of the candidate as the reference has it: ``renames`` gives parts of paths (such as "attn",
    "model.layers") by what the candidate calls them; an empty part is a level that only one of the two has."""
    for candidate, reference in renames.items():
        if not candidate:
            path = f"{reference}.{path}" if path else reference
            continue
        parts = path.split(".")
        old, size = candidate.split("."), candidate.count(".") + 1
        at = next((at for at in range(len(parts)) if parts[at : at + size] == old), None)
        if at is not None:
            path = ".".join([*parts[:at], *filter(None, [reference]), *parts[at + size :]])
    return path


def same_modules(reference: Sequence[Call], candidate: Sequence[Call], given: Mapping[str, str]) -> dict[str, str]:
    """The reference's path for each path of the candidate that the reference does not have. ``given``: plain paths of
    the
    candidate's modules, with what the user said of them."""
    paths = {plain_path(call.module) for call in reference}, set(given.values())
    only = paths[0] - paths[1], paths[1] - paths[0]
    if not only[0] or not only[1]:
        return {}
    both = paths[0] & paths[1]
    forward = [[call for call in calls if call.phase == "forward"] for calls in (reference, candidate)]
    own = [plain_path(call.module) for call in forward[0]], [given[call.module] for call in forward[1]]
    keys = [
        [_key(call, path, both) for call, path in zip(*side, strict=True)] for side in zip(forward, own, strict=True)
    ]
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for a, b in matches(*keys):
        votes[own[1][b]][own[0][a]] += 1
    calls_of = Counter(own[1])
    found: dict[str, str] = {}
    taken: set[str] = set()
    for path in sorted(only[1] & votes.keys(), key=lambda one: (-max(votes[one].values()), one)):
        other, number = votes[path].most_common(1)[0]
        if other in only[0] and other not in taken and number > _MOST * calls_of[path]:
            found[path] = other
            taken.add(other)
    return found


def summary(same: Mapping[str, str]) -> list[Rename]:
    """What the renames have in common, the most frequent first: "layers.0.attn" for "layers.0.self_attn" is "attn" for
    "self_attn"."""
    parts = Counter(_difference(reference, candidate) for candidate, reference in same.items())
    return [Rename(reference, candidate, number) for (reference, candidate), number in parts.most_common()]


def _difference(reference: str, candidate: str) -> tuple[str, str]:
    """The parts of two paths between what they have in common."""
    a, b = reference.split("."), candidate.split(".")
    while len(a) > 0 and len(b) > 0 and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    while len(a) > 0 and len(b) > 0 and a[0] == b[0]:
        a, b = a[1:], b[1:]
    return ".".join(a), ".".join(b)


def _key(call: Call, path: str, both: Container[str]) -> tuple[str, str, int]:
    outputs = call.outputs
    return (path if path in both else "?"), call.operator.rpartition(".")[0], len(outputs[0].shape) if outputs else -1
