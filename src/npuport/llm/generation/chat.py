"""The tokens of a chat: what a template puts around messages, and contents of a given length.

Contents are random tokens, another row for each sequence of a batch: the time of a dense model does not depend on what
the tokens say, and a model with experts is not led to the same experts by every row.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npuport.errors import UserError

_USER, _ANSWER, _NEXT = "NpuportUserNpuport", "NpuportAnswerNpuport", "NpuportNextNpuport"


@dataclass(frozen=True)
class Frame:
    """Ids before the first message's content, between it and the answer, and between an answer and the next message."""

    opening: tuple[int, ...] = ()
    answer: tuple[int, ...] = ()
    following: tuple[int, ...] = ()
    templated: bool = False


def frame_of(tokenizer: Any) -> Frame:
    """What the tokenizer's chat template puts around messages; without a template the token that begins a text.

    The template is applied to placeholders. One that hides or changes them is not used.
    """
    begin = getattr(tokenizer, "bos_token_id", None)
    plain = Frame(opening=() if begin is None else (begin,))
    if tokenizer is None or not getattr(tokenizer, "chat_template", None):
        return plain
    messages = [
        {"role": "user", "content": _USER},
        {"role": "assistant", "content": _ANSWER},
        {"role": "user", "content": _NEXT},
    ]

    def rendered(shown: Sequence[dict[str, str]]) -> str:
        return str(tokenizer.apply_chat_template(list(shown), tokenize=False, add_generation_prompt=True))

    first, second = rendered(messages[:1]).split(_USER), rendered(messages).split(_ANSWER)
    between = second[1].split(_NEXT) if len(second) == 2 else []
    if len(first) != 2 or len(between) != 2:
        return plain

    def encoded(text: str) -> tuple[int, ...]:
        return tuple(tokenizer.encode(text, add_special_tokens=False))

    return Frame(encoded(first[0]), encoded(first[1]), encoded(between[0]), templated=True)


class Contents:
    """Random tokens of a vocabulary, without those that have a meaning of their own. The same seed, the same tokens."""

    def __init__(self, vocabulary: int, special: Sequence[int], seed: int = 0) -> None:
        left_out = set(special)
        self._ids = [number for number in range(vocabulary) if number not in left_out] or list(range(vocabulary))
        self._random = random.Random(seed)

    def rows(self, batch: int, length: int) -> list[list[int]]:
        """``batch`` rows of ``length`` ids."""
        return [self._random.choices(self._ids, k=length) for _ in range(batch)]


def first_prompt(frame: Frame, contents: Contents, batch: int, length: int) -> list[list[int]]:
    """The first turn's tokens, ``length`` in each row with those of the template.

    Raises:
        UserError: the template alone is as long.
    """
    room = length - len(frame.opening) - len(frame.answer)
    if room < 1:
        raise UserError(
            "a context of {length} tokens is too short: the chat template takes {taken}. Give a longer --context.",
            length=length,
            taken=length - room,
        )
    return [[*frame.opening, *row, *frame.answer] for row in contents.rows(batch, room)]


def next_prompt(frame: Frame, contents: Contents, batch: int, length: int) -> list[list[int]]:
    """A later turn's tokens: ``length`` of content in each row, and the template's around them."""
    return [[*frame.following, *row, *frame.answer] for row in contents.rows(batch, length)]
