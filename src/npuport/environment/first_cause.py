"""Which of many errors of many ranks came first: causes go before what follows from them, and ranks that others wait
for before those that wait."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from npuport.environment.troubles import Logs, Trouble
from npuport.facts import error_code

_SOON = timedelta(seconds=60)
"""A cause that the same rank reports this soon after an effect is the cause of both: errors of the NPU are
asynchronous, so that the general message (a call of ACL failed) may come before the particular one."""

_WAITS_FOR = re.compile(
    r"remote ?[rR]ank:? ?\[(\d+)\]|remoteUserrank\[(\d+)\]|remote rank (\d+)"
    r"|\|\s*[\d.]+\((\d+)\)\s*\|[^|]*\|\s*[\d.]+\(\d+\)"
)
_LOST = re.compile(
    r"Location\[IP/ID\]:\[[^/\]]+/(\d+)\]|crimer rank ?\[[^/\]]+/(\d+)\]"  # HCCL spells it so
)
_MISSING = re.compile(r"Failed to connect agent\[([\d,]+)\]")
_CONNECTED = re.compile(r"connected rankinfo\[LINE \d+\]: (.*)")
_NEEDED = re.compile(r"need connect rankNum is \[(\d+)\]")
_SIZE = re.compile(r"rankSize\[(\d+)\]|world_size[=: ]+(\d+)")
_COLLECTIVE = re.compile(r"\btag\[([A-Z][A-Za-z]+?)_")


LOST = "HCCL lost its heartbeat: it ended, or its network is down"
STUCK = "HCCL saw that it got stuck"
MISSING = "it did not connect to rank 0 while the communicator was made"
OTHER_COLLECTIVE = "it waits in {call}, the others in {usual}"
SILENT = "it reports no error while others wait: it is slow, stuck, or was killed from outside"
AWAITED = "waited for by rank {ranks}"
REASONS = (LOST, STUCK, MISSING, OTHER_COLLECTIVE, SILENT, AWAITED)


@dataclass(frozen=True)
class Suspect:
    """A rank to look at, and why: one of ``REASONS`` with the values of its placeholders."""

    rank: int
    why: str
    values: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class FailedJob:
    """``first`` is what came first, None where every rank only waits for others (then ``suspects`` says for whom) or
    nothing went wrong. ``by_rank`` has the first trouble of each rank; rank None stands for lines that name none."""

    first: Trouble | None
    suspects: tuple[Suspect, ...]
    by_rank: dict[int | None, Trouble]
    unknown_codes: tuple[str, ...]


def explain_failure(logs: Logs) -> FailedJob:
    """Find the first cause in logs."""
    real = [trouble for trouble in logs.troubles if not trouble.is_harmless]
    by_rank = {rank: _of_rank([one for one in real if one.rank == rank]) for rank in _ranks(real)}
    causes = [trouble for trouble in by_rank.values() if not trouble.is_effect]
    first = _earliest(causes, logs.first_observed)
    return FailedJob(
        first=first,
        suspects=() if first is not None else tuple(_suspects(logs, real)),
        by_rank=by_rank,
        unknown_codes=tuple(_unknown(real)),
    )


def _ranks(troubles: Iterable[Trouble]) -> list[int | None]:
    named = {trouble.rank for trouble in troubles}
    return [*sorted(rank for rank in named if rank is not None), *([None] if None in named else [])]


def _of_rank(troubles: list[Trouble]) -> Trouble:
    """The first trouble of one rank, or the cause that it reports soon after it."""
    first = _in_time(troubles)[0]
    if not first.is_effect:
        return first
    for later in _in_time(troubles):
        soon = first.time is None or later.time is None or _between(first.time, later.time) <= _SOON
        if not later.is_effect and soon and (later.known is not None or later.exception):
            return later
    return first


def _in_time(troubles: list[Trouble]) -> list[Trouble]:
    """In order of time where all carry one of the same kind, else in the order of the logs."""
    times = [trouble.time for trouble in troubles]
    if all(time is not None for time in times) and len({time.year == 1900 for time in times if time is not None}) == 1:
        return sorted(troubles, key=lambda trouble: (trouble.time or datetime.min, trouble.order))
    return sorted(troubles, key=lambda trouble: trouble.order)


def _between(first: datetime, later: datetime) -> timedelta:
    return abs(later - first) if (first.year == 1900) == (later.year == 1900) else timedelta()


def _earliest(causes: list[Trouble], reported: int | None) -> Trouble | None:
    """The cause that came first. Where not all carry a time, the one whose rank the launcher saw fail first."""
    if not causes:
        return None
    ordered = _in_time(causes)
    timed = all(trouble.time is not None for trouble in causes)
    of_reported = [trouble for trouble in causes if trouble.rank == reported and reported is not None]
    return of_reported[0] if of_reported and not timed else ordered[0]


def _suspects(logs: Logs, troubles: list[Trouble]) -> Iterator[Suspect]:
    """The ranks that the others wait for, surest first, each once."""
    seen: set[int] = set()
    for suspect in (
        *_lost(troubles),
        *_missing(troubles),
        *_other_collective(troubles),
        *_silent(logs, troubles),
        *_awaited(troubles),
    ):
        if suspect.rank not in seen:
            seen.add(suspect.rank)
            yield suspect


def _lost(troubles: list[Trouble]) -> Iterator[Suspect]:
    for trouble in troubles:
        for groups in _LOST.findall(trouble.text):
            stuck = "stuck" in trouble.text.lower()
            yield Suspect(int(next(filter(None, groups))), STUCK if stuck else LOST)


def _missing(troubles: list[Trouble]) -> Iterator[Suspect]:
    connected: set[int] = set()
    needed = 0
    for trouble in troubles:
        for numbers in _MISSING.findall(trouble.text):
            yield from (Suspect(int(number), MISSING) for number in numbers.split(",") if number)
        for listed in _CONNECTED.findall(trouble.text):
            connected |= {int(number) for number in re.findall(r"\[(\d+)\]", listed)}
        for number in _NEEDED.findall(trouble.text):
            needed = max(needed, int(number))
    if connected and needed:
        yield from (Suspect(rank, MISSING) for rank in range(needed) if rank not in connected)


def _other_collective(troubles: list[Trouble]) -> Iterator[Suspect]:
    """Ranks that wait in another collective than most."""
    calls = {
        trouble.rank: found.group(1)
        for trouble in reversed(troubles)
        if trouble.rank is not None and (found := _COLLECTIVE.search(trouble.text)) is not None
    }
    if len(set(calls.values())) < 2:
        return
    usual, count = Counter(calls.values()).most_common(1)[0]
    if count * 2 <= len(calls):
        return
    for rank, call in sorted((rank, call) for rank, call in calls.items() if call != usual and rank is not None):
        yield Suspect(rank, OTHER_COLLECTIVE, {"call": call, "usual": usual})


def _silent(logs: Logs, troubles: list[Trouble]) -> Iterator[Suspect]:
    """Ranks that report nothing while others wait."""
    waiting = {trouble.rank for trouble in troubles if trouble.rank is not None}
    sizes = [int(next(filter(None, groups))) for trouble in troubles for groups in _SIZE.findall(trouble.text)]
    everyone = set(range(max(sizes))) if sizes else set(logs.ranks)
    if len(waiting) > 1 or (waiting and everyone):
        for rank in sorted(everyone - waiting):
            yield Suspect(rank, SILENT)


def _awaited(troubles: list[Trouble]) -> Iterator[Suspect]:
    """Ranks that others wait for: first those that do not wait themselves, then those that most wait for."""
    awaited: dict[int, set[int | None]] = {}
    for trouble in troubles:
        for groups in _WAITS_FOR.findall(trouble.text):
            other = int(next(filter(None, groups)))
            if other != trouble.rank:
                awaited.setdefault(other, set()).add(trouble.rank)
    waiting = {rank for ranks in awaited.values() for rank in ranks}
    for rank in sorted(awaited, key=lambda one: (one in waiting, -len(awaited[one]), one)):
        others = sorted(one for one in awaited[rank] if one is not None)
        yield Suspect(rank, AWAITED, {"ranks": ", ".join(map(str, others)) or "?"})


def _unknown(troubles: list[Trouble]) -> Iterator[str]:
    yield from dict.fromkeys(code for trouble in troubles for code in trouble.codes if error_code(code) is None)
