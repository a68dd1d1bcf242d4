"""Records as token ids, with the tokens that the loss counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from npuport.errors import UserError, first_line
from npuport.llm.packing.ragged import Ragged, ragged
from npuport.llm.packing.reading import Piece, given_ids

_LARGEST = 2**31 - 1
Encoded = tuple[Sequence[int], Sequence[bool]]
"""Token ids of one record, and which of them the loss counts."""


class Tokenizer(Protocol):
    """What is used of a tokenizer of transformers."""

    chat_template: Any

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any: ...
    def __call__(self, text: Any, **options: Any) -> Any: ...


@dataclass(frozen=True)
class RoleTokens:
    """A dialogue's form by token ids: what opens a message of each role, and what ends every message.

    The content and the end of an answer are in the loss; what opens it is not.
    """

    opening: Mapping[str, Sequence[int]]
    end: Sequence[int] = ()
    answers: str = "assistant"


def load_tokenizer(source: str) -> Tokenizer:
    """A tokenizer of transformers, from a folder or by its name.

    Raises:
        UserError: transformers is missing, or there is no fast tokenizer of that name.
    """
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # words become numbers: no NPU is needed, nor CANN
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise UserError("--tokenizer takes the package transformers:\n  pip install transformers") from error
    loader: Any = AutoTokenizer
    try:
        tokenizer = loader.from_pretrained(source)
    except (OSError, ValueError) as error:
        reason = first_line(error)
        raise UserError("no tokenizer can be loaded from {source}: {reason}", source=source, reason=reason) from error
    if not tokenizer.is_fast:
        raise UserError(
            "the tokenizer {source} says of no token where in the text it stands: one with a tokenizer.json does.",
            source=source,
        )
    loaded: Tokenizer = tokenizer
    return loaded


def encoded(
    piece: Piece, *, field: str, labels: str | None, encode: Callable[[Sequence[Any]], list[Encoded]]
) -> Ragged:
    """The records of a piece: ``field`` holds ids already, or what ``encode`` makes ids of.

    Raises:
        UserError: a record has no such field, or labels of another length.
    """
    direct = _directly(piece, field, labels)
    if direct is not None:
        return _with_valid_ids(direct, piece)
    values, masks = [], []
    for position, row in enumerate(piece.rows()):
        place = piece.place(piece.first + position)
        value = row.get(field)
        if value is None:
            raise UserError(
                "{place} has no {field}: it has {fields}.", place=place, field=field, fields=", ".join(row) or "nothing"
            )
        values.append(value)
        masks.append(_given_labels(row.get(labels), place, labels) if labels else None)
    if all(_is_ids(value) for value in values):
        rows: list[Encoded] = [(value, [True] * len(value)) for value in values]
    else:
        try:
            rows = encode(values)
        except MalformedRecord as error:
            place = piece.place(piece.first + error.position)
            raise UserError("{place} cannot be packed: {reason}.", place=place, reason=error.reason) from error
    for position, mask in enumerate(masks):
        if mask is None:
            continue
        if len(mask) != len(rows[position][0]):
            raise UserError(
                "{place}: {labels} has {given} entries for {tokens} tokens.",
                place=piece.place(piece.first + position),
                labels=labels,
                given=len(mask),
                tokens=len(rows[position][0]),
            )
        if any(0 <= label != token for token, label in zip(rows[position][0], mask, strict=True)):
            raise UserError(
                "{place}: {labels} is neither negative nor the token's own id somewhere.",
                place=piece.place(piece.first + position),
                labels=labels,
            )
        rows[position] = (rows[position][0], [label >= 0 for label in mask])
    for position, (ids, _) in enumerate(rows):
        if not all(isinstance(token, int) and token <= _LARGEST for token in ids):
            raise _bad_ids(piece.place(piece.first + position))
    return _with_valid_ids(ragged((ids for ids, _ in rows), (mask for _, mask in rows), piece.first), piece)


def _with_valid_ids(records: Ragged, piece: Piece) -> Ragged:
    negative = np.flatnonzero(records.tokens < 0)
    if len(negative):
        position = int(np.searchsorted(records.offsets, negative[0], side="right")) - 1
        raise _bad_ids(piece.place(piece.first + position))
    return records


def _bad_ids(place: str) -> UserError:
    return UserError(
        "{place} holds something that is no token id: ids are whole numbers from 0 to 2147483647.", place=place
    )


class MalformedRecord(Exception):
    """A record of a piece, by its position, that cannot be encoded."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


def _directly(piece: Piece, field: str, labels: str | None) -> Ragged | None:
    names = getattr(getattr(piece.records, "schema", None), "names", ())
    if field not in names or (labels and labels not in names):
        return None
    return given_ids(piece.records, field, labels, piece.first)


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and (not value or isinstance(value[0], int))


