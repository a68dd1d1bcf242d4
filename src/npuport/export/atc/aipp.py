"""AIPP configurations (``--insert_op_conf``): images become the model's input on the NPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npuport import facts
from npuport.export.atc.problems import NotUnderstoodError, Problem, doubtful, refused
from npuport.findings import Basis, say

_TEMPLATE = Basis("CANN ge, AIPP/config_file_template.md", "documented", "August 2026")


@dataclass(frozen=True)
class Aipp:
    """One ``aipp_op``: the texts of its fields; of a field that is repeated, all."""

    fields: Mapping[str, tuple[str, ...]]

    def text(self, name: str, default: str = "") -> str:
        return self.fields.get(name, (default,))[-1]

    def number(self, name: str) -> int:
        """A whole number; 0, the documented default, where it is not there or is none."""
        try:
            return int(self.text(name, "0"))
        except ValueError:
            return 0

    def on(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "1")

    @property
    def static(self) -> bool:
        return self.text("aipp_mode") == "static"

    @property
    def input(self) -> int:
        """The position of the model's input that it feeds."""
        return self.number("related_input_rank")


def parse_aipp(text: str) -> tuple[Aipp, ...]:
    """The ``aipp_op`` blocks of a configuration in protobuf's text format.

    Raises:
        NotUnderstoodError: the text is no such configuration.
    """
    bare = re.sub(r"#[^\n]*", "", text)
    tokens = re.findall(r'"[^"\n]*"|[{}:;,]|[^\s{}:;,"]+', bare)
    blocks: list[Aipp] = []
    position = 0
    while position < len(tokens):
        name = tokens[position]
        position += 1
        if tokens[position : position + 1] == [":"]:
            position += 1
        if tokens[position : position + 1] != ["{"]:
            raise NotUnderstoodError(
                "", say("the AIPP configuration has {word} where aipp_op {{ … }} is expected.", word=repr(name))
            )
        end = next((index for index in range(position, len(tokens)) if tokens[index] == "}"), None)
        if end is None:
            raise NotUnderstoodError("", say("the AIPP configuration lacks a closing brace."))
        if name != "aipp_op":
            raise NotUnderstoodError(
                "", say("the AIPP configuration has {word} where aipp_op {{ … }} is expected.", word=repr(name))
            )
        blocks.append(Aipp(_fields(tokens[position + 1 : end])))
        position = end + 1
    if not blocks:
        raise NotUnderstoodError("", say("the AIPP configuration has no aipp_op."))
    return tuple(blocks)


def _fields(tokens: Sequence[str]) -> dict[str, tuple[str, ...]]:
    fields: dict[str, tuple[str, ...]] = {}
    rest = [token for token in tokens if token not in (",", ";")]
    for start in range(0, len(rest), 3):
        name, *value = rest[start : start + 3]
        if len(value) != 2 or value[0] != ":":
            raise NotUnderstoodError(
                "", say("the AIPP configuration: behind {name} a colon and a value are expected.", name=name)
            )
        fields[name] = (*fields.get(name, ()), value[1].strip('"'))
    return fields


def check_aipp(
    text: str, *, image_sizes_vary: bool, family: str | None, images: Sequence[tuple[int, ...]]
) -> Iterator[Problem]:
    """A configuration, for a command with ``--dynamic_image_size`` or not.

    ``images`` are shapes (N, C, H, W) of the model's inputs; empty where they are not known.
    """
    try:
        blocks = parse_aipp(text)
    except NotUnderstoodError as error:
        yield refused(error.code, _TEMPLATE, error.sentence)
        return
    for block in blocks:
        yield from _known_fields(block)
        if block.static:
            yield from _static(block, image_sizes_vary=image_sizes_vary)
            yield from _result(block, family, images)
        elif block.text("aipp_mode") == "dynamic" and not block.number("max_src_image_size"):
            yield refused("", _TEMPLATE, say("AIPP: dynamic mode needs max_src_image_size."))


def _known_fields(block: Aipp) -> Iterator[Problem]:
    known = facts.all_aipp_fields()
    if not block.text("aipp_mode"):
        yield refused("", _TEMPLATE, say("AIPP: {field} is missing.", field="aipp_mode"))
    for name, values in block.fields.items():
        field = known.get(name)
        if field is None:
            yield refused("", _TEMPLATE, say("AIPP has no field {field}.", field=name))
            continue
        for value in values:
            yield from _value(field, value)
        if field.mode and block.text("aipp_mode") in ("static", "dynamic") and field.mode != block.text("aipp_mode"):
            yield doubtful(
                field.basis,
                say("AIPP: {field} has no effect in {mode} mode.", field=name, mode=block.text("aipp_mode")),
            )
        if field.reserved and values[-1].lower() not in ("false", "0", "0.0"):
            yield doubtful(field.basis, say("AIPP: {field} is reserved: it has no effect.", field=name))


