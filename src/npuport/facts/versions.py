"""Which torch_npu goes with a torch, and which CANN, Python and driver go with that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from packaging.version import Version

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class Release:
    """One published torch_npu. Fields that no document fills are None or empty."""

    torch: str
    torch_npu: str
    release: str | None  # the name of the Ascend for PyTorch release, such as "7.3.0"
    cann: str | None
    python: tuple[str, ...]
    driver: str | None  # the HDK release, where a document pairs it
    on_pypi: bool
    basis: Basis


def torch_npu_for(torch_version: str) -> tuple[Release, ...]:
    """The releases for exactly this torch, such as "2.7.1" or "2.13.0+cpu", newest first; () if there is none.

    Raises:
        packaging.version.InvalidVersion: ``torch_version`` is not a version.
    """
    wanted = Version(Version(torch_version).base_version)
    fitting = [release for release in all_releases() if Version(release.torch) == wanted]
    return tuple(sorted(fitting, key=lambda release: Version(release.torch_npu), reverse=True))


@cache
def all_releases() -> tuple[Release, ...]:
    """Every published torch_npu that is known, newest torch first."""
    return tuple(
        Release(
            torch=row["torch"],
            torch_npu=row["torch_npu"],
            release=row["release"] or None,
            cann=row["cann"] or None,
            python=tuple(row["python"].split()),
            driver=row["driver"] or None,
            on_pypi=row["on_pypi"] == "yes",
            basis=basis(row),
        )
        for row in rows("versions")
    )
