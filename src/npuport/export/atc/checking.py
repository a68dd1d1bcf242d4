"""All checks of an ATC command, with the model and the AIPP configuration where they are at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from npuport import facts
from npuport.errors import UserError
from npuport.export.atc.aipp import check_aipp, parse_aipp
from npuport.export.atc.command import AtcCommand
from npuport.export.atc.dynamic import check_ranges_with_aipp, check_shapes
from npuport.export.atc.model import check_model, operator_problems
from npuport.export.atc.options import check_options, family_of
from npuport.export.atc.problems import NotUnderstoodError, Problem, refused
from npuport.export.atc.shapes import parse_shapes
from npuport.export.onnx_graph import Graph
from npuport.findings import say


def check_command(command: AtcCommand, graph: Graph | None, folder: Path) -> list[Problem]:
    """What is wrong with a command, worst first; paths in it start in ``folder``."""
    if (command.mode == "0" and "singleop" not in command.options) or command.mode == "3":
        problems = [*check_options(command), *check_shapes(command), *_aipp(command, graph, folder)]
        if graph is not None:
            problems += [*check_model(command, graph), *operator_problems(graph)]
    else:
        problems = list(check_options(command))
    return sorted(problems, key=lambda one: one.severity.rank)


def _aipp(command: AtcCommand, graph: Graph | None, folder: Path) -> list[Problem]:
    path = command.get("insert_op_conf")
    if not path:
        return []
    place = folder / path
    if not place.is_file():
        return []  # on another machine; `npuport export atc` insists on it
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("{path} cannot be read: {reason}.", path=place, reason=error) from error
    problems = list(
        check_aipp(
            text,
            image_sizes_vary=command.has("dynamic_image_size"),
            family=family_of(command),
            images=_images(command, graph),
        )
    )
    try:
        blocks = parse_aipp(text)
    except NotUnderstoodError:
        return problems
    basis = next(one.basis for one in facts.all_atc_exclusions() if one.first.option == "insert_op_conf")
    problems += check_ranges_with_aipp(command, static=any(block.static for block in blocks), basis=basis)
    fp16 = {name.strip() for name in command.get("input_fp16_nodes").split(";") if name.strip()}
    for block in blocks:
        if graph is None or block.input >= len(graph.inputs):
            continue
        name = graph.inputs[block.input].name
        if name in fp16:
            sentence = say("{input} has AIPP and stands in --input_fp16_nodes: one of them.", input=name)
            problems.append(refused("", basis, sentence))
    return problems


def _images(command: AtcCommand, graph: Graph | None) -> Sequence[tuple[int, ...]]:
    """Shapes of the inputs with -1 where sizes vary, in the model's order; () where nothing is known."""
    try:
        shapes = parse_shapes(command.get("input_shape"))
    except NotUnderstoodError:
        return ()
    sizes = {name: tuple(axis if isinstance(axis, int) else -1 for axis in shape) for name, shape in shapes.items()}
    if graph is None:
        return tuple(sizes.values())
    return tuple(
        sizes.get(one.name, tuple(axis if isinstance(axis, int) else -1 for axis in one.axes or ()))
        for one in graph.inputs
    )
