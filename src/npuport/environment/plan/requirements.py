"""A list of requirements held against what torch_npu and CANN need: each line that clashes, and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from npuport.environment.checks.packages import LAST_CANN_WITH_OLD_NUMPY, base, fits
from npuport.environment.checks.registry import Problem, diagnosis
from npuport.environment.probes.packages import normalized
from npuport.environment.releases import release_key
from npuport.errors import UserError
from npuport.facts import Release, all_package_faults, all_releases, distribution, torch_npu_for, torchvision_for
from npuport.findings import Diagnosis, say

_CUDA_INDEX = re.compile(r"whl/(?:nightly/)?(cu\d+)")
_OLD_NUMPY = "1.26.4"


@dataclass(frozen=True)
class Line:
    """A line of a list: a requirement, or an option such as --extra-index-url."""

    place: str  # "requirements.txt:3"
    text: str
    requirement: Requirement | None

    @property
    def name(self) -> str:
        """The normalised name of what is required; empty for an option."""
        return normalized(self.requirement.name) if self.requirement else ""

    @property
    def version(self) -> str | None:
        """The one version that is allowed; None if it is open."""
        exact = [one for one in (self.requirement.specifier if self.requirement else ()) if one.operator == "=="]
        return exact[0].version if len(exact) == 1 and "*" not in exact[0].version else None


def read_requirements(path: Path, above: tuple[Path, ...] = ()) -> list[Line]:
    """The lines of a list and of the lists it names with -r.

    Raises:
        UserError: a file cannot be read, or a line is no requirement.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("{path} could not be read: {problem}", path=path, problem=error) from error
    lines: list[Line] = []
    for number, raw in enumerate(text.replace("\\\n", " ").splitlines(), start=1):
        content = re.sub(r"(^|\s)#.*$", "", raw).strip()
        nested = re.match(r"(?:-r|--requirement)[\s=]+(\S+)", content)
        if nested and (inner := path.parent / nested[1]).resolve() not in above:
            lines += read_requirements(inner, (*above, path.resolve()))
        elif content:
            lines.append(_line(f"{path}:{number}", content))
    return lines


def clashes(lines: Sequence[Line]) -> list[Diagnosis]:
    """What of a list does not go with an NPU, worst first."""
    held = {line.name: line for line in lines if line.name}
    found = [
        *_torch(held),
        *_indexes(lines),
        *_companions(held),
        *_unusable(held),
        *_faults(held),
    ]
    return sorted(found, key=lambda one: (one.severity.rank, one.code))


def _line(place: str, content: str) -> Line:
    if content.startswith("-"):
        return Line(place, content, None)
    try:
        # pip's own options may follow a requirement.
        return Line(place, content, Requirement(re.sub(r"\s+--\w.*$", "", content)))
    except InvalidRequirement as error:
        if re.match(r"[\w+]+:|\.|/", content):
            return Line(place, content, None)  # a path or address without a name
        raise UserError("{place} is no requirement: {problem}", place=place, problem=error) from error


def _torch(held: dict[str, Line]) -> Iterator[Diagnosis]:
    torch, torch_npu = held.get("torch"), held.get("torch-npu")
    if torch is None and torch_npu is None:
        return
    if torch is not None and torch.version is None:
        yield diagnosis("ND325", Problem(
            say("{place}: {text} leaves the version of torch open.", place=torch.place, text=torch.text),
            say("Hold torch at the version of torch_npu: {lines}.", lines=_pair(_newest(torch))),
        ))  # fmt: skip
    if torch_npu is None and torch is not None:
        release = _newest(torch)
        yield diagnosis("ND302", Problem(
            say("{place}: {text} without torch_npu.", place=torch.place, text=torch.text),
            say("Add a line: {line}", line=f"torch-npu=={release.torch_npu}") if release
            else say("No torch_npu is published for it; `npuport doctor --plan 'torch {version}'` names near ones.",
                     version=torch.version or ""),
        ))  # fmt: skip
    elif torch is not None and torch_npu is not None and torch.version and torch_npu.version:
        yield from _pairing(torch, torch_npu, torch.version, torch_npu.version)


