"""Checks of an ATC command against the ONNX model that it compiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from npuport import facts
from npuport.export.atc.command import AtcCommand
from npuport.export.atc.dynamic import PROFILES
from npuport.export.atc.problems import NotUnderstoodError, Problem, doubtful, refused
from npuport.export.atc.shapes import Axis, dynamic_axes, parse_profiles, parse_shapes
from npuport.export.onnx_graph import STANDARD, Graph, Operator
from npuport.findings import Basis, say

_SHAPES = Basis("CANN ge, CLI_options/--input_shape.md", "documented", "August 2026")
_QUANTISED = Basis("CANN ge, CLI_options/general_restrictions.md", "documented", "August 2026")
_FORMATS = Basis("CANN ge, CLI_options/--input_format.md", "inferred", "August 2026")
_PARSER = Basis("CANN ge, onnx_parser.cc; ops-math, ops-nn and ops-cv, plugins for ONNX", "documented", "August 2026")


def _errors(code: str) -> Basis:
    return Basis(f"CANN ge, error_codes/{code}", "documented", "August 2026")


def check_model(command: AtcCommand, graph: Graph) -> Iterator[Problem]:
    """Inputs, shapes, outputs, operator sets and operators."""
    if not graph.inputs:
        yield refused("E16001", _errors("E16001"), say("{path} has no input.", path=graph.path))
    for domain in graph.domains_named_twice:
        yield refused(
            "E16005",
            _errors("E16005"),
            say("{path} names the operator set of {domain} twice.", path=graph.path, domain=domain),
        )
    limit = facts.atc_limit("opset")
    if graph.opset is not None and not limit.low <= graph.opset <= limit.high:
        yield refused(
            "",
            limit.basis,
            say(
                "{path} is of operator set {opset}; ATC's documents name {low} to {high}.",
                path=graph.path,
                opset=graph.opset,
                low=limit.low,
                high=limit.high,
            ),
        )
    yield from _inputs(command, graph)
    yield from _outputs(command, graph)
    yield from _format(command, graph)
    if any(one.name == "AscendQuant" for one in graph.operators) and any(map(command.has, PROFILES)):
        yield refused("", _QUANTISED, say("a quantised model takes no profiles such as --dynamic_batch_size."))


def _inputs(command: AtcCommand, graph: Graph) -> Iterator[Problem]:
    given = command.get("input_shape")
    if not given:
        varying = [one.name for one in graph.inputs if any(isinstance(axis, str) for axis in one.axes or ())]
        if varying and not command.has("input_shape") and not command.has("input_shape_range"):
            yield refused(
                "",
                _SHAPES,
                say(
                    "sizes of {inputs} are not fixed in the model: --input_shape must give them.",
                    inputs=", ".join(varying),
                ),
            )
        return
    try:
        shapes = parse_shapes(given)
    except NotUnderstoodError:  # said already
        return
    if ":" not in given:  # by position
        shapes = {one.name: shape for one, shape in zip(graph.inputs, shapes.values(), strict=False)}
    for name, shape in shapes.items():
        value = graph.input(name)
        if value is None:
            known = ", ".join(one.name for one in graph.inputs)
            yield refused(
                "E10016",
                _errors("E10016"),
                say(
                    "--input_shape names {input}, which is no input of the model. It has: {known}.",
                    input=name,
                    known=known,
                ),
            )
            continue
        if value.axes is None:
            continue
        if len(shape) != len(value.axes):
            yield refused(
                "E10049",
                _errors("E10049"),
                say(
                    "--input_shape gives {input} {number} sizes; in the model it is {value}.",
                    input=name,
                    number=len(shape),
                    value=value,
                ),
            )
            continue
        for axis, (size, fixed) in enumerate(zip(shape, value.axes, strict=True)):
            if isinstance(fixed, int) and size != fixed:
                yield doubtful(
                    _SHAPES,
                    say(
                        "--input_shape makes size {axis} of {input} {size}; the model fixes it at {fixed}.",
                        axis=axis,
                        input=name,
                        size=size if isinstance(size, int) else "~".join(map(str, size)),
                        fixed=fixed,
                    ),
                )
    yield from _profiles_agree(command, graph, shapes)
    missing = [
        one
        for one in graph.inputs
        if one.name not in shapes
        and (
            any(isinstance(axis, str) for axis in one.axes or ())
            or (any(map(command.has, PROFILES)) and one.axes == ())
        )
    ]
    for one in missing:
        yield refused("", _SHAPES, say("--input_shape lacks {input}: {value}.", input=one.name, value=one))


def _profiles_agree(command: AtcCommand, graph: Graph, shapes: Mapping[str, tuple[Axis, ...]]) -> Iterator[Problem]:
    """In a profile, axes of one name have one size."""
    names: list[int | str] = []
    for name, shape in shapes.items():
        value = graph.input(name)
        axes = value.axes if value is not None and value.axes is not None else ()
        names += [axes[index] if index < len(axes) else "" for index in dynamic_axes(shape)]
    try:
        profiles = parse_profiles("dynamic_dims", command.get("dynamic_dims")) if command.get("dynamic_dims") else []
    except NotUnderstoodError:
        return
    for profile in profiles:
        sizes: dict[str, set[int]] = {}
        for axis, size in zip(names, profile, strict=False):
            if isinstance(axis, str) and axis:
                sizes.setdefault(axis, set()).add(size)
        for axis, different in sizes.items():
            if len(different) > 1:
                yield refused(
                    "",
                    Basis("the model's own axes", "measured"),
                    say(
                        "--dynamic_dims: the profile {profile} gives {name} the sizes {sizes}; in the model it is "
                        "one size.",
                        profile=",".join(map(str, profile)),
                        name=axis,
                        sizes=", ".join(map(str, sorted(different))),
                    ),
                )


def _outputs(command: AtcCommand, graph: Graph) -> Iterator[Problem]:
    outputs = {one.name for one in graph.outputs}
    for part in (one.strip() for one in command.get("out_nodes").split(";") if one.strip()):
        node, colon, index = part.rpartition(":")
        if part in outputs or (colon and index.isdigit() and node in graph.node_names):
            continue
        yield refused(
            "E10016",
            _errors("E10016"),
            say(
                "--out_nodes names {part}, which is neither an output ({outputs}) nor a node with the number of its "
                "output, such as Conv_0:0.",
                part=part,
                outputs=", ".join(sorted(outputs)),
            ),
        )


def _format(command: AtcCommand, graph: Graph) -> Iterator[Problem]:
    """A format of images or volumes, and no input of that many sizes."""
    given = command.get("input_format", "" if "input_format" in command.options else "NCHW")
    sizes = {"NCHW": 4, "NHWC": 4, "NCDHW": 5, "NDHWC": 5}.get(given)
    ranks = [len(one.axes) for one in graph.inputs if one.axes is not None]
    if sizes is not None and len(ranks) == len(graph.inputs) and ranks and sizes not in ranks:
        yield doubtful(
            _FORMATS,
            say(
                "--input_format is {format}, and no input has {sizes} sizes: ND is for any other number.",
                format=given,
                sizes=sizes,
            ),
        )


def unregistered(graph: Graph) -> list[tuple[Operator, str]]:
    """Operators without a parser among CANN's plugins in their operator set; with the sets that have one ("" for none).

    Source: facts/data/atc_operators.csv. A package of operators of one's own, or a newer CANN, may register more.
    """
    found = []
    for one in graph.operators:
        known = facts.atc_operator(one.domain, one.name)
        if known is None:
            found.append((one, ""))
        elif known.opsets is not None and one.opset not in known.opsets:
            found.append((one, _spans(sorted(known.opsets))))
    return found


def operator_problems(graph: Graph) -> Iterator[Problem]:
    """Each operator that is not in CANN's list, as a warning."""
    for one, others in unregistered(graph):
        domain = "" if one.domain == STANDARD else f"{one.domain}::"
        if others:
            sentence = say(
                "{operator} ({nodes}x) is in CANN's list for operator sets {others}, not for {opset}. "
                "`npuport export onnx --opset` writes another.",
                operator=domain + one.name,
                nodes=one.nodes,
                others=others,
                opset=one.opset,
            )
        else:
            sentence = say(
                "{operator} ({nodes}x) is not in the list of operators that CANN's plugins register.",
                operator=domain + one.name,
                nodes=one.nodes,
            )
        yield doubtful(_PARSER, sentence, "E16002")


def _spans(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{low}-{high}" if high > low else str(low) for low, high in parts)
