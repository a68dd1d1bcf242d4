"""torch, torch_npu and the packages around them: which of them do not fit one another, CANN, or Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from npuport.environment.checks.registry import Problem, check
from npuport.environment.probes.packages import normalized
from npuport.environment.releases import release_key, same_release, table_release
from npuport.environment.snapshot import Environment, Package
from npuport.facts import (
    Release,
    all_package_faults,
    all_releases,
    cann_python_packages,
    distribution,
    torch_npu_for,
    torchvision_for,
)
from npuport.findings import say

LAST_CANN_WITH_OLD_NUMPY = (8, 2)
_TIED_TO_TORCH = ("torchvision", "torchaudio", "torch-npu")


def base(version: str) -> str:
    """ "2.7.1" of "2.7.1.post2" or "2.7.1+cpu"; the text itself where it is no version."""
    try:
        return Version(version).base_version
    except InvalidVersion:
        return version


def fits(version: str, specifier: str) -> bool:
    """Whether a version is within a specifier; an empty one takes all, what is no version fits nothing else."""
    try:
        return not specifier or SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return False


def release_of(env: Environment) -> Release | None:
    """The published release that is installed; None for a daily or private build."""
    package = env.package("torch-npu")
    return next((one for one in all_releases() if package and one.torch_npu == package.version), None)


@check("ND301")
def no_torch(env: Environment) -> Iterator[Problem]:
    """torch_npu without torch, or an NPU without either."""
    torch_npu = env.package("torch-npu")
    if env.package("torch") is None and (torch_npu or env.has_npu):
        wanted = f"=={base(torch_npu.version)}" if torch_npu else ""
        yield Problem(
            say("torch is not installed in {python}.", python=env.python.executable),
            say("Install the CPU build of torch, then its torch_npu; check which Python runs the training."),
            (f"pip install torch{wanted} --index-url https://download.pytorch.org/whl/cpu",),
        )


@check("ND302")
def no_torch_npu(env: Environment) -> Iterator[Problem]:
    """torch without torch_npu on a machine with an NPU."""
    torch = env.package("torch")
    if torch is None or env.package("torch-npu") or not env.has_npu:
        return
    releases = [one for one in _releases_for(torch.version) if one.on_pypi]
    line = table_release(env.cann.version) if env.cann else ""
    fitting = [one for one in releases if one.cann == line] or releases
    if fitting:
        yield Problem(
            say("torch {torch} is installed without torch_npu.", torch=torch.version),
            say("Install the torch_npu of this torch."),
            (f"pip install torch-npu=={fitting[0].torch_npu}",),
        )
    else:
        yield Problem(
            say("torch {torch} is installed without torch_npu, and no torch_npu for it is published.",
                torch=torch.version),
            say("Choose a torch that has one; `npuport doctor --plan` names them."),
        )  # fmt: skip


@check("ND303")
def torch_npu_for_other_torch(env: Environment) -> Iterator[Problem]:
    """torch and torch_npu are of different versions."""
    torch, torch_npu = env.package("torch"), env.package("torch-npu")
    if torch is None or torch_npu is None or base(torch.version) == base(torch_npu.version):
        return
    yield Problem(
        say("torch {torch} is installed, but torch_npu {npu} is built for torch {wanted}.", torch=torch.version,
            npu=torch_npu.version, wanted=base(torch_npu.version)),
        say("Bring back the torch that torch_npu wants, or install the torch_npu of this torch. To import torch alone "
            "meanwhile, set TORCH_DEVICE_BACKEND_AUTOLOAD=0."),
        (f"pip install torch=={base(torch_npu.version)}",),
    )  # fmt: skip


@check("ND304")
def torch_npu_for_other_cann(env: Environment) -> Iterator[Problem]:
    """torch_npu and CANN are not of one row of the table of versions."""
    release, cann, torch = release_of(env), env.cann, env.package("torch")
    if release is None or release.cann is None or cann is None:
        return
    line = table_release(cann.version)
    if same_release(release.cann, line):
        return
    others = [one.torch_npu for one in torch_npu_for(release.torch) if one.cann and same_release(one.cann, line)]
    served = sorted({one.torch for one in all_releases() if one.cann and same_release(one.cann, line)})
    seen = say("torch_npu {npu} is paired with CANN {wanted}; CANN {cann} is in use.", npu=release.torch_npu,
               wanted=release.cann, cann=cann.version)  # fmt: skip
    if others and torch is not None:
        yield Problem(seen, say("Install the torch_npu of this torch for this CANN, or CANN {wanted}.",
                                wanted=release.cann), (f"pip install torch-npu=={others[0]}",))  # fmt: skip
    elif served:
        yield Problem(seen, say("Install CANN {wanted}, or one of torch {torches}, which CANN {cann} serves.",
                                wanted=release.cann, torches=", ".join(served), cann=cann.version))  # fmt: skip
    else:
        yield Problem(seen, say("Install CANN {wanted}.", wanted=release.cann))


@check("ND305")
def torch_npu_release_unknown(env: Environment) -> Iterator[Problem]:
    """A daily or private build of torch_npu, or one newer than the table."""
    package = env.package("torch-npu")
    if package is not None and release_of(env) is None:
        near = [one.torch_npu for one in _releases_for(package.version)]
        yield Problem(
            say("torch_npu {version} is not among the published releases.", version=package.version),
            say("If imports end with undefined symbols, install a published one: {near}.", near=", ".join(near[:4]))
            if near
            else say(
                "If imports end with undefined symbols, install a published one; `npuport doctor --plan` names them."
            ),
        )


@check("ND306")
def torch_for_cuda(env: Environment) -> Iterator[Problem]:
    """The CUDA build of torch on a machine with an NPU."""
    package = env.package("torch")
    if package is None or env.torch is None or not env.torch.cuda or not env.has_npu:
        return
    yield Problem(
        say("torch {version} is built for CUDA {cuda}.", version=env.torch.version, cuda=env.torch.cuda),
        say("Install the CPU build of the same version."),
        (f"pip install torch=={base(package.version)}+cpu --index-url https://download.pytorch.org/whl/cpu",),
    )


@check("ND307")
def python_not_served(env: Environment) -> Iterator[Problem]:
    """torch_npu of this release has no build for this Python."""
    release = release_of(env)
    version = ".".join(env.python.version.split(".")[:2])
    if release is not None and release.python and version not in release.python:
        yield Problem(
            say("torch_npu {npu} is built for Python {pythons}; this is Python {version}.", npu=release.torch_npu,
                pythons=", ".join(release.python), version=version),
            say("Make an environment with one of them."),
            (f"conda create -n npu python={release.python[-1]}",),
        )  # fmt: skip


@check("ND308")
def numpy_too_new_for_cann(env: Environment) -> Iterator[Problem]:
    """NumPy 2 beside a CANN whose operator compiler cannot take it."""
    numpy = env.package("numpy")
    if numpy is None or not fits(numpy.version, ">=2"):
        return
    for cann in [env.cann] if env.cann else []:
        if release_key(cann.version)[:2] <= LAST_CANN_WITH_OLD_NUMPY:
            yield Problem(
                say("NumPy {numpy} is installed beside CANN {cann}.", numpy=numpy.version, cann=cann.version),
                say("Install NumPy 1.26 and hold it there."),
                ("pip install 'numpy<2'",),
            )


@check("ND309")
def package_for_cann_missing(env: Environment) -> Iterator[Problem]:
    """Packages that CANN's operator compiler imports are missing."""
    missing = [name for name in cann_python_packages() if env.package(normalized(name)) is None]
    if missing and env.canns:
        yield Problem(
            say("Missing in {python}: {names}.", python=env.python.executable, names=", ".join(missing)),
            say("Install them in the Python that trains."),
            (f"pip install {' '.join(missing)}",),
        )