def _pairing(torch: Line, torch_npu: Line, version: str, npu_version: str) -> Iterator[Diagnosis]:
    if base(version) != base(npu_version):
        release = _newest(torch)
        yield diagnosis("ND303", Problem(
            say("{place}: {text} is built for torch {wanted}; {other} asks for torch {version}.", place=torch_npu.place,
                text=torch_npu.text, wanted=base(npu_version), other=torch.place, version=version),
            say("Write a pair that exists: {lines}.",
                lines=_pair(release) if release else f"torch=={base(npu_version)}, {torch_npu.text}"),
        ))  # fmt: skip
    elif not any(one.torch_npu == npu_version for one in all_releases()):
        near = ", ".join(one.torch_npu for one in torch_npu_for(base(version))[:3])
        yield diagnosis("ND305", Problem(
            say("{place}: torch_npu {version} is not among the published releases.", place=torch_npu.place,
                version=npu_version),
            say("Published are: {near}.", near=near or "none"),
        ))  # fmt: skip


def _indexes(lines: Sequence[Line]) -> Iterator[Diagnosis]:
    for line in lines:
        cuda = _CUDA_INDEX.search(line.text) or re.search(r"\+(cu\d+)", line.text)
        if cuda:
            yield diagnosis("ND306", Problem(
                say("{place}: {text} asks for a CUDA build ({cuda}).", place=line.place, text=line.text, cuda=cuda[1]),
                say("Ask for the CPU build: {text}", text=line.text.replace(cuda[1], "cpu")),
            ))  # fmt: skip


def _companions(held: dict[str, Line]) -> Iterator[Diagnosis]:
    torch, vision, numpy = held.get("torch"), held.get("torchvision"), held.get("numpy")
    wanted = torchvision_for(base(torch.version)) if torch and torch.version else None
    if torch and vision and vision.version and wanted and base(vision.version) != wanted:
        yield diagnosis("ND310", Problem(
            say("{place}: {text}, but torch {version} goes with torchvision {wanted}.", place=vision.place,
                text=vision.text, version=torch.version, wanted=wanted),
            say("Write: {line}", line=f"torchvision=={wanted}"),
        ))  # fmt: skip
    release = _release(held)
    old = release is not None and release.cann is not None and _wants_old_numpy(release.cann)
    if numpy and numpy.requirement and release and old and not numpy.requirement.specifier.contains(_OLD_NUMPY):
        yield diagnosis("ND308", Problem(
            say("{place}: {text}, and torch_npu {npu} goes with CANN {cann}.", place=numpy.place, text=numpy.text,
                npu=release.torch_npu, cann=release.cann),
            say("Write: {line}", line="numpy<2"),
        ))  # fmt: skip


def _unusable(held: dict[str, Line]) -> Iterator[Diagnosis]:
    for line in held.values():
        library = distribution(line.name)
        nvidia = line.name.startswith("nvidia-")
        if nvidia or (library is not None and library.status in ("cuda-only", "replace")):
            yield diagnosis("ND314", Problem(
                say("{place}: {text} is written for CUDA.", place=line.place, text=line.text),
                say("Use {replacement} instead.", replacement=library.replacement) if library and library.replacement
                else say("Take the line out."),
            ))  # fmt: skip


def _faults(held: dict[str, Line]) -> Iterator[Diagnosis]:
    for fault in all_package_faults():
        line = held.get(fault.package)
        if line is None or line.version is None or not fits(line.version, fault.versions):
            continue
        beside = Requirement(fault.beside) if fault.beside else None
        other = held.get(normalized(beside.name)) if beside else None
        if beside is None or (other and other.version and fits(base(other.version), str(beside.specifier))):
            yield diagnosis("ND315", Problem(
                say("{place}: {text}: {cause} ({source})", place=line.place, text=line.text, cause=say(fault.cause),
                    source=fault.basis.source),
                say(fault.fix),
            ))  # fmt: skip


def _newest(torch: Line) -> Release | None:
    """The newest release for the torch that a line allows, best one that a document pairs with a CANN."""
    specifier = torch.requirement.specifier if torch.requirement else SpecifierSet()
    # A local part, as in 2.5.1+cu124, says how torch was built and not which it is.
    plain = SpecifierSet(re.sub(r"\+[\w.]+", "", str(specifier)))
    fitting = [one for one in all_releases() if plain.contains(one.torch) and one.on_pypi]
    return max(
        fitting, key=lambda one: (one.cann is not None, Version(one.torch), Version(one.torch_npu)), default=None
    )


def _release(held: dict[str, Line]) -> Release | None:
    line, torch = held.get("torch-npu"), held.get("torch")
    if line is not None and line.version:
        return next((one for one in all_releases() if one.torch_npu == line.version), None)
    return _newest(torch) if torch is not None else None


def _wants_old_numpy(cann: str) -> bool:
    return release_key(cann)[:2] <= LAST_CANN_WITH_OLD_NUMPY


def _pair(release: Release | None) -> str:
    return f"torch=={release.torch}, torch-npu=={release.torch_npu}" if release else "-"
