"""ATC's command line: its options, found in shell scripts and documents, and written down."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npuport import facts
from npuport.source.shell import Command, Word, read_script

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t>]*\1", re.MULTILINE | re.DOTALL)
_SWITCHES = {"help", "raw_ge_options_ignore_unsupported"}  # options that may stand without a value
_PLACEHOLDER = re.compile(
    r"[{}<>｛｝$`]"
)  # variables, commands; documents write {batch_size} or <soc> where a value goes
_ANGLES = re.compile(r"=<([^<>\n]*)>")  # to the shell, redirections
_PLAIN = re.compile(r"[\w./:,=@%+-]+", re.ASCII)


@dataclass(frozen=True)
class AtcCommand:
    r"""One call of ATC.

    ``options`` are by name with "_"; a value that only the shell knows, such as $soc, is None. ``strays`` are words
    that belong to no option. It is ``cut_off`` where a space behind "\" ends a line that should go on, and
    ``elided`` where "..." stands for further options.
    """

    options: Mapping[str, str | None]
    line: int = 1
    strays: tuple[str, ...] = ()
    cut_off: bool = False
    elided: bool = False

    def has(self, option: str) -> bool:
        """Whether the option is there and not empty."""
        return option in self.options and self.options[option] != ""

    def get(self, option: str, default: str = "") -> str:
        """The value, ``default`` where it is not there or not known."""
        return self.options.get(option) or default

    @property
    def mode(self) -> str:
        """What ATC is to do; "0" compiles a model."""
        return self.get("mode", "0")


def commands_in(text: str, *, markdown: bool = False) -> list[AtcCommand]:
    """The calls of ATC in a shell script, or in the blocks of code of a Markdown document."""
    if not markdown:
        return list(_of_script(text, 0))
    found: list[AtcCommand] = []
    for block in _FENCE.finditer(text):
        # Documents indent blocks under lists, and quote them.
        body = re.sub(r"^[ \t>]+", "", block[2], flags=re.MULTILINE)
        found += _of_script(body, text.count("\n", 0, block.start(2)))
    return found


def _of_script(text: str, lines_before: int) -> Iterator[AtcCommand]:
    for command in read_script(_ANGLES.sub(r"={\1}", text)).commands:
        words = _arguments(command)
        if words:
            yield _parsed(words, lines_before + command.line)


def _arguments(command: Command) -> list[Word]:
    """The words behind ``atc``, also behind programs such as ``numactl -C 0-7 atc``; [] where it is none."""
    for index, word in enumerate(command.words):
        name = (word.value if word.value is not None else word.text).rpartition("/")[2]
        behind = list(command.words[index + 1 :])
        if name in ("atc", "atc.bin") and any(one.text.startswith("--") for one in behind):
            return behind
        if word.text.startswith("--"):
            return []
    return []


def _parsed(words: Sequence[Word], line: int) -> AtcCommand:
    options: dict[str, str | None] = {}
    strays = []
    cut_off = False
    waiting = ""  # an option whose value is the next word
    for word in words:
        text = word.value if word.value is not None else word.text
        if text.endswith("\\ "):
            text, cut_off = text[:-2], True
        if text.startswith("--"):
            name, equals, value = text[2:].partition("=")
            waiting = _full_name(name)
            options[waiting] = _known(value) if equals else ""
            if equals or waiting in _SWITCHES:
                waiting = ""
        elif waiting:
            options[waiting] = _known(text)
            waiting = ""
        elif text.strip():
            strays.append(text)
    elided = any(word in ("...", "…") for word in strays)
    strays = [word for word in strays if word not in ("...", "…")]
    if any(map(_PLACEHOLDER.search, strays)):
        strays = []  # "{batch size}" is two words
    return AtcCommand(options, line, tuple(strays), cut_off, elided)


def _known(value: str) -> str | None:
    return None if _PLACEHOLDER.search(value) else value


def _full_name(name: str) -> str:
    """The option that a name stands for: "-" is "_", and ATC takes the beginning of a name where only one has it."""
    name = name.replace("-", "_")
    if facts.atc_option(name) is not None:
        return name
    longer = [one.name for one in facts.all_atc_options() if one.name.startswith(name)]
    return longer[0] if len(longer) == 1 else name


def written(options: Mapping[str, str]) -> str:
    """The command as lines of shell, an option a line."""
    words = ["atc", *(f"--{name}={_quoted(value)}" for name, value in options.items())]
    return " \\\n    ".join(words)


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    return shlex.quote(value) if re.search(r'["$`\\!]', value) else f'"{value}"'
