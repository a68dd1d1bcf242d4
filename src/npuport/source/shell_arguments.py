"""The arguments that a shell script gives the Python programs it starts, with its variables and arrays filled in."""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from npuport.source.shell import Assignment, Script, read_script

_EXPANSION = re.compile(
    r"\$\(\((?P<sum>[^()]*(?:\([^()]*\)[^()]*)*)\)\)"
    r"|\$\{(?P<braced>\w+)(?:\[[@*]\])?(?::?-(?P<default>[^{}]*))?\}"
    r"|\$(?P<plain>[A-Za-z_]\w*)"
)
_QUOTED_ARRAY = re.compile(r"\"(\$\{\w+\[[@*]\]\})\"")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)
_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}
_NUMBER = re.compile(r"-?\.?\d")


@dataclass(frozen=True)
class Arguments:
    """The words of a command that starts a Python program: those before the program (the launcher's), and its own.

    A variable whose value the script does not say stays as written, such as ``$DATA_PATH``.
    """

    line: int
    launcher: tuple[str, ...]
    program: str
    words: tuple[str, ...]


def python_programs(text: str) -> list[Arguments]:
    """The Python programs that a script starts, in the order of the text."""
    script = read_script(text)
    values = _values(script)
    found = []
    for command in script.commands:
        words = [part for word in command.words for part in _split(_filled(word.text, values))]
        at = next((number for number, word in enumerate(words) if word.endswith(".py")), None)
        if at is not None and command.name not in ("cp", "cat", "echo", "vim", "rm", "mv", "sed", "ls"):
            found.append(Arguments(command.line, tuple(words[:at]), words[at], tuple(words[at + 1 :])))
    return found


def options(words: tuple[str, ...]) -> dict[str, str]:
    """``--name value``, ``--name=value`` and ``--name`` (which is "") by name, with ``-`` as ``_``; the last counts.

    Several values of one option are joined by blanks.
    """
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("-") and not _NUMBER.match(word):
            name, equals, value = word.lstrip("-").partition("=")
            name = name.replace("-", "_")
            found[name] = value if equals else ""
        elif name:
            found[name] = f"{found[name]} {word}".strip()
    return found


def _values(script: Script) -> dict[str, str]:
    """The text of each variable and array; none for a variable that is set to different things."""
    values: dict[str, str] = {}
    doubtful: set[str] = set()
    for one in script.assignments:
        written = _assigned(one)
        text = _filled(written, values)
        if script.text[one.start : one.end].startswith(f"{one.name}+="):
            values[one.name] = f"{values.get(one.name, '')} {text}"
        elif one.name in doubtful:
            continue
        elif values.get(one.name, text) != text and not re.search(rf"\$\{{?{one.name}\b", written):
            doubtful.add(one.name)
            del values[one.name]
        else:
            values[one.name] = text
    return values


def _assigned(one: Assignment) -> str:
    text = one.word.text if one.word is not None else ""
    if text.startswith("("):
        return _COMMENT.sub("", text[1:-1])
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with what is known of its variables; sums of known numbers are computed. An array is several words."""

    def value(match: re.Match[str]) -> str:
        if match["sum"] is not None:
            total = _sum(_bare(_filled(match["sum"], values), values))
            return match[0] if total is None else str(total)
        known = values.get(match["braced"] or match["plain"])
        if known is None:
            return match[0] if match["default"] is None else match["default"]
        return known

    return _EXPANSION.sub(value, _QUOTED_ARRAY.sub(r"\1", text))


def _bare(text: str, values: Mapping[str, str]) -> str:
    """Inside ``$(( ))`` variables need no dollar."""
    return re.sub(r"[A-Za-z_]\w*", lambda match: values.get(match[0], match[0]), text)


def _sum(text: str) -> int | None:
    """The value of a sum of whole numbers; None for anything else."""
    try:
        return _computed(ast.parse(text.strip().replace("/", "//"), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def _computed(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return int(_OPERATIONS[type(node.op)](_computed(node.left), _computed(node.right)))
    raise ValueError(ast.dump(node))


def _split(text: str) -> list[str]:
    text = text.replace("\\\n", " ")
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        return text.split()