def _given_labels(labels: Any, place: str, name: str) -> list[int]:
    if not _is_ids(labels) or not all(isinstance(label, int) for label in labels):
        raise UserError("{place}: {field} is no list of ids.", place=place, field=name)
    given: list[int] = labels
    return given


def encode_texts(tokenizer: Tokenizer | None) -> Callable[[Sequence[Any]], list[Encoded]]:
    """Plain texts: every token counts."""

    def encode(texts: Sequence[Any]) -> list[Encoded]:
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise MalformedRecord(position, f"{type(text).__name__} is neither text nor a list of ids")
        if tokenizer is None:
            raise UserError("the records hold text: name its tokenizer with --tokenizer.")
        rows = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return [(row, [True] * len(row)) for row in rows]

    return encode


def encode_by_roles(roles: RoleTokens, tokenizer: Tokenizer | None) -> Callable[[Sequence[Any]], list[Encoded]]:
    """Dialogues by role tokens; contents are text, or ids already."""

    def encode(dialogues: Sequence[Any]) -> list[Encoded]:
        contents = [
            _checked(message, position, roles)
            for position, dialogue in enumerate(dialogues)
            for message in _messages(dialogue, position)
        ]
        texts = [content for content in contents if isinstance(content, str)]
        if texts and tokenizer is None:
            raise UserError("the records hold text: name its tokenizer with --tokenizer.")
        ids = iter(tokenizer(texts, add_special_tokens=False)["input_ids"] if tokenizer is not None and texts else ())
        tokens = iter([next(ids) if isinstance(content, str) else content for content in contents])
        return [_joined(dialogue, tokens, roles) for dialogue in dialogues]

    return encode


def _messages(dialogue: Any, position: int) -> list[Any]:
    if not isinstance(dialogue, list) or not all(isinstance(message, dict) for message in dialogue):
        raise MalformedRecord(position, "a dialogue is a list of messages with role and content")
    return dialogue


def _checked(message: dict[str, Any], position: int, roles: RoleTokens) -> Any:
    role, content = message.get("role"), message.get("content")
    if role not in roles.opening:
        raise MalformedRecord(position, f"the role {role!r} has no tokens; --role gives them")
    if not (isinstance(content, str) or _is_ids(content)):
        raise MalformedRecord(position, "a message has no content that is text or a list of ids")
    return content


def _joined(dialogue: Sequence[dict[str, Any]], contents: Any, roles: RoleTokens) -> Encoded:
    ids: list[int] = []
    learned: list[bool] = []
    for message in dialogue:
        opening, body = roles.opening[message["role"]], [*next(contents), *roles.end]
        ids += [*opening, *body]
        learned += [False] * len(opening) + [message["role"] == roles.answers] * len(body)
    return ids, learned


def encode_by_template(tokenizer: Tokenizer, answers: str = "assistant") -> Callable[[Sequence[Any]], list[Encoded]]:
    """Dialogues by the tokenizer's chat template.

    An answer is what the template adds for it after the opening that it gives for generation; so its end of turn is
    in the loss, as generation has to stop there. The dialogue is tokenized whole, as in use.
    """

    def encode(dialogues: Sequence[Any]) -> list[Encoded]:
        whole, spans = [], []
        for position, dialogue in enumerate(dialogues):
            text, answered = _rendered(tokenizer, _messages(dialogue, position), position, answers)
            whole.append(text)
            spans.append(answered)
        both = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
        return [
            (ids, _within(offsets, answered))
            for ids, offsets, answered in zip(both["input_ids"], both["offset_mapping"], spans, strict=True)
        ]

    return encode


def _rendered(
    tokenizer: Tokenizer, messages: list[Any], position: int, answers: str
) -> tuple[str, list[tuple[int, int]]]:
    """The text of a dialogue, and where its answers begin and end in it."""

    def render(number: int, opening: bool = False) -> str:
        try:
            text: str = tokenizer.apply_chat_template(messages[:number], tokenize=False, add_generation_prompt=opening)
        except Exception as error:  # templates raise what they like
            raise MalformedRecord(position, f"the chat template says: {error}") from error
        return text

    if not messages:
        return "", []
    text = render(len(messages))
    spans = []
    for index, message in enumerate(messages):
        if message.get("role") != answers:
            continue
        before = render(index, opening=True) if index else ""
        after = text if index + 1 == len(messages) else render(index + 1)
        if not (text.startswith(before) and text.startswith(after) and after.startswith(before)):
            reason = "the chat template writes an earlier part otherwise when more follows; use --role instead"
            raise MalformedRecord(position, reason)
        spans.append((len(before), len(after)))
    return text, spans


def _within(offsets: Any, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Which tokens begin inside of a span and are not empty."""
    places = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    inside = np.zeros(len(places), dtype=np.bool_)
    for begin, end in spans:
        inside |= (places[:, 0] >= begin) & (places[:, 0] < end) & (places[:, 1] > places[:, 0])
    learned: list[bool] = inside.tolist()
    return learned
