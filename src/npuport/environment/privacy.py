"""Names of people, machines and networks taken out of a text that is to be shown to strangers."""

from __future__ import annotations

import re

from npuport.environment.snapshot import User

_ADDRESS = re.compile(r"\b(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}\b(?!\.\d)")
_HOME = re.compile(r"(?<![\w.])/(home|Users)/[^/\s:,;'\")]+")
_COMMON = {"root", "user", "ubuntu", "admin"}
_SHORTEST = 3  # a shorter name would be found inside other words


def scrubbed(text: str, user: User) -> str:
    """The text with ``~`` for the home, and placeholders for user, host and IP addresses (not the loopback's)."""
    if len(user.home) > 1:
        text = text.replace(user.home, "~")
    text = _HOME.sub(r"/\1/<user>", text)
    for name, placeholder in ((user.host, "<host>"), (user.name, "<user>")):
        if len(name) >= _SHORTEST and name not in _COMMON:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", placeholder, text)
    return _ADDRESS.sub("<address>", text)