@check("ND310")
def requirement_unmet(env: Environment) -> Iterator[Problem]:
    """A package wants another version of torch, torch_npu, NumPy or transformers than the one installed."""
    for package in _first_of_each(env):
        for line in package.requires:
            needed = _unmet(env, line)
            if needed is None or (package.name == "torch-npu" and needed.name == "torch"):
                continue  # ND303 speaks of torch_npu and torch
            name = normalized(needed.name)
            installed = env.package(name)
            yield Problem(
                say("{package} {version} wants {needed}; {installed} is installed.", package=package.name,
                    version=package.version, needed=str(needed).split(";")[0].strip(),
                    installed=installed.version if installed else "nothing"),
                say("Install a {package} that fits; leave torch as it is.", package=package.name),
                tuple(_fitting_command(env, package)),
            )  # fmt: skip


@check("ND311")
def package_installed_twice(env: Environment) -> Iterator[Problem]:
    """Two copies of torch or torch_npu, or pip's record and the files disagree."""
    for name in ("torch", "torch-npu", "numpy"):
        copies = [one for one in env.packages if one.name == name]
        if len({(one.version, one.location) for one in copies}) > 1:
            places = ", ".join(f"{one.version} ({one.location})" for one in copies)
            yield Problem(
                say("{name} is installed more than once: {places}.", name=name, places=places),
                say(
                    "Uninstall it until pip finds none, then install the one you want; unset PYTHONPATH if it adds one."
                ),
                (f"pip uninstall -y {name}",),
            )
    package = env.package("torch")
    if package is not None and env.torch is not None and base(env.torch.version) != base(package.version):
        yield Problem(
            say("pip's record says torch {record}, the files are torch {files}.", record=package.version,
                files=env.torch.version),
            say("Uninstall torch until pip finds none, then install the one you want."),
            ("pip uninstall -y torch",),
        )  # fmt: skip


@check("ND314")
def cuda_only_package(env: Environment) -> Iterator[Problem]:
    """Installed packages that cannot work on an NPU."""
    if not env.has_npu:
        return
    for package in _first_of_each(env):
        library = distribution(package.name)
        if library is not None and library.status in ("cuda-only", "replace"):
            yield Problem(
                say("{package} {version} is installed.", package=package.name, version=package.version),
                say("Use {replacement} instead.", replacement=library.replacement)
                if library.replacement
                else say("Nothing takes its place; see `npuport explain {package}`.", package=package.name),
            )


