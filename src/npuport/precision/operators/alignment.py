"""Which call of one run is which call of the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from npuport.precision.operators.calls import Call

# What wrappers put before a module's path: DistributedDataParallel, torch.compile, FSDP.
_WRAPPERS = re.compile(r"(?:^|(?<=\.))(?:module|_orig_mod|_fsdp_wrapped_module)\.")


@dataclass(frozen=True)
class Difference:
    """Calls that one run has and the other has not, at one place; either may be empty."""

    reference: tuple[Call, ...]
    candidate: tuple[Call, ...]


@dataclass(frozen=True)
class Alignment:
    pairs: tuple[tuple[Call, Call], ...]
    differences: tuple[Difference, ...]


def align(reference: Sequence[Call], candidate: Sequence[Call]) -> Alignment:
    """Match calls in order by module, phase and operator. Where a stretch has the same modules and phases but other
    operators, or none, it is a difference."""
    keys = [_key(call) for call in reference], [_key(call) for call in candidate]
    pairs: list[tuple[Call, Call]] = []
    differences: list[Difference] = []
    for what, a, b, c, d in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if what == "equal":
            pairs += zip(reference[a:b], candidate[c:d], strict=True)
        else:
            differences.append(Difference(tuple(reference[a:b]), tuple(candidate[c:d])))
    return Alignment(tuple(pairs), tuple(differences))


def _key(call: Call) -> tuple[str, str, str]:
    return plain_path(call.module), call.phase, call.operator.rpartition(".")[0]


def plain_path(module: str) -> str:
    """A module's path without what wrappers add."""
    return _WRAPPERS.sub("", module)


def scalars(call: Call) -> Iterator[tuple[str, object]]:
    """The arguments of a call, named by position or keyword; of a tensor only that it is one."""
    yield from _scalars("", call.arguments)
    for name, value in call.keywords.items():
        yield from _scalars(name, value)


def _scalars(name: str, value: object) -> Iterator[tuple[str, object]]:
    from npuport.precision.operators.calls import TensorRef

    if isinstance(value, TensorRef):
        yield name, "a tensor"
        return
    if isinstance(value, tuple) and value and value[0] in ("device", "layout", "object"):
        return  # where and how, not what
    if isinstance(value, list | tuple) and not (value and value[0] == "dtype"):
        for position, one in enumerate(value):
            yield from _scalars(f"{name}.{position}" if name else str(position), one)
    else:
        yield name, value
