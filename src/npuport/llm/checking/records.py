"""What a training record holds: its kind by its fields, and its text or dialogue, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ANSWERS = frozenset({"assistant", "gpt", "bot", "chatgpt", "model"})
_QUESTIONS = frozenset({"user", "human"})
ROLES = (
    ANSWERS | _QUESTIONS | {"system", "tool", "function", "observation", "function_call", "developer", "environment"}
)

# Of Alpaca, ShareGPT, OpenAI's messages, prompt and completion, preferences, plain text and token ids.
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("token ids", ("input_ids",)),
    ("preference", ("chosen", "rejected")),
    ("preference", ("chosen_messages", "rejected_messages")),
    ("messages", ("messages",)),
    ("messages", ("conversations",)),
    ("instruction", ("instruction", "output")),
    ("instruction", ("prompt", "completion")),
    ("instruction", ("prompt", "response")),
    ("text", ("text",)),
)


@dataclass(frozen=True)
class Turn:
    """A message: who speaks, and what; ``is_ids`` where it is given as token ids, which `data pack` takes too."""

    role: str
    text: str
    is_ids: bool = False


def kind_of(fields: Mapping[str, Any]) -> str:
    """ "token ids", "messages", "preference", "instruction" or "text"; "" where the fields tell nothing."""
    return next((kind for kind, names in _KINDS if all(name in fields for name in names)), "")


def turns_of(kind: str, fields: Mapping[str, Any]) -> list[Turn] | None:
    """The messages of a record, the text of a document as one turn of no role; None where it is malformed."""
    if kind == "text":
        return _turns([("", fields["text"])], ids=True)
    if kind == "instruction":
        return _instruction(fields)
    if kind == "preference":
        return _preference(fields)
    messages = fields.get("messages", fields.get("conversations"))
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        return None
    return _turns([(one.get("role", one.get("from")), _content(one)) for one in messages], ids=True)


def are_ids(value: object) -> bool:
    """Whether it is a list of whole numbers."""
    return isinstance(value, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in value)


def is_question(role: str) -> bool:
    """Whether a person asks."""
    return role in _QUESTIONS


def _instruction(fields: Mapping[str, Any]) -> list[Turn] | None:
    asked = fields.get("instruction", fields.get("prompt"))
    more = fields.get("input") or ""
    answer = next((fields[name] for name in ("output", "completion", "response") if name in fields), None)
    if not isinstance(asked, str) or not isinstance(more, str):
        return None
    return _turns([("user", f"{asked}\n{more}" if more else asked), ("assistant", answer)])


def _preference(fields: Mapping[str, Any]) -> list[Turn] | None:
    """What was asked, where it stands apart, and both answers."""
    asked: Any = next((fields[name] for name in ("prompt", "conversations", "messages") if fields.get(name)), [])
    asked = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    answers = [fields.get(name, fields.get(f"{name}_messages")) for name in ("chosen", "rejected")]
    # An answer may be a whole dialogue, which ends with it.
    answers = [one[-1] if isinstance(one, list) and one else one for one in answers]
    answers = [{"role": "assistant", "content": _content(one) if isinstance(one, dict) else one} for one in answers]
    return turns_of("messages", {"messages": [*asked, *answers]}) if isinstance(asked, list) else None


def _content(message: Mapping[str, Any]) -> Any:
    """The text of a message; a call of tools, or pictures beside the text, are text enough."""
    content = message.get("content", message.get("value"))
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return " ".join(str(part.get("text", part.get("value", part.get("type", "")))) for part in content)
    if not content and message.get("tool_calls"):
        return str(message["tool_calls"])
    return content


def _turns(pairs: list[tuple[Any, Any]], *, ids: bool = False) -> list[Turn] | None:
    """With ``ids``, contents may be lists of token ids."""
    if not all(isinstance(role, str) and (isinstance(text, str) or (ids and are_ids(text))) for role, text in pairs):
        return None
    return [
        Turn(role, text) if isinstance(text, str) else Turn(role, " ".join(map(str, text)), is_ids=True)
        for role, text in pairs
    ]
