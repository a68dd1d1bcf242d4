"""What two machines, or two ranks, differ in: from the JSON that `npuport doctor --json` wrote on each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npuport.errors import UserError

# Differ between any two machines or ranks, and should.
_OWN = re.compile(
    r"user\.(?:host|folder)|network\.(?:device_addresses|listening|interfaces)|npus\.\d+\.memory_used|real_paths"
    r"|variables\.(?:RANK|LOCAL_RANK|DEVICE_ID|HCCL_IF_IP)$|packages\..*\.location|rank_table\.document"
)
# HCCL and torch want these equal on all machines of a job (EI0005, EI0008, EI0016).
_SHARED = re.compile(
    r"driver\.version|firmware$|chips$|canns\.|nnal\.version|system\.arch|python\.version"
    r"|packages\.(?:torch|torch-npu|torchvision|numpy|transformers|deepspeed|accelerate|mindspeed)$"
    r"|network\.tls|variables\.(?:HCCL_|ASCEND_|TORCH_HCCL_|PYTORCH_NPU_|MASTER_|WORLD_SIZE|INF_NAN_|TASK_QUEUE)"
)
_TOLERATED = ("requires", "tags")  # of a package: its version says the same


@dataclass(frozen=True)
class Difference:
    """One value that differs; None where a machine has none. ``must_agree`` within one job."""

    key: str
    first: str | None
    second: str | None
    must_agree: bool


def load(path: Path) -> Mapping[str, Any]:
    """The machine in a file.

    Raises:
        UserError: the file cannot be read or is not such a document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        environment = document["environment"]
        if not str(document["schema"]).startswith("npuport-environment/") or not isinstance(environment, dict):
            raise KeyError("schema")
    except OSError as error:
        raise UserError("{path} could not be read: {problem}", path=path, problem=error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            "{path} holds no machine. Write one on each: npuport doctor --json > machine.json", path=path
        ) from error
    return environment


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    """What differs, first what must agree within one job, each by name."""
    one, other = dict(_flat(_keyed(first))), dict(_flat(_keyed(second)))
    found = [
        Difference(key, one.get(key), other.get(key), bool(_SHARED.match(key)))
        for key in sorted({*one, *other})
        if one.get(key) != other.get(key) and not _OWN.match(key)
    ]
    return sorted(found, key=lambda each: (not each.must_agree, each.key))


def _keyed(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Packages by name (the one that Python imports), toolkits in use by place; the rest as it is."""
    keyed = dict(environment)
    packages: dict[str, Any] = {}
    for package in environment.get("packages") or []:
        packages.setdefault(str(package.get("name")), package.get("version"))
    keyed["packages"] = packages
    canns = environment.get("canns") or []
    keyed["canns"] = [one for one in canns if one.get("active")] or canns
    return keyed


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _TOLERATED:
                yield from _flat(part, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
        for number, part in enumerate(value):
            yield from _flat(part, f"{key}.{number}")
    elif value is not None:
        yield key, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
