"""What a process runs with: versions, variables, the command, the state of the code. Nothing secret is kept."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_SECRET = re.compile(
    r"(?:api|access|auth|secret|private|hub|hf|wandb|bearer)[_-]?(?:key|token)|passw|secret|credential|^(?:token|key)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"^(?:hf_|sk-|ghp_|github_pat_|glpat-|AKIA|eyJ)\w{8}|://[^/\s]*:[^/\s]*@")
HIDDEN = "(not kept)"
# Variables of these families that no table knows are named, and their values left out.
_FAMILIES = re.compile(r"(?:PY)?TORCH_|LCCL_|HCCL_|NCCL_|ASCEND_|ACL_|ATB_|CUDA_|CUDNN_|CUBLAS_|NPU_|DEEPSPEED_")
_FRAMEWORKS = (
    "PYTHONHASHSEED", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
    "ACCELERATE_MIXED_PRECISION", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_FSDP", "NVIDIA_TF32_OVERRIDE",
    "TOKENIZERS_PARALLELISM", "NPUPORT_SIM",
    "NPUPORT_DETERMINISTIC", "NPUPORT_NO_DROPOUT",
)  # fmt: skip
_LARGEST_CONFIG = 1 << 16  # bytes of a configuration file that are read


def versions() -> dict[str, str]:
    """Of Python, of every imported package that was installed, of CANN and the driver where they are."""
    from importlib import metadata

    distributions = _distributions()
    found = {"python": platform.python_version()}
    for module in {name.partition(".")[0] for name in list(sys.modules)}:
        for distribution in distributions.get(module, ()):
            found[distribution.lower().replace("_", "-")] = metadata.version(distribution)
    return {**dict(sorted(found.items())), **_ascend_versions()}


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Of each importable name; reading them all takes some tenths of a second."""
    from importlib import metadata

    return metadata.packages_distributions()


def _ascend_versions() -> dict[str, str]:
    home = Path(os.environ.get("ASCEND_HOME_PATH", "/usr/local/Ascend/ascend-toolkit/latest"))
    places = {
        "cann": [*sorted(home.glob("*-linux/ascend_toolkit_install.info")), home / "ascend_toolkit_install.info"],
        "ascend-driver": [Path("/usr/local/Ascend/driver/version.info")],
    }
    found: dict[str, str] = {}
    for name, files in places.items():
        for file in files:
            version = re.search(r"^version\s*=\s*(\S+)", _text(file), re.IGNORECASE | re.MULTILINE)
            if version is not None:
                found.setdefault(name, version[1])
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """The variables that numbers, devices and communication depend on; None for the value of one that is not known."""
    from npuport import facts

    known = {
        *(one.name for one in facts.all_ascend_variables()),
        *(one.name for one in facts.all_variables()),
        *(one.name for one in facts.all_determinism_variables()),
        *_FRAMEWORKS,
    }
    found: dict[str, str | None] = {}
    for name, value in sorted(environment.items()):
        if name in known and not _SECRET.search(name):
            found[name] = HIDDEN if _SECRET_VALUE.search(value) else value
        elif _FAMILIES.match(name):
            found[name] = None
    return found


def command_line(words: Iterable[str]) -> list[str]:
    """The words of a command, without what is secret."""
    kept: list[str] = []
    hide_next = False
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        is_secret = word.startswith("-") and bool(_SECRET.search(name))
        if hide_next or _SECRET_VALUE.search(word):
            kept.append(HIDDEN)
        elif is_secret and equals:
            kept.append(word[: -len(value)] + HIDDEN if value else word)
        else:
            kept.append(word)
        hide_next = is_secret and not equals
    return kept


def plain(values: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values as one level of names and numbers, truths and short texts; what is secret is named only."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if _SECRET.search(str(key)):
            found[name] = HIDDEN
        elif value is None or isinstance(value, bool | int | float):
            found[name] = value
        elif isinstance(value, str):
            found[name] = HIDDEN if _SECRET_VALUE.search(value) else value[:200]
        elif isinstance(value, Mapping):
            found.update(plain(value, f"{name}."))
        elif isinstance(value, list | tuple) and len(value) <= 16:
            found[name] = [one if isinstance(one, bool | int | float) else str(one)[:200] for one in value]
        elif isinstance(value, Path):
            found[name] = str(value)
    return found


def config_files(words: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The contents of YAML and JSON files that a command line names, by their base name."""
    found = {}
    for word in words:
        path = Path(word.rpartition("=")[2])
        if path.suffix in (".yaml", ".yml", ".json") and path.is_file() and path.stat().st_size <= _LARGEST_CONFIG:
            content = _parsed(path)
            if isinstance(content, Mapping):
                found[path.name] = plain(content)
    return found


def _parsed(path: Path) -> Any:
    import json

    import yaml

    text = _text(path)
    try:
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return None


def script_globals() -> dict[str, Any]:
    """Plain values that the script keeps in its own variables: scripts without an argument parser set them there."""
    main = sys.modules.get("__main__")
    values = {
        name: value
        for name, value in (vars(main) if main is not None else {}).items()
        if not name.startswith("_") and (value is None or isinstance(value, bool | int | float | str))
    }
    return plain(values)


def code_state() -> dict[str, Any]:
    """The script with the hash of its text, and the commit of its repository; ``dirty`` if tracked files changed."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if main is None:
        return {}
    path = Path(main).resolve()
    state: dict[str, Any] = {"script": path.name, "hash": short_hash(_text(path).encode())}
    commit = _git(path.parent, "rev-parse", "HEAD")
    if commit:
        state["commit"] = commit
        state["dirty"] = bool(_git(path.parent, "status", "--porcelain", "--untracked-files=no"))
    return state


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def short_hash(data: bytes | memoryview) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
