"""The values of an entry, one by one, under the names that msprobe compares them by."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from npuport.precision.msprobe.reading import Dump

_PARTS = (("input_args", ".input"), ("input_kwargs", ".input"), ("input", ".input"), ("parameters", ".parameters"),
          ("output", ".output"))  # fmt: skip
_NUMBERS = ("Max", "Min", "Mean", "Norm")
NOTHING = "N/A"


@dataclass(frozen=True, slots=True)
class Item:
    """A tensor or a value of a call. ``numbers`` are max, min, mean and norm; of a value itself, four times."""

    name: str
    call: str
    dtype: str
    shape: str
    numbers: tuple[Any, Any, Any, Any]
    checksum: str
    requires_grad: str
    file: str  # "-1" where there is none


def items_of(dump: Dump) -> dict[str, list[Item]]:
    """The items of each call: inputs, parameters, outputs."""
    return {call: list(_of_call(call, entry)) for call, entry in dump.data.items()}


def _of_call(call: str, entry: Any) -> Iterator[Item]:
    parts = [(value, f"{call}{suffix}") for key, suffix in _PARTS if isinstance(entry, Mapping)
             and (value := entry.get(key)) is not None]  # fmt: skip
    if ".parameters_grad" in call or not parts:
        parts = [(entry, call)]
    for value, name in parts:
        yield from _of_value(call, name, value, ".parameters_grad" in call)


def _of_value(call: str, name: str, value: Any, is_gradient: bool) -> Iterator[Item]:
    if value is None:
        yield Item(name, call, NOTHING, NOTHING, (None, None, None, None), NOTHING, NOTHING, "-1")
    elif isinstance(value, list):
        for position, one in enumerate(value):
            yield from _of_value(call, name if is_gradient else f"{name}.{position}", one, is_gradient)
    elif isinstance(value, Mapping) and isinstance(value.get("type"), str):
        yield _leaf(call, name, value)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _of_value(call, f"{name}.{key}", one, is_gradient)


def _leaf(call: str, name: str, value: Mapping[str, Any]) -> Item:
    file = value.get("data_name") or "-1"
    name = file.rsplit(".", 1)[0] if file != "-1" else name
    if value.get("dtype"):
        numbers = tuple(_text_of_bool(value.get(key)) for key in _NUMBERS)
        checksum = value.get("md5") or _checksum("")
        return Item(name, call, str(value["dtype"]), str(value["shape"]), numbers, checksum,
                    str(value.get("requires_grad", NOTHING)), file)  # fmt: skip
    kind, own = value["type"], value.get("value")
    dtype, shape, numbers = f"<class '{type(own).__name__}'>", "[]", (own,) * 4
    if kind == "torch.Size":
        dtype, shape, numbers = kind, str(own), (None,) * 4
    elif kind == "slice":
        dtype, shape, numbers = kind, f"({len(own or ())},)", (None,) * 4
    elif kind == "ellipsis":
        dtype = kind
    elif kind == "torch.ProcessGroup":
        dtype, numbers = kind, (str(value.get("group_ranks")),) * 4
    numbers = tuple(_text_of_bool(number) for number in numbers)
    return Item(name, call, dtype, shape, numbers, _checksum(own), NOTHING, file)


def _text_of_bool(value: Any) -> Any:
    return str(value) if isinstance(value, bool) else value


def _checksum(value: Any) -> str:
    return f"{zlib.crc32(str(value).encode()):08x}"
