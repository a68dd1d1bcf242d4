"""Checks of shapes, and of the profiles for sizes that are not fixed."""

from __future__ import annotations

from collections.abc import Iterator

from npuport import facts
from npuport.export.atc.command import AtcCommand
from npuport.export.atc.options import family_of
from npuport.export.atc.problems import NotUnderstoodError, Problem, advised, doubtful, refused
from npuport.export.atc.shapes import Axis, dynamic_axes, has_range, parse_profiles, parse_shapes
from npuport.findings import Basis, say

PROFILES = ("dynamic_batch_size", "dynamic_image_size", "dynamic_dims")
Shapes = dict[str, tuple[Axis, ...]]

_DIMS_FROM = Basis("CANN ge, CLI_options/--dynamic_dims.md, option_utils.cc", "documented", "August 2026")
_RANGES_FROM = Basis("CANN ge, CLI_options/--input_shape.md", "documented", "August 2026")


def _errors(code: str) -> Basis:
    return Basis(f"CANN ge, error_codes/{code}", "documented", "August 2026")


def check_shapes(command: AtcCommand) -> Iterator[Problem]:
    """The shapes and profiles, as far as the command says them."""
    given = command.get("input_shape")
    try:
        shapes = parse_shapes(given)
    except NotUnderstoodError as error:
        yield refused(error.code, _errors(error.code), error.sentence)
        return
    option = next((name for name in PROFILES if command.has(name)), None)
    if option is None:
        yield from _free(command, shapes)
        return
    try:
        profiles = parse_profiles(option, command.get(option)) if command.get(option) else []
    except NotUnderstoodError as error:
        yield refused(error.code, _errors(error.code), error.sentence)
        return
    if profiles:
        yield from _profiles(command, option, profiles)
    if not given:
        return
    if "~" in given:
        yield refused(
            "E10040",
            _errors("E10040"),
            say("--{option}: --input_shape has -1 where sizes vary, no range.", option=option),
        )
        return
    if option == "dynamic_batch_size":
        yield from _batch(shapes)
    elif option == "dynamic_image_size":
        yield from _image(command, shapes)
    else:
        yield from _dims(shapes, profiles)


def _free(command: AtcCommand, shapes: Shapes) -> Iterator[Problem]:
    """Sizes that vary freely, or within bounds."""
    free = [name for name, shape in shapes.items() if has_range(shape) or dynamic_axes(shape)]
    if free and family_of(command) == "310B":
        yield refused(
            "",
            _RANGES_FROM,
            say(
                "{inputs}: {chip} takes no sizes that vary freely. Give profiles, such as --dynamic_dims.",
                inputs=", ".join(free),
                chip=command.get("soc_version"),
            ),
        )


def _profiles(command: AtcCommand, option: str, profiles: list[tuple[int, ...]]) -> Iterator[Problem]:
    limit = facts.atc_limit("profiles", family_of(command) or "910")
    number = len(profiles)
    if number < limit.low:
        yield refused("E10035", limit.basis, say("--{option} needs at least two profiles.", option=option))
    highest = limit.high if family_of(command) else facts.atc_limit("profiles", "950").high
    if number > highest:
        yield refused(
            "E10036",
            limit.basis,
            say("--{option} has {number} profiles; the most are {most}.", option=option, number=number, most=highest),
        )
    if len({len(profile) for profile in profiles}) > 1:
        yield refused(
            "E10037", _errors("E10037"), say("--{option}: the profiles have different numbers of sizes.", option=option)
        )
    twice = next((profile for profile in profiles if profiles.count(profile) > 1), None)
    if twice is not None:
        yield refused(
            "E10039",
            _errors("E10039"),
            say("--{option} has the profile {profile} twice.", option=option, profile=",".join(map(str, twice))),
        )
    if option == "dynamic_image_size" and any(len(profile) != 2 for profile in profiles):
        yield refused(
            "E10020",
            _errors("E10020"),
            say("--dynamic_image_size: a profile is a height and a width, such as 416,416."),
        )
    if option == "dynamic_batch_size":
        batch = facts.atc_limit("batch advised")
        for (size,) in (profile for profile in profiles if not batch.low <= profile[0] <= batch.high):
            yield advised(
                batch.basis,
                say(
                    "--dynamic_batch_size: {size} is outside of {low} to {high}.",
                    size=size,
                    low=batch.low,
                    high=batch.high,
                ),
            )
    few = facts.atc_limit("profiles of dims advised")
    if option == "dynamic_dims" and limit.low <= number <= highest and number > 2 * few.high:
        yield advised(few.basis, say("--dynamic_dims has {number} profiles: documents advise 3 or 4.", number=number))


def _batch(shapes: Shapes) -> Iterator[Problem]:
    for name, shape in shapes.items():
        if not shape:
            continue
        wrong = [index for index in dynamic_axes(shape) if index > 0]
        if wrong:
            yield refused(
                "E10018",
                _errors("E10018"),
                say(
                    "--dynamic_batch_size: only the first size of {input} may be -1 (else --dynamic_dims).", input=name
                ),
            )
    if not any(dynamic_axes(shape)[:1] == [0] for shape in shapes.values()):
        yield refused(
            "E10031",
            _errors("E10031"),
            say("--dynamic_batch_size: no input in --input_shape has -1 as its first size."),
        )


def _image(command: AtcCommand, shapes: Shapes) -> Iterator[Problem]:
    by_default = "NHWC" if command.get("framework") == "3" else "NCHW"
    height = 1 if command.get("input_format", by_default) == "NHWC" else 2
    varying = {name: dynamic_axes(shape) for name, shape in shapes.items() if dynamic_axes(shape)}
    wrong = [name for name, axes in varying.items() if len(shapes[name]) != 4 or axes != [height, height + 1]]
    if wrong or not varying:
        yield refused(
            "E10019",
            _errors("E10019"),
            say(
                "--dynamic_image_size: in --input_shape the height and width of an input with four sizes are -1, and "
                "nothing else{wrong}.",
                wrong=f" ({', '.join(wrong)})" if wrong else "",
            ),
        )


def _dims(shapes: Shapes, profiles: list[tuple[int, ...]]) -> Iterator[Problem]:
    number = sum(len(dynamic_axes(shape)) for shape in shapes.values())
    if not number:
        yield refused("E10001", _DIMS_FROM, say("--dynamic_dims: --input_shape has no -1."))
    elif any(len(profile) != number for profile in profiles):
        sizes = next(len(profile) for profile in profiles if len(profile) != number)
        yield refused(
            "E10003",
            _DIMS_FROM,
            say(
                "--dynamic_dims: a profile has {sizes} sizes, and --input_shape has {number} axes of -1.",
                sizes=sizes,
                number=number,
            ),
        )


def check_ranges_with_aipp(command: AtcCommand, *, static: bool, basis: Basis | None) -> Iterator[Problem]:
    """AIPP with constant parameters, and an input whose sizes vary freely: not for a model with one input."""
    try:
        shapes = parse_shapes(command.get("input_shape"))
    except NotUnderstoodError:
        return
    varies = any(has_range(shape) or dynamic_axes(shape) for shape in shapes.values())
    if static and varies and not any(command.has(name) for name in PROFILES):
        if len(shapes) == 1:
            yield refused("", basis, say("static AIPP is not supported for the only input when its sizes vary freely."))
        else:
            yield doubtful(basis, say("static AIPP and sizes that vary freely must be of different inputs."))
