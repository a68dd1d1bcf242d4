"""Pipeline files: YAML read into dataclasses, each of whose fields is a key; errors name the file and the key."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from npuport.errors import UserError

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Key:
    """What the starter file says of a field, and which values it takes."""

    help: str
    least: float | None = None
    most: float | None = None
    one_of: tuple[str, ...] = ()


def key(default: Any, help: str, **limits: Any) -> Any:
    """A field of a pipeline file."""
    metadata = {"key": Key(help, **limits)}
    if isinstance(default, (list, dict)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Execution:
    """Where the tasks run. The result is the same everywhere."""

    kind: str = key("local", "local, ray or slurm", one_of=("local", "ray", "slurm"))
    workers: int = key(0, "tasks at the same time; 0: one for each core, or what the cluster gives", least=0)
    options: dict[str, Any] = key(
        {}, "further arguments of datatrove's executor, such as {partition: cpu, time: '10:00:00'}"
    )


def read(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UserError("{path} is no YAML: {reason}.", path=path, reason=reason) from error
    if not isinstance(content, dict):
        raise UserError("{path} holds no keys: a pipeline file is a YAML mapping.", path=path)
    return content


def filled(kind: type[Kind], given: Mapping[str, Any], place: str, above: str = "") -> Kind:
    """An instance of a dataclass from the keys given; ``above`` is the key that the mapping stands under.

    Raises:
        UserError: a key is not known, or takes other values; ``place`` names the file.
    """
    every = dataclasses.fields(typing.cast("type[Any]", kind))
    fields = {field.name.replace("_", "-"): field for field in every}
    wanted = typing.get_type_hints(kind)
    values = {}
    for name, value in given.items():
        full = f"{above}.{name}" if above else str(name)
        field = fields.get(str(name).replace("_", "-"))
        if field is None:
            raise _unknown(full, str(name), list(fields), place)
        values[field.name] = _checked(value, wanted[field.name], field.metadata.get("key"), place, full)
    return kind(**values)


def _unknown(full: str, name: str, known: list[str], place: str) -> UserError:
    near = difflib.get_close_matches(name.replace("_", "-"), known, n=1, cutoff=0.6)
    if near:
        return UserError("{path}: {key} is not known; did you mean {near}?", path=place, key=full, near=near[0])
    return UserError("{path}: {key} is not known. Known are {known}.", path=place, key=full, known=", ".join(known))


def _checked(value: Any, wanted: Any, limits: Key | None, place: str, full: str) -> Any:
    if dataclasses.is_dataclass(wanted):
        if not isinstance(value, dict):
            raise UserError("{path}: {key} takes keys of its own, not {given}.", path=place, key=full, given=value)
        return filled(typing.cast("type[Any]", wanted), value, place, full)
    if isinstance(wanted, types.UnionType):  # a step, or false to leave it out
        if value is False:
            return None
        return _checked({} if value in (None, True) else value, typing.get_args(wanted)[0], limits, place, full)
    if typing.get_origin(wanted) is dict and isinstance(value, dict):
        inner = typing.get_args(wanted)[1]
        if dataclasses.is_dataclass(inner):  # things with names of their own
            return {name: _checked(one, inner, None, place, f"{full}.{name}") for name, one in value.items()}
    if typing.get_origin(wanted) is list:
        value = [value] if isinstance(value, str) else value
        good = isinstance(value, list) and all(isinstance(one, str) for one in value)
    elif wanted is float:
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif wanted is int:
        good = isinstance(value, int) and not isinstance(value, bool)
    else:
        good = isinstance(value, typing.get_origin(wanted) or wanted)
    if not good:
        raise _WRONG[typing.get_origin(wanted) or wanted]({"path": place, "key": full, "given": value})
    if limits is not None:
        _within(value, limits, place, full)
    return float(value) if wanted is float else value


_WRONG: dict[Any, Callable[[dict[str, object]], UserError]] = {
    int: lambda said: UserError("{path}: {key} takes a whole number, not {given}.", **said),
    float: lambda said: UserError("{path}: {key} takes a number, not {given}.", **said),
    str: lambda said: UserError("{path}: {key} takes a text, not {given}.", **said),
    list: lambda said: UserError("{path}: {key} takes a list of texts, not {given}.", **said),
    dict: lambda said: UserError("{path}: {key} takes keys of its own, not {given}.", **said),
}


def _within(value: Any, limits: Key, place: str, full: str) -> None:
    if limits.one_of and value not in limits.one_of:
        known = ", ".join(limits.one_of)
        raise UserError(
            "{path}: {key} takes one of {known}, not {given}.", path=place, key=full, known=known, given=value
        )
    low, high = limits.least, limits.most
    if (low is not None and value < low) or (high is not None and value > high):
        between = f"{low:g} …" if high is None else f"{low or 0:g} … {high:g}"
        raise UserError(
            "{path}: {key} takes {between}, not {given}.", path=place, key=full, between=between, given=value
        )


def starter(kind: type[Any], given: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """The lines of a commented file with every key at its default; ``given`` replaces some."""
    wanted = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name, about = field.name.replace("_", "-"), field.metadata.get("key")
        inner = wanted[field.name]
        if isinstance(inner, types.UnionType):
            inner = typing.get_args(inner)[0]
        if about is not None:
            yield f"{indent}# {about.help}"
        if dataclasses.is_dataclass(inner):
            about_it = (inspect.getdoc(inner) or "").split("\n\n")[0]
            yield f"{indent}# {' '.join(about_it.split())}"
            yield f"{indent}{name}:"
            yield from starter(typing.cast("type[Any]", inner), {}, indent + "  ")
            continue
        value = given.get(field.name, _default(field))
        yield f"{indent}{name}: {yaml.safe_dump(value, default_flow_style=True, allow_unicode=True).splitlines()[0]}"


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
