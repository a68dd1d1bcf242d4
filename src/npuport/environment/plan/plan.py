"""The exact versions for a wish, from the table of published releases; a pair that is not in it is refused."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from packaging.version import Version

from npuport.environment.plan.request import Request
from npuport.environment.releases import operator_package, release_key, same_release
from npuport.errors import UserError
from npuport.facts import Release, all_releases, chip_family, numpy_for, torchvision_for
from npuport.findings import Sentence, say

_PREFERRED_PYTHON = "3.11"  # torch_npu's documents: launches faster than 3.10
_SHOWN = 3


@dataclass(frozen=True)
class Plan:
    """Versions that go together. Fields that no document fills are None; ``packages`` are CANN's files to download."""

    request: Request
    release: Release
    python: str
    numpy: str | None
    torchvision: str | None
    packages: tuple[str, ...]  # with {arch} for the processor
    notes: tuple[Sentence, ...]


def make_plan(request: Request) -> Plan:
    """The newest fitting release that documents pair with a CANN, else the newest fitting one.

    Raises:
        UserError: no published release fits; the message names near ones.
    """
    fitting = [one for one in all_releases() if all(holds(one) for holds in _wishes(request).values())]
    if not fitting:
        raise UserError(
            "no published torch_npu goes with {wish}. Near are: {near}.",
            wish=_worded(request),
            near="; ".join(map(release_text, nearest(request))),
        )
    release = max(fitting, key=_preference)
    python = request.python or _python_of(release)
    return Plan(
        request=request,
        release=release,
        python=python,
        numpy=numpy_for(python),
        torchvision=torchvision_for(release.torch),
        packages=_packages(request, release),
        notes=tuple(_notes(request, release)),
    )


def nearest(request: Request) -> list[Release]:
    """The releases that fulfil most of the wish, from each way of giving part of it up the nearest, then the newest."""
    wishes = _wishes(request)
    kept = {one: frozenset(word for word, holds in wishes.items() if holds(one)) for one in all_releases()}
    most = max(map(len, kept.values()))
    ranked = sorted(all_releases(), key=_preference, reverse=True)
    ranked.sort(key=lambda one: _distance(request, one))
    queues: dict[frozenset[str], list[Release]] = {}
    for one in ranked:
        queue = queues.setdefault(kept[one], [])
        # Of releases for one torch that miss the same wish, one is enough.
        if "torch" in kept[one] or one.torch not in [each.torch for each in queue]:
            queue.append(one)
    queues = {words: queue for words, queue in queues.items() if len(words) == most}
    turns = zip_longest(*queues.values())
    return [one for turn in turns for one in turn if one is not None][:_SHOWN]


def _distance(request: Request, one: Release) -> tuple[int, ...]:
    """How far a release is from the torch and the CANN that are asked for, in steps between releases."""
    steps = []
    wanted = request.torch or (Version(request.torch_npu).base_version if request.torch_npu else "")
    if wanted:
        steps.append(
            _steps(sorted({Version(each.torch) for each in all_releases()}), Version(wanted), Version(one.torch))
        )
    if request.cann:
        known = sorted({release_key(each.cann) for each in all_releases() if each.cann})
        steps.append(_steps(known, release_key(request.cann), release_key(one.cann)) if one.cann else len(known))
    return tuple(steps)


def _steps(known: Sequence[Any], wanted: Any, here: Any) -> int:
    return abs(bisect_left(known, wanted) - bisect_left(known, here))


def release_text(one: Release) -> str:
    """``torch 2.7.1 + torch_npu 2.7.1.post2 + CANN 8.5.0 (Python 3.9 to 3.13)``."""
    cann = f" + CANN {one.cann}" if one.cann else ""
    python = f" (Python {one.python[0]} – {one.python[-1]})" if one.python else ""
    return f"torch {one.torch} + torch_npu {one.torch_npu}{cann}{python}"


def plan_rows(plan: Plan) -> list[tuple[Sentence, str]]:
    """A plan as names and values."""
    release, arch = plan.release, plan.request.arch or "<arch>"
    rows = [
        (say("torch"), release.torch),
        (say("torch_npu"), release.torch_npu),
        (say("CANN"), release.cann or "-"),
        (say("driver"), f"HDK {release.driver}" if release.driver else "-"),
        (say("Python"), plan.python or "-"),
        (say("NumPy"), plan.numpy or "-"),
        (say("torchvision"), plan.torchvision or "-"),
    ]
    rows += [(say("download"), name.format(arch=arch)) for name in plan.packages]
    return [*rows, (say("source"), str(release.basis))]


def _wishes(request: Request) -> dict[str, Callable[[Release], bool]]:
    """What is asked of a release, by the word for it."""
    wishes: dict[str, Callable[[Release], bool]] = {}
    if request.torch:
        wanted = Version(request.torch).release
        wishes["torch"] = lambda one: Version(one.torch).release[: len(wanted)] == wanted
    if request.torch_npu:
        wishes["torch_npu"] = lambda one: Version(one.torch_npu) == Version(request.torch_npu)
    if request.cann:
        wishes["CANN"] = lambda one: one.cann is not None and same_release(one.cann, request.cann)
    if request.python:
        # Where no document names the Pythons of a release, nothing speaks against one.
        wishes["Python"] = lambda one: not one.python or request.python in one.python
    return wishes


def _worded(request: Request) -> str:
    named = {"torch": request.torch, "torch_npu": request.torch_npu, "CANN": request.cann, "Python": request.python}
    return ", ".join(f"{name} {value}" for name, value in named.items() if value)


def _preference(one: Release) -> tuple[bool, bool, Version, Version]:
    return one.cann is not None, one.on_pypi, Version(one.torch), Version(one.torch_npu)


def _python_of(release: Release) -> str:
    if not release.python or _PREFERRED_PYTHON in release.python:
        return _PREFERRED_PYTHON if release.python else ""
    return release.python[-1]


def _packages(request: Request, release: Release) -> tuple[str, ...]:
    if release.cann is None:
        return ()
    names = ["Ascend-cann-toolkit"]
    if request.family:
        names.append(operator_package(chip_family(request.family), release.cann))
    names.append("Ascend-cann-nnal")
    return tuple(f"{name}_{release.cann}_linux-{{arch}}.run" for name in names)


def _notes(request: Request, release: Release) -> list[Sentence]:
    notes = []
    if release.cann is None:
        newest = max((one for one in all_releases() if one.cann), key=_preference)
        notes.append(
            say("No document pairs torch_npu {npu} with a CANN yet; the newest that is paired is {newest}.",
                npu=release.torch_npu, newest=release_text(newest))
        )  # fmt: skip
    if release.driver is None:
        notes.append(say("No document pairs a driver with this release: see the release notes of its CANN."))
    elif request.driver and release_key(request.driver) < release_key(release.driver):
        notes.append(
            say("Driver {driver} is older than {wanted}, which documents pair with this release: upgrade it first.",
                driver=request.driver, wanted=release.driver)
        )  # fmt: skip
    if not release.on_pypi:
        notes.append(say("This torch_npu is not on PyPI: download its wheel from the releases of Ascend/pytorch."))
    if not request.family:
        notes.append(say("Name the chip, and the plan names the package with its operators."))
    elif not chip_family(request.family).training:
        notes.append(say("{chip} is a chip for inference.", chip=request.chip or request.family))
    if request.system.lower().startswith("openeuler"):
        notes.append(say("On openEuler packages may lie in lib64: see ND603 before building Apex for Ascend."))
    return notes
