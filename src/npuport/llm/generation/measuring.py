"""Chats measured: each token by itself, greedy, with the keys and values of earlier tokens kept.

A turn's clock runs from the prompt's tokens on the host to the new token's id on the host, as a chat shows it; reading
the id back waits for the device. Tokens are chosen by argmax in a loop of our own: what a library of samplers costs on
the host is not in the figures.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from npuport.errors import UserError
from npuport.llm.devices import Device, memory_ran_out, peak_memory, reset_peak_memory, synchronize
from npuport.llm.generation.chat import Contents, Frame, first_prompt, next_prompt
from npuport.llm.generation.figures import CaseTimes, TurnTimes
from npuport.llm.loading import Loaded


@dataclass(frozen=True)
class Chats:
    """What is measured: each batch size with each context length.

    ``context`` is the first prompt's length in tokens, ``message`` that of each later message, ``answer`` that of each
    answer (no answer ends earlier). ``warm_ups`` whole chats of each case come first and do not count, for operators
    are compiled and memory is reserved at the first of each shape; ``repeats`` chats count.
    """

    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    turns: int
    message: int
    answer: int
    warm_ups: int
    repeats: int

    def cases(self) -> Iterator[tuple[int, int]]:
        """(batch, context), small ones first."""
        for context in sorted(set(self.contexts)):
            for batch in sorted(set(self.batches)):
                yield batch, context

    def longest(self, frame: Frame) -> int:
        """Tokens in the cache at the end of the longest chat."""
        later = self.message + len(frame.following) + len(frame.answer) + self.answer
        return max(self.contexts) + self.answer + (self.turns - 1) * later


def measure(
    loaded: Loaded, device: Device, chats: Chats, frame: Frame, said: Callable[[int, int], None]
) -> Iterator[CaseTimes]:
    """Every case, one after the other; ``said`` hears of each batch and context before it begins.

    A case for which the device has too little memory is one without turns, and the next one follows.

    Raises:
        UserError: a chat would be longer than the model allows.
    """
    longest = chats.longest(frame)
    if loaded.longest is not None and longest > loaded.longest:
        raise UserError(
            "the chats reach {length} tokens, and the model's longest context is {longest}. Shorten --context, "
            "--answer-tokens, --message-tokens or --turns.",
            length=longest,
            longest=loaded.longest,
        )
    for batch, context in chats.cases():
        said(batch, context)
        yield _case(loaded, device, chats, frame, batch, context)


Rows = Sequence[Sequence[int]]
# (token ids, cache or None) -> (the next token of each row on the host, the cache with these tokens in it)
Forward = Callable[[Rows, Any], tuple[list[list[int]], Any]]


@dataclass(frozen=True)
class Turn:
    """A turn of one chat before its context is computed afresh; ``history`` is all that the first token saw."""

    history: Rows
    computed: int
    first: float
    later: tuple[float, ...]


def _case(loaded: Loaded, device: Device, chats: Chats, frame: Frame, batch: int, context: int) -> CaseTimes:
    special = getattr(loaded.tokenizer, "all_special_ids", [])
    forward = forward_of(loaded.model, device)
    measured: list[TurnTimes] = []
    peak = 0
    try:
        for number in range(chats.warm_ups + chats.repeats):
            contents = Contents(loaded.vocabulary, special, seed=number)
            prompts = [first_prompt(frame, contents, batch, context)]
            prompts += [next_prompt(frame, contents, batch, chats.message) for _ in range(chats.turns - 1)]
            reset_peak_memory(device)
            turns = chat(forward, device, prompts, chats.answer)
            held = peak_memory(device)
            times = [_times(forward, device, place, one) for place, one in enumerate(turns, 1)]
            if number >= chats.warm_ups:
                peak = max(peak, held)
                measured += times
    except RuntimeError as error:
        if not memory_ran_out(error):
            raise
        return CaseTimes(batch, context, (), 0)
    return CaseTimes(batch, context, tuple(measured), peak)


def chat(forward: Forward, device: Device, prompts: Sequence[Rows], answer: int) -> list[Turn]:
    """A chat of as many turns as prompts (rows of ids, all of a prompt equally long), the cache kept between them."""
    history: list[list[int]] = [[] for _ in prompts[0]]
    token: list[list[int]] = [[] for _ in prompts[0]]  # the last token of an answer is not in the cache yet
    cache: Any = None
    turns = []
    for prompt in prompts:
        given = _joined(token, prompt)
        history = _joined(history, given)
        seen = history
        first, (token, cache) = _timed(device, partial(forward, given, cache))
        later = []
        for _ in range(answer - 1):
            history = _joined(history, token)
            seconds, (token, cache) = _timed(device, partial(forward, token, cache))
            later.append(seconds)
        turns.append(Turn(seen, len(given[0]), first, tuple(later)))
    return turns


def _times(forward: Forward, device: Device, number: int, turn: Turn) -> TurnTimes:
    """The turn's times, with that of its whole context computed afresh; the first turn's context is all its own."""
    afresh = turn.first if number == 1 else _timed(device, partial(forward, turn.history, None))[0]
    return TurnTimes(number, len(turn.history[0]), turn.computed, turn.first, afresh, turn.later)


def _joined(before: Rows, after: Rows) -> list[list[int]]:
    return [[*left, *right] for left, right in zip(before, after, strict=True)]


Result = TypeVar("Result")


def _timed(device: Device, work: Callable[[], Result]) -> tuple[float, Result]:
    synchronize(device)
    began = time.perf_counter()
    result = work()
    synchronize(device)
    return time.perf_counter() - began, result


def forward_of(model: Any, device: Device) -> Forward:
    """One pass of the model from ids on the host to ids on the host."""
    import torch

    parameters = inspect.signature(model.forward).parameters
    # Logits of a whole prompt would take more memory than its cache; models without the option compute them all.
    few = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
    kept = "cache" if "cache" in parameters else "past_key_values"  # its name in transformers 5.24, and before

    def forward(rows: Rows, cache: Any) -> tuple[list[list[int]], Any]:
        with torch.inference_mode():
            given = torch.tensor(rows, device=device.name)
            output = model(input_ids=given, use_cache=True, **{kept: cache}, **few)
            state = getattr(output, kept, None)
            if state is None:
                raise UserError(
                    "{model} hands no keys and values on that a next turn could use.", model=type(model).__name__
                )
            return output.logits[:, -1:].argmax(dim=-1).tolist(), state

    return forward
