"""Reading shell scripts: their commands with words and places, loops, and the variables whose values are written out.

Parsed by tree-sitter's grammar of bash, so that quoting, continued lines, here-documents and comments are what the
shell takes them for. Offsets count characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_BLOCKS = {"program", "do_group", "compound_statement", "then", "else_clause", "elif_clause", "case_item"}
_LOOPS = {"for_statement", "c_style_for_statement", "while_statement"}


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command as written, and its value where the script says it ("" and None differ)."""

    text: str
    value: str | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """``NAME=value``, before a command, exported, or alone."""

    name: str
    word: Word | None  # the value; None for an empty one
    start: int
    end: int

    @property
    def value(self) -> str | None:
        return "" if self.word is None else self.word.value


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command, without redirections. ``assignments`` stand before it and hold for it alone."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    statement: int  # where the statement begins that it is part of: other lines may go before that
    start: int  # of the first assignment or word
    end: int
    line: int  # from 1
    in_loop: bool

    @property
    def name(self) -> str:
        return self.words[0].text if self.words else ""


@dataclass(frozen=True)
class Script:
    """A shell script. ``variables`` are those with one value that is written out, by name."""

    text: str
    commands: tuple[Command, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


def read_script(text: str) -> Script:
    """Parse a shell script; what the grammar cannot parse is not among the commands."""
    source = text.encode()
    offsets = _Offsets(source, text)
    nodes = list(_nodes(_parser().parse(source).root_node))
    variables: dict[str, str] = {}
    assignments = []
    for node, _ in nodes:
        if node.type == "variable_assignment":
            one = _assignment(node, offsets, variables)
            assignments.append(one)
            changed = one.name in variables and variables[one.name] != one.value
            if one.value is not None and not changed and "command" not in {node.parent.type if node.parent else ""}:
                variables[one.name] = one.value
            else:
                variables.pop(one.name, None)
    commands = [_command(node, in_loop, offsets, variables) for node, in_loop in nodes if node.type == "command"]
    return Script(text, tuple(commands), tuple(assignments), variables)


class _Offsets:
    """Characters for the parser's bytes."""

    def __init__(self, source: bytes, text: str) -> None:
        self.source = source
        self.plain = len(source) == len(text)

    def of(self, byte: int) -> int:
        return byte if self.plain else len(self.source[:byte].decode())


def _nodes(node: Node, in_loop: bool = False) -> Iterator[tuple[Node, bool]]:
    """Every node, in the order of the text, with whether it stands in a loop."""
    yield node, in_loop
    for child in node.children:
        yield from _nodes(child, in_loop or node.type in _LOOPS)


def _statement(node: Node) -> Node:
    """The statement around a command: the list, pipeline or condition that it stands in, up to the lines of a block."""
    while node.parent is not None and node.parent.type not in _BLOCKS:
        node = node.parent
    return node


def _command(node: Node, in_loop: bool, offsets: _Offsets, variables: dict[str, str]) -> Command:
    words, assignments = [], []
    for child in node.children:
        if child.type == "variable_assignment":
            assignments.append(_assignment(child, offsets, variables))
        elif child.type == "command_name" or (child.is_named and not child.type.endswith("redirect")):
            words.append(_word(child, offsets, variables))
    words += [_word(one, offsets, variables) for one in _behind_redirections(node)]
    start, end = offsets.of(node.start_byte), offsets.of(node.end_byte)
    statement = offsets.of(_statement(node).start_byte)
    return Command(tuple(words), tuple(assignments), statement, start, end, node.start_point[0] + 1, in_loop)


def _behind_redirections(node: Node) -> Iterator[Node]:
    """Words of a command that stand behind a redirection, as in ``program > log --option``."""
    if node.parent is not None and node.parent.type == "redirected_statement":
        for redirection in node.parent.children:
            yield from redirection.children_by_field_name("destination")[1:]


def _assignment(node: Node, offsets: _Offsets, variables: dict[str, str]) -> Assignment:
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    return Assignment(
        name=_text(name) if name is not None else "",
        word=_word(value, offsets, variables) if value is not None else None,
        start=offsets.of(node.start_byte),
        end=offsets.of(node.end_byte),
    )


def _word(node: Node, offsets: _Offsets, variables: dict[str, str]) -> Word:
    return Word(_text(node), _value(node, variables), offsets.of(node.start_byte), offsets.of(node.end_byte))


def _value(node: Node, variables: dict[str, str]) -> str | None:
    """What a word expands to, where the script itself says so."""
    if node.type in ("word", "number", "variable_name", "special_variable_name", "string_content"):
        return _text(node).replace("\\\n", "")  # a continued line
    if node.type == "raw_string":
        return _text(node)[1:-1]
    if node.type in ("command_name", "concatenation", "string"):
        parts = [_value(child, variables) for child in node.children if child.is_named]
        return None if any(part is None for part in parts) else "".join(part for part in parts if part is not None)
    if node.type in ("simple_expansion", "expansion"):
        names = [child for child in node.children if child.is_named]
        return variables.get(_text(names[0])) if len(names) == 1 else None
    return None


def _text(node: Node) -> str:
    return (node.text or b"").decode()


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
