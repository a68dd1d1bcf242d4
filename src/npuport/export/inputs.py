"""The inputs of a model as a user writes them, and the sizes that are tried for their dynamic axes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npuport.errors import UserError

DTYPES = ("float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")

_SPEC = re.compile(
    r"(?P<name>[^=\s]+)=(?P<dtype>\w+)\[(?P<axes>[^\]]*)\]"
    r"(?::(?P<low>-?\d+(?:\.\d+)?)\.\.(?P<high>-?\d+(?:\.\d+)?))?"
)
_AXIS = re.compile(r"\d+|[A-Za-z_]\w*(?:\+(?:\d+|[A-Za-z_]\w*))*")
_SIZE = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<sizes>\d+(?:,\d+)*)")

# Each name gets sizes of its own, so that no two axes are equal by accident; 1 is what exporters get wrong most often.
_SIZES_BY_DEFAULT = ((2, 4, 1), (3, 5, 1), (7, 6, 1), (11, 9, 1), (13, 8, 1), (17, 10, 1), (19, 12, 1), (23, 14, 1))


@dataclass(frozen=True)
class Input:
    """One input: ``axes`` are sizes ("3"), names of dynamic sizes ("batch") or sums of them ("past+sequence").

    ``low`` and ``high`` bound the sampled values, both included.
    """

    name: str
    dtype: str
    axes: tuple[str, ...]
    low: float | None = None
    high: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the axes, in order, each once."""
        words = (word for axis in self.axes for word in axis.split("+") if not word.isdigit())
        return tuple(dict.fromkeys(words))

    def dynamic_axes(self) -> dict[int, str]:
        """The name of each axis whose size is not fixed; of a sum, "past_plus_sequence"."""
        return {index: axis.replace("+", "_plus_") for index, axis in enumerate(self.axes) if not axis.isdigit()}

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape under these sizes of the names."""
        return tuple(
            sum(int(word) if word.isdigit() else sizes[word] for word in axis.split("+")) for axis in self.axes
        )

    def __str__(self) -> str:
        return f"{self.name}={self.dtype}[{','.join(self.axes)}]"


def parse_input(text: str) -> Input:
    """An input such as ``ids=int64[batch,sequence]:0..999``.

    Raises:
        UserError: the text is none.
    """
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise UserError(
            "--input {text} is not understood. Write NAME=DTYPE[AXES], such as image=float32[batch,3,224,224] or "
            "ids=int64[batch,sequence]:0..999.",
            text=text,
        )
    if match["dtype"] not in DTYPES:
        raise UserError(
            "--input {text}: {dtype} is no dtype that is exported. Known are {known}.",
            text=text,
            dtype=match["dtype"],
            known=", ".join(DTYPES),
        )
    axes = tuple(axis.strip() for axis in match["axes"].split(",")) if match["axes"].strip() else ()
    wrong = next((axis for axis in axes if not _AXIS.fullmatch(axis)), None)
    if wrong is not None:
        raise UserError(
            "--input {text}: {axis} is no axis. An axis is a size (3), a name (batch) or a sum (past+sequence).",
            text=text,
            axis=repr(wrong),
        )
    low, high = (float(match[bound]) if match[bound] else None for bound in ("low", "high"))
    if low is not None and high is not None and low > high:
        raise UserError("--input {text}: the values go from the smaller to the larger.", text=text)
    return Input(match["name"], match["dtype"], axes, low, high)


def parse_inputs(texts: Sequence[str]) -> tuple[Input, ...]:
    """All inputs, in order.

    Raises:
        UserError: one is not understood, none is given, or two have one name.
    """
    inputs = tuple(parse_input(text) for text in texts)
    if not inputs:
        raise UserError("give each input of the model, such as --input image=float32[batch,3,224,224].")
    names = [one.name for one in inputs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError("--input names {name} twice.", name=twice)
    return inputs


def parse_sizes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Sizes to try by name, from texts such as ``height=224,320``.

    Raises:
        UserError: a text is not understood.
    """
    sizes = {}
    for text in texts:
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            raise UserError("--size {text} is not understood. Write NAME=SIZE,SIZE such as height=224,320.", text=text)
        sizes[match["name"]] = tuple(int(size) for size in match["sizes"].split(","))
    return sizes


def trials(inputs: Sequence[Input], given: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, int], ...]:
    """The sizes of all names to export with (the first) and to compare with (all); one empty trial without names.

    Raises:
        UserError: a size is given for a name that no input has.
    """
    names = tuple(dict.fromkeys(name for one in inputs for name in one.names))
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        raise UserError(
            "--size {name}: no input has an axis of this name. Known are: {known}.",
            name=unknown,
            known=", ".join(names) or "-",
        )
    sizes = {
        name: given.get(name) or _SIZES_BY_DEFAULT[index % len(_SIZES_BY_DEFAULT)] for index, name in enumerate(names)
    }
    number = max((len(values) for values in sizes.values()), default=1)
    tried = ({name: values[index % len(values)] for name, values in sizes.items()} for index in range(number))
    return tuple(dict(pairs) for pairs in dict.fromkeys(tuple(one.items()) for one in tried))