@check("ND315")
def known_fault_of_package(env: Environment) -> Iterator[Problem]:
    """Versions that are known to fail on Ascend."""
    for fault in all_package_faults():
        package = env.package(fault.package)
        if package is None or not fits(package.version, fault.versions):
            continue
        beside = Requirement(fault.beside) if fault.beside else None
        other = env.package(normalized(beside.name)) if beside else None
        if beside is not None and (other is None or not fits(base(other.version), str(beside.specifier))):
            continue
        yield Problem(
            say("{package} {version}: {cause} ({source})", package=package.name, version=package.version,
                cause=say(fault.cause), source=fault.basis.source),
            say(fault.fix),
        )  # fmt: skip


@check("ND322")
def torch_npu_behind(env: Environment) -> Iterator[Problem]:
    """A later torch_npu is published for this torch, with a later CANN."""
    release = release_of(env)
    if release is None or not env.has_npu:
        return
    newest = next((one for one in torch_npu_for(release.torch) if one.cann), release)
    if Version(newest.torch_npu) > Version(release.torch_npu):
        yield Problem(
            say("torch_npu {npu} is installed; {newest}, for CANN {cann}, is the newest for torch {torch}.",
                npu=release.torch_npu, newest=newest.torch_npu, cann=newest.cann, torch=release.torch),
            say("Where code wants a newer operator, upgrade CANN and torch_npu together, or write it with plain ones."),
        )  # fmt: skip


@check("ND323")
def torch_replaced(env: Environment) -> Iterator[Problem]:
    """A package that pins another torch than torch_npu is built for, and got it."""
    torch, torch_npu = env.package("torch"), env.package("torch-npu")
    if torch is None or torch_npu is None or base(torch.version) == base(torch_npu.version):
        return
    for package in _first_of_each(env):
        wanted = [needed for line in package.requires if (needed := _requirement(line)) and needed.name == "torch"]
        for needed in wanted if package.name != "torch-npu" else ():
            specifier = str(needed.specifier)
            if specifier and fits(torch.version, specifier) and not fits(base(torch_npu.version), specifier):
                yield Problem(
                    say("{package} {version} wants torch{specifier}, which torch_npu {npu} does not serve.",
                        package=package.name, version=package.version, specifier=specifier, npu=torch_npu.version),
                    say("Install torch again, then {package} without its dependencies; a constraints file keeps torch "
                        "from being replaced.", package=package.name),
                    (
                        f"pip install torch=={base(torch_npu.version)}",
                        f"pip install --no-deps {package.name}",
                        f"echo 'torch=={base(torch_npu.version)}' > constraints.txt && "
                        "export PIP_CONSTRAINT=$PWD/constraints.txt",
                    ),
                )  # fmt: skip


@check("ND324")
def apex_of_nvidia(env: Environment) -> Iterator[Problem]:
    """Apex, but not the one for Ascend."""
    apex = env.package("apex")
    if apex is not None and env.has_npu and "ascend" not in apex.version:
        yield Problem(
            say("apex {version} is not Apex for Ascend.", version=apex.version),
            say("Uninstall it, build Apex for Ascend, or use torch.amp."),
            ("pip uninstall -y apex",),
        )


def _releases_for(version: str) -> tuple[Release, ...]:
    """The releases for a torch, or for that of a torch_npu; none where the text is no version."""
    try:
        return torch_npu_for(base(version))
    except InvalidVersion:
        return ()


def _first_of_each(env: Environment) -> list[Package]:
    """The packages that Python would import."""
    seen: Counter[str] = Counter()
    found = []
    for package in env.packages:
        seen[package.name] += 1
        if seen[package.name] == 1:
            found.append(package)
    return found


def _requirement(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _unmet(env: Environment, line: str) -> Requirement | None:
    """The requirement of a line, if it is on a package that matters here and is not met."""
    needed = _requirement(line)
    if needed is None or normalized(needed.name) not in ("torch", "torch-npu", "numpy", "transformers"):
        return None
    if needed.marker is not None and not needed.marker.evaluate(_marker_variables(env)):
        return None
    installed = env.package(normalized(needed.name))
    if installed is not None and fits(installed.version, str(needed.specifier)):
        return None
    return needed if installed is not None else None


def _marker_variables(env: Environment) -> dict[str, str]:
    """What markers ask, for the machine that was read."""
    return {
        "python_version": ".".join(env.python.version.split(".")[:2]),
        "python_full_version": env.python.version,
        "platform_machine": env.system.arch,
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }


def _fitting_command(env: Environment, package: Package) -> Iterator[str]:
    torch = env.package("torch")
    if package.name == "torchvision" and torch is not None:
        version = torchvision_for(base(torch.version))
        if version is not None:
            yield f"pip install --no-deps torchvision=={version}"