def _value(field: facts.AippField, value: str) -> Iterator[Problem]:
    expected = ""
    if field.kind == "switch" and value.lower() not in ("true", "false", "0", "1"):
        expected = "true, false"
    elif field.kind == "word" and value not in field.words:
        expected = ", ".join(field.words)
    elif field.kind in ("integer", "number") and not _within(field, value):
        low = "" if field.low is None else f"{field.low:g}"
        high = "" if field.high is None else f"{field.high:g}"
        expected = f"{low} … {high}".strip()
    if expected:
        sentence = say("AIPP: {field} takes {expected}, not {value}.", field=field.name, expected=expected, value=value)
        # insert_op.proto has formats that the documents of August 2026 leave out.
        other_format = field.name == "input_format"
        yield doubtful(field.basis, sentence) if other_format else refused("", field.basis, sentence)


def _within(field: facts.AippField, value: str) -> bool:
    try:
        number = int(value, 0) if field.kind == "integer" else float(value)
    except ValueError:
        return False
    return (field.low is None or number >= field.low) and (field.high is None or number <= field.high)


def _static(block: Aipp, *, image_sizes_vary: bool) -> Iterator[Problem]:
    """Rules between fields of a static configuration."""
    if not block.text("input_format"):
        yield refused("", _TEMPLATE, say("AIPP: {field} is missing.", field="input_format"))
    width, height = block.number("src_image_size_w"), block.number("src_image_size_h")
    if block.text("input_format") == "YUV420SP_U8" and (width % 2 or height % 2):
        yield refused("", _TEMPLATE, say("AIPP: YUV420SP_U8 needs an even src_image_size_w and src_image_size_h."))
    if width == 1:
        yield refused(
            "",
            _TEMPLATE,
            say(
                "AIPP: {field} takes {expected}, not {value}.",
                field="src_image_size_w",
                expected="0, 2 … 4096",
                value=1,
            ),
        )
    changes = block.on("crop") or block.on("padding")
    if image_sizes_vary and changes:
        yield refused("", _DYNAMIC_IMAGES, say("AIPP: crop and padding cannot stand beside --dynamic_image_size."))
    if image_sizes_vary and (width or height):
        yield refused(
            "", _DYNAMIC_IMAGES, say("AIPP: beside --dynamic_image_size, src_image_size_w and src_image_size_h are 0.")
        )
    if changes and not image_sizes_vary and not (width and height):
        yield refused("", _TEMPLATE, say("AIPP: crop and padding need src_image_size_w and src_image_size_h."))
    if not block.on("crop"):
        return
    for axis, source in (("w", width), ("h", height)):
        start, size = block.number(f"load_start_pos_{axis}"), block.number(f"crop_size_{axis}")
        if source and start + size > source:
            yield refused(
                "",
                _TEMPLATE,
                say(
                    "AIPP: load_start_pos_{axis} {start} and crop_size_{axis} {size} reach beyond "
                    "src_image_size_{axis} {source}.",
                    axis=axis,
                    start=start,
                    size=size,
                    source=source,
                ),
            )
        if block.text("input_format") == "YUV420SP_U8" and start % 2:
            yield doubtful(
                _TEMPLATE, say("AIPP: YUV420SP_U8 needs an even load_start_pos_{axis} (not on Ascend 950).", axis=axis)
            )
        if block.on("padding") and not size:
            yield refused("", _TEMPLATE, say("AIPP: crop with padding needs crop_size_{axis}.", axis=axis))


_DYNAMIC_IMAGES = Basis("CANN ge, CLI_options/--dynamic_image_size.md", "documented", "August 2026")


def _result(block: Aipp, family: str | None, images: Sequence[tuple[int, ...]]) -> Iterator[Problem]:
    """The size of the image that comes out, against the model's input and against what the chip can do."""
    sizes = {}
    for axis, before, after in (("w", "left", "right"), ("h", "top", "bottom")):
        size = block.number(f"crop_size_{axis}") if block.on("crop") else block.number(f"src_image_size_{axis}")
        padded = (
            block.number(f"{before}_padding_size") + block.number(f"{after}_padding_size") if block.on("padding") else 0
        )
        sizes[axis] = size + padded if size else 0
    limit = facts.atc_limit("padded width", family) if family is not None else None
    if limit is not None and block.on("padding") and sizes["w"] > limit.high:
        yield refused(
            "",
            limit.basis,
            say("AIPP: the padded width is {width}; the most is {most}.", width=sizes["w"], most=limit.high),
        )
    if block.input >= len(images) or len(images[block.input]) != 4:
        return
    wanted = dict(zip("hw", images[block.input][2:], strict=True))
    for axis, size in sizes.items():
        if size and wanted[axis] > 0 and size != wanted[axis]:
            yield refused(
                "",
                _TEMPLATE,
                say(
                    "AIPP makes images of {axis}={size}, and the model takes {wanted}.",
                    axis=axis,
                    size=size,
                    wanted=wanted[axis],
                ),
            )
