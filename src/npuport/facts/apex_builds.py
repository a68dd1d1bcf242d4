"""Apex for Ascend: what it is built from, and with which torch, Python and CANN its documents name it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from packaging.version import Version

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

APEX_COMMIT = "4ef930c1c884fdca5f472ab2ce7cb9b505d26c1a"
"""The commit of NVIDIA/apex that Ascend's patch is for (Ascend/apex, scripts/build.sh and README)."""

APEX_VERSION = "0.1+ascend"
"""The version that the patched Apex calls itself (Ascend/apex README: apex-0.1+ascend-….whl)."""

APEX_SETUPTOOLS = "65.7.0"
"""The newest setuptools that Apex for Ascend is documented to build with (Ascend/apex README)."""


@dataclass(frozen=True)
class ApexBuild:
    """A minor version of torch that Apex for Ascend is documented with. ``python`` is empty where no table says."""

    torch: str
    python: tuple[str, ...]
    cann: tuple[str, ...]
    basis: Basis


@cache
def apex_builds() -> tuple[ApexBuild, ...]:
    """All of them, newest torch first."""
    return tuple(
        ApexBuild(row["name"], tuple(row["python"].split()), tuple(row["cann"].split()), basis(row))
        for row in rows("apex_builds")
    )


def apex_build_for(torch_version: str) -> ApexBuild | None:
    """What is documented for a torch such as "2.6.0+cpu"; None where nothing is.

    Raises:
        packaging.version.InvalidVersion: ``torch_version`` is not a version.
    """
    release = Version(torch_version).release
    minor = ".".join(map(str, release[:2]))
    return next((build for build in apex_builds() if build.torch == minor), None)
