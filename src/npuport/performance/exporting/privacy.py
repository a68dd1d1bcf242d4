"""Leaving out of a profile what says whose it is: host names and the paths of home folders and projects."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from npuport.performance.tables import Profile

# What stands before the last folder and file of a path with at least three parts: "/home/me/project/model/layer.py".
# A path that does not begin at a root is one inside of a package, and stays.
_PATH = r"\B(?:[/\\][^/\\:;(),\s]+)+[/\\]([^/\\:;(),\s]+[/\\][^/\\:;(),\s]+)"
_DRIVE = r"\b[A-Za-z]:(?:[/\\][^/\\:;(),\s]+)*[/\\]([^/\\:;(),\s]+[/\\][^/\\:;(),\s]+)"
_ADDRESS = r"\b\d{1,3}(?:\.\d{1,3}){3}\b"
_INTERFACE = r"%[A-Za-z0-9_.-]+"  # behind an address, in the name of a process group
_INSTEAD = ((_DRIVE, "$1"), (_PATH, "$1"), (_ADDRESS, "host"), (_INTERFACE, ""))


def scrubbed(profile: Profile) -> Profile:
    """The profile without host names, addresses and leading folders; values of environment variables are left out."""
    return replace(
        profile,
        events=_texts_scrubbed(profile.events),
        kernels=_texts_scrubbed(profile.kernels),
        communication=_texts_scrubbed(profile.communication),
        allocations=_texts_scrubbed(profile.allocations),
        collectives=_texts_scrubbed(profile.collectives),
        transfers=_texts_scrubbed(profile.transfers),
        links=_texts_scrubbed(profile.links),
        environment={},
    )


def scrubbed_text(text: str) -> str:
    """One text, as those of a profile are scrubbed."""
    for pattern, instead in _INSTEAD:
        text = re.sub(pattern, instead.replace("$", "\\"), text)
    return text


def _texts_scrubbed(frame: pl.DataFrame) -> pl.DataFrame:
    texts = [name for name, kind in frame.schema.items() if kind == pl.Categorical]
    if not texts:
        return frame
    plain = pl.col(texts).cast(pl.String)
    for pattern, instead in _INSTEAD:
        plain = plain.str.replace_all(pattern, instead)
    return frame.with_columns(plain.cast(pl.Categorical))
