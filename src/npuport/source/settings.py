"""The settings that configuration files and command lines make: their keys, their values, and where the values stand.

Only text that the file itself shows is reported, so that an edit of a value leaves comments and layout alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from npuport.source.files import FileKind, SourceFile


@dataclass(frozen=True, slots=True)
class Setting:
    """``keys`` from the outermost; items of a list have the keys of the list. ``start`` and ``end`` exclude quotes."""

    keys: tuple[str, ...]
    value: str
    start: int
    end: int

    @property
    def key(self) -> str:
        return self.keys[-1] if self.keys else ""


def settings_in(source: SourceFile) -> Iterator[Setting]:
    """Every setting of a file, in order; of a script, the options and assignments of its commands."""
    if source.kind is FileKind.JSON:
        return _json(source.text)
    if source.kind is FileKind.YAML:
        return _yaml(source.text)
    if source.kind in (FileKind.TOML, FileKind.INI):
        return _lines(source.text)
    if source.kind in (FileKind.SHELL, FileKind.DOCKERFILE, FileKind.MAKEFILE):
        return _options(source.text)
    return iter(())


# -- YAML --------------------------------------------------------------------------------------------------------------


def _yaml(text: str) -> Iterator[Setting]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.compose_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError, ValueError):
        yield from _lines(text)  # a template, or YAML of another kind
        return
    for document in documents:
        if document is not None:
            yield from _yaml_node(document, (), text)


def _yaml_node(node: Any, keys: tuple[str, ...], text: str) -> Iterator[Setting]:
    if node.id == "mapping":
        for key, value in node.value:
            name = str(key.value) if key.id == "scalar" else ""
            yield from _yaml_node(value, (*keys, name), text)
    elif node.id == "sequence":
        for item in node.value:
            yield from _yaml_node(item, keys, text)
    elif keys:
        start, end = node.start_mark.index, node.end_mark.index
        if node.style in ("'", '"'):
            start, end = start + 1, end - 1
        if node.style in (None, "", "'", '"') and text[start:end] == node.value:
            yield Setting(keys, node.value, start, end)
        elif node.style in ("|", ">"):  # a script inside a file, as in CI
            yield from _options(text, start, end, keys)


# -- JSON --------------------------------------------------------------------------------------------------------------

_JSON_TOKEN = re.compile(r'"(?P<string>(?:[^"\\]|\\.)*)"|(?P<mark>[{}\[\]:,])|(?P<plain>[^\s{}\[\]:,"]+)')


def _json(text: str) -> Iterator[Setting]:
    """By tokens, so that comments and commas too many, which some readers allow, do no harm."""
    stack: list[str | None] = []  # the key each open object or list stands under
    key: str | None = None
    expecting_value = False
    lists: list[bool] = []
    for token in _JSON_TOKEN.finditer(text):
        mark = token["mark"]
        if mark in ("{", "["):
            stack.append(key)
            lists.append(mark == "[")
            key, expecting_value = None, mark == "["
        elif mark in ("}", "]"):
            key = stack.pop() if stack else None
            if lists:
                lists.pop()
            expecting_value = False
        elif mark == ":":
            expecting_value = True
        elif mark == ",":
            expecting_value = bool(lists) and lists[-1]
            key = None if not expecting_value else key
        else:
            group = "string" if token["string"] is not None else "plain"
            if expecting_value:
                above = [name for name in (*stack, key) if name is not None]
                if above:
                    yield Setting(tuple(above), token[group], *token.span(group))
            elif group == "string":
                key = token["string"]


# -- TOML, INI ---------------------------------------------------------------------------------------------------------

_SECTION = re.compile(r"^[ \t]*\[+[ \t]*(?P<name>[^\]\r\n]+?)[ \t]*\]+[ \t]*(?:[#;].*)?$")
_PAIR = re.compile(r"^[ \t]*(?:-[ \t]+)?[\"']?(?P<key>[A-Za-z_][\w.-]*)[\"']?[ \t]*[=:][ \t]*(?P<value>[^\r\n]*)")
_VALUE = re.compile(r"\"(?P<double>[^\"\r\n]*)\"|'(?P<single>[^'\r\n]*)'|(?P<plain>[^\s\[\],#;\"'{}]+)")


def _lines(text: str) -> Iterator[Setting]:
    section: tuple[str, ...] = ()
    offset = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if (head := _SECTION.match(bare)) and "=" not in bare:
            section = tuple(head["name"].split("."))
        elif pair := _PAIR.match(bare):
            done = pair.start("value")
            for value in _VALUE.finditer(bare, done):
                if re.search(r"[#;]", bare[done : value.start()]):
                    break  # what follows is a comment
                done = value.end()
                group = value.lastgroup or "plain"
                start, end = offset + value.start(group), offset + value.end(group)
                yield Setting((*section, pair["key"]), value[group], start, end)
        offset += len(line)


# -- command lines -----------------------------------------------------------------------------------------------------

_OPTION = re.compile(
    r"(?<![\w$./-])(?:"
    r"(?:--?(?P<option>[A-Za-z][\w.-]*)(?:[ \t]+|=))"
    r"|(?:[+~]{0,2}(?P<name>[A-Za-z_][\w.]*)=)"
    r")(?P<quote>[\"']?)(?P<value>[\w:.,/+-]+)"
)


def _options(text: str, begin: int = 0, stop: int | None = None, keys: tuple[str, ...] = ()) -> Iterator[Setting]:
    """``--device cuda``, ``--device=cuda``, ``DEVICE=cuda`` and ``trainer.device=cuda``; comments are left out."""
    for match in _OPTION.finditer(text, begin, len(text) if stop is None else stop):
        line = text.rfind("\n", 0, match.start()) + 1
        if re.search(r"(?:^|\s)#", text[line : match.start()]):
            continue
        name = match["option"] or match["name"]
        path = tuple(name.replace("-", "_").split("."))
        yield Setting((*keys, *path), match["value"], *match.span("value"))
