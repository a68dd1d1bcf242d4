"""What a torch_npu profile says about itself: versions, rank, settings of the profiler, environment variables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npuport.findings import say
from npuport.performance.tables import Problem

_VERSIONS = {"torch_npu": "torch_npu_version", "cann": "cann_version", "torch": "torch_version"}
_SETTINGS = {
    "level": "_profiler_level",
    "metrics": "_aic_metrics",
    "stacks": "with_stack",
    "shapes": "record_shapes",
    "memory": "profile_memory",
    "collector_threshold_ms": "_gc_detect_threshold",
}


@dataclass(frozen=True, slots=True)
class RunInfo:
    """``rank`` is None where the profile does not say it."""

    rank: int | None = None
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()


def read_run_info(folder: Path, problems: list[Problem]) -> RunInfo:
    """From ``profiler_info[_RANK].json`` and ``profiler_metadata.json`` of one result folder."""
    info, rank = {}, None
    for path in sorted(folder.glob("profiler_info*.json")):
        info = _object(path, problems)
        in_name = re.search(r"_(\d+)\.json$", path.name)
        rank = _whole(info.get("rank_id", in_name and in_name.group(1)))
    config = info.get("config") if isinstance(info.get("config"), dict) else {}
    options: dict[str, Any] = {}
    for part in (config or {}).values():
        if isinstance(part, dict):
            options |= part
    file = folder / "profiler_metadata.json"
    metadata = _object(file, problems) if file.is_file() else {}
    variables = metadata.get("ENV_VARIABLES")
    return RunInfo(
        rank=rank,
        versions={ours: str(info[theirs]) for ours, theirs in _VERSIONS.items() if info.get(theirs)},
        settings={ours: options[theirs] for ours, theirs in _SETTINGS.items() if theirs in options},
        environment={str(name): str(value) for name, value in variables.items()} if isinstance(variables, dict) else {},
        groups=groups_of(metadata.get("parallel_group_info")),
    )


def groups_of(given: object) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Process groups from the profiler's table of them: {hash: {"group_name": "pp", "global_ranks": [0, 4]}}."""
    entries = given.values() if isinstance(given, dict) else ()
    return tuple(
        (str(one.get("group_name", "")), tuple(rank for rank in one["global_ranks"] if isinstance(rank, int)))
        for one in entries
        if isinstance(one, dict) and isinstance(one.get("global_ranks"), list)
    )


def _object(path: Path, problems: list[Problem]) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problems.append(Problem(path, say("it cannot be read ({reason})", reason=error)))
        return {}
    return value if isinstance(value, dict) else {}


def _whole(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None
