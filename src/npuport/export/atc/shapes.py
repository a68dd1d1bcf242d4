"""Shapes and profiles as ATC's options write them."""

from __future__ import annotations

import re

from npuport.export.atc.problems import NotUnderstoodError
from npuport.findings import say

Axis = int | tuple[int, int]
"""A size, -1 for one that is not fixed, or the bounds of one."""

_AXIS = re.compile(r"-?\d+")
_RANGE = re.compile(r"(\d+)~(-1|\d+)")


def parse_shapes(text: str) -> dict[str, tuple[Axis, ...]]:
    """The shapes of ``--input_shape`` by the input's name; () is a scalar. Without names they are "0", "1", …

    Raises:
        NotUnderstoodError: the text has another form.
    """
    shapes: dict[str, tuple[Axis, ...]] = {}
    for position, one in enumerate(part for part in text.split(";") if part.strip()):
        name, colon, sizes = one.strip().rpartition(":")
        if not colon and "~" not in text and "-1" not in text:
            raise NotUnderstoodError(
                "E10002",
                say("--input_shape: {part} has no name: an input is written NAME:SIZE,SIZE.", part=one.strip()),
            )
        name = name.strip() or str(position)
        if name in shapes:
            raise NotUnderstoodError("E10002", say("--input_shape names {name} twice.", name=name))
        shapes[name] = (
            tuple(_axis(size.strip(), one) for size in sizes.strip(" []").split(",")) if sizes.strip() else ()
        )
    return shapes


def _axis(text: str, whole: str) -> Axis:
    bounds = _RANGE.fullmatch(text)
    if bounds is not None:
        low, high = int(bounds[1]), int(bounds[2])
        if high != -1 and low > high:
            raise NotUnderstoodError("E10002", say("--input_shape: the range {range} is empty.", range=text))
        return low, high
    if not _AXIS.fullmatch(text):
        raise NotUnderstoodError(
            "E10002",
            say(
                "--input_shape: {size} in {part} is no size: write 3, -1 or 1~8, separated by commas.",
                size=repr(text),
                part=whole.strip(),
            ),
        )
    size = int(text)
    if size < -1 or size == 0:
        raise NotUnderstoodError(
            "E10011", say("--input_shape: {size} in {part} is no size of an axis.", size=size, part=whole.strip())
        )
    return size


def dynamic_axes(shape: tuple[Axis, ...]) -> list[int]:
    """The positions of -1."""
    return [index for index, axis in enumerate(shape) if axis == -1]


def has_range(shape: tuple[Axis, ...]) -> bool:
    """Whether the size of an axis is given by its bounds."""
    return any(isinstance(axis, tuple) for axis in shape)


def parse_profiles(option: str, text: str) -> list[tuple[int, ...]]:
    """The profiles of ``--dynamic_batch_size`` (one number each), ``--dynamic_image_size`` or ``--dynamic_dims``.

    Raises:
        NotUnderstoodError: the text has another form.
    """
    text = text.strip()
    parts = text.rstrip(",").split(",") if option == "dynamic_batch_size" else text.rstrip(";").split(";")
    profiles = []
    for part in parts:
        sizes = [size.strip() for size in part.split(",")]
        if not all(re.fullmatch(r"\d+", size) for size in sizes):
            raise NotUnderstoodError(
                "E10003",
                say(
                    "--{option}: {part} is no profile. Write {example}.",
                    option=option,
                    part=repr(part.strip()),
                    example={
                        "dynamic_batch_size": '"1,2,4,8"',
                        "dynamic_image_size": '"416,416;832,832"',
                        "dynamic_dims": '"16,128;32,128"',
                    }[option],
                ),
            )
        profiles.append(tuple(int(size) for size in sizes))
    return profiles
