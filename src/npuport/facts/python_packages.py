"""Python packages around torch and CANN: which versions belong together, and which are known to fail."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class PackageFault:
    """A version of a package that fails on Ascend, alone or beside another.

    ``versions`` and ``beside`` are specifiers (PEP 440; empty means any), the latter with a name in front:
    "torch<2.5.1". ``cause`` and ``fix`` are English sentences.
    """

    name: str
    package: str
    versions: str
    beside: str
    cause: str
    fix: str
    basis: Basis


@cache
def cann_python_packages() -> tuple[str, ...]:
    """The distributions that CANN's operator compiler imports."""
    return tuple(row["name"] for row in rows("cann_python"))


@cache
def all_package_faults() -> tuple[PackageFault, ...]:
    """Every known fault, in the order of the table."""
    return tuple(
        PackageFault(
            name=row["name"],
            package=row["package"],
            versions=row["versions"],
            beside=row["beside"],
            cause=row["cause"],
            fix=row["fix"],
            basis=basis(row),
        )
        for row in rows("package_faults")
    )


def torchvision_for(torch_version: str) -> str | None:
    """The torchvision of a torch such as "2.7.1"; None if no source pairs it."""
    return next((row["name"] for row in rows("torchvision") if row["torch"] == torch_version), None)


def numpy_for(python_version: str) -> str | None:
    """The NumPy that torch_npu's documents install with a Python such as "3.11"; None if they say nothing."""
    return next((row["numpy"] for row in rows("numpy") if row["name"] == python_version), None)
