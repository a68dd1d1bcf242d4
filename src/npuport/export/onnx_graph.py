"""What an ONNX file says of itself: inputs, outputs, operator sets and operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.errors import UserError

if TYPE_CHECKING:
    import onnx

STANDARD = "ai.onnx"  # ONNX writes "" for it


@dataclass(frozen=True)
class Value:
    """An input or output: an axis is a size, or the name of a dynamic one ("" where it has none)."""

    name: str
    dtype: str
    axes: tuple[int | str, ...] | None  # None where the file does not say

    def __str__(self) -> str:
        if self.axes is None:
            return f"{self.name} {self.dtype}"
        return f"{self.name} {self.dtype}[{','.join(str(axis) or '?' for axis in self.axes)}]"


@dataclass(frozen=True)
class Operator:
    """A type of operator: its operator set, as ("ai.onnx", 18), and how many nodes are of it."""

    name: str
    domain: str
    opset: int
    nodes: int


@dataclass(frozen=True)
class Graph:
    """An ONNX file."""

    path: Path
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    opset: int | None  # of ai.onnx
    domains_named_twice: tuple[str, ...]
    operators: tuple[Operator, ...]
    node_names: frozenset[str]

    @property
    def nodes(self) -> int:
        return sum(one.nodes for one in self.operators)

    def input(self, name: str) -> Value | None:
        return next((one for one in self.inputs if one.name == name), None)


def read_graph(path: Path) -> Graph:
    """Read an ONNX file without its weights.

    Raises:
        UserError: there is none, or it is none.
    """
    try:
        import onnx
    except ImportError as error:
        raise UserError('{path} needs onnx to be read: pip install "npuport[export]"', path=path) from error
    if not path.is_file():
        raise UserError("no such file: {path}.", path=path)
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf has errors of its own in each of its implementations
        raise UserError("{path} is no ONNX file: {reason}.", path=path, reason=error) from error
    if not model.graph.node and not model.graph.output:
        raise UserError("{path} is no ONNX file: {reason}.", path=path, reason="no graph")
    weights = {one.name for one in model.graph.initializer}
    versions = {one.domain or STANDARD: one.version for one in model.opset_import}
    named = Counter(one.domain or STANDARD for one in model.opset_import)
    nodes = list(_nodes(model.graph))
    kinds = Counter((node.op_type, node.domain or STANDARD) for node in nodes)
    return Graph(
        path,
        tuple(_value(one) for one in model.graph.input if one.name not in weights),
        tuple(_value(one) for one in model.graph.output),
        versions.get(STANDARD),
        tuple(domain for domain, times in named.items() if times > 1),
        tuple(
            Operator(name, domain, versions.get(domain, 0), number) for (name, domain), number in sorted(kinds.items())
        ),
        frozenset(node.name for node in nodes),
    )


def free_wrong_sizes(path: Path, measured: Sequence[Sequence[tuple[int, ...]]]) -> None:
    """Correct the file where it declares a fixed size of an output that is not (PyTorch does so for an LSTM's time).

    ``measured`` has the shapes of all outputs, for each of several runs. Declared shapes of values in between, which
    nobody measured, are then left out: ONNX does not need them.
    """
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    wrong = False
    for position, output in enumerate(model.graph.output):
        for axis, declared in enumerate(output.type.tensor_type.shape.dim):
            sizes = {shapes[position][axis] for shapes in measured if axis < len(shapes[position])}
            if declared.HasField("dim_value") and sizes != {declared.dim_value}:
                declared.dim_param = f"{output.name}_{axis}"
                wrong = True
    if wrong:
        del model.graph.value_info[:]
        onnx.save(model, str(path))


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, those in branches and loops too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _value(value: onnx.ValueInfoProto) -> Value:
    import onnx

    tensor = value.type.tensor_type
    dtype = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    if not tensor.HasField("shape"):
        return Value(value.name, dtype, None)
    axes = (one.dim_value if one.HasField("dim_value") else one.dim_param for one in tensor.shape.dim)
    return Value(value.name, dtype, tuple(axes))
