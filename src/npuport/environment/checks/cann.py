"""CANN: toolkit, operator packages, NNAL, and the variables that set_env.sh sets."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.environment.checks.registry import Problem, check
from npuport.environment.releases import operator_package, same_release, table_release
from npuport.environment.snapshot import Cann, Environment
from npuport.facts import chip, chip_family
from npuport.findings import say

_LIBRARIES = ("/lib64", "/runtime/lib64", "/aarch64-linux/lib64", "/x86_64-linux/lib64")


def paths(env: Environment, name: str) -> list[str]:
    """The folders of a variable that holds a search path."""
    return [path.rstrip("/") for path in env.variables.get(name, "").split(":") if path]


@check("ND114")
def wrong_architecture(env: Environment) -> Iterator[Problem]:
    """A toolkit for another processor."""
    cann = env.cann
    if cann is not None and cann.arch and cann.arch != env.system.arch:
        yield Problem(
            say("CANN at {path} is for {arch}; this machine is {here}.", path=cann.path, arch=cann.arch,
                here=env.system.arch),
            say("Install the packages whose names end with {arch}.", arch=f"linux-{env.system.arch}.run"),
        )  # fmt: skip


@check("ND201")
def no_cann(env: Environment) -> Iterator[Problem]:
    """An NPU, but no toolkit."""
    if env.has_npu and not env.canns:
        yield Problem(
            say("No CANN toolkit was found in /usr/local/Ascend, ~/Ascend or where ASCEND_HOME_PATH points."),
            say(
                "Install the toolkit and the operator package of your chip; `npuport doctor --plan` names the versions."
            ),
        )


@check("ND202")
def cann_not_sourced(env: Environment) -> Iterator[Problem]:
    """A toolkit that no variable names."""
    if env.canns and not env.variables.get("ASCEND_HOME_PATH"):
        newest = env.canns[-1]
        yield Problem(
            say("CANN {version} is at {path}, but ASCEND_HOME_PATH is not set.", version=newest.version,
                path=newest.path),
            say("Source its set_env.sh in every shell that trains, for example in ~/.bashrc."),
            (_source_line(newest),),
        )  # fmt: skip


@check("ND203")
def cann_path_leads_nowhere(env: Environment) -> Iterator[Problem]:
    """A variable of set_env.sh that points to nothing."""
    for name in env.dead_paths if env.canns else ():
        if not name.startswith("ASCEND_"):
            continue  # files of HCCL have checks of their own
        yield Problem(
            say("{name} is {value}, which does not exist.", name=name, value=env.variables[name]),
            say("Open a new shell and source the set_env.sh of the CANN that is installed."),
            tuple(_source_line(one) for one in env.canns[:1]),
        )


@check("ND204")
def cann_versions_mixed(env: Environment) -> Iterator[Problem]:
    """LD_LIBRARY_PATH and the other variables name more than one toolkit."""
    roots = {one.path: one for one in env.canns}
    named = {root for root in roots if any(_inside(path, root, env) for path in _cann_paths(env))}
    if len(named) > 1:
        versions = ", ".join(f"{roots[root].version} ({root})" for root in sorted(named))
        yield Problem(
            say("The paths name more than one CANN: {versions}.", versions=versions),
            say("Open a new shell and source one set_env.sh; look for the others in ~/.bashrc and /etc/profile.d."),
            ("grep -n 'Ascend' ~/.bashrc /etc/profile /etc/profile.d/*",),
        )


@check("ND205")
def library_path_incomplete(env: Environment) -> Iterator[Problem]:
    """ASCEND_HOME_PATH is set, but the libraries are not on LD_LIBRARY_PATH."""
    cann, home = env.cann, env.variables.get("ASCEND_HOME_PATH", "").rstrip("/")
    if cann is None or not home or "ASCEND_HOME_PATH" in env.dead_paths:
        return
    here = paths(env, "LD_LIBRARY_PATH")
    if not any(path in (home + part, cann.path + part) for part in _LIBRARIES for path in here):
        yield Problem(
            say("LD_LIBRARY_PATH has no folder of {home}.", home=home),
            say("Source set_env.sh again; a script, sudo or `env -i` may have dropped the variable."),
            (_source_line(cann),),
        )
    elif env.driver is not None and not any(path.startswith(env.driver.path) for path in here):
        yield Problem(
            say("LD_LIBRARY_PATH has no folder of the driver, {path}.", path=env.driver.path),
            say("Put the driver's folders on it."),
            (
                f"export LD_LIBRARY_PATH={env.driver.path}/lib64:{env.driver.path}/lib64/common:"
                f"{env.driver.path}/lib64/driver:$LD_LIBRARY_PATH",
            ),
        )


@check("ND206")
def no_operator_package(env: Environment) -> Iterator[Problem]:
    """A toolkit without the operators of a chip of this machine."""
    cann = env.cann
    for name in env.chips if cann else ():
        known = chip(name)
        if cann is None or known is None:
            continue
        family = chip_family(known.family)
        # A package whose folders have other names, in a CANN yet to come, is not called missing.
        unseen = bool(cann.kernels_version and not cann.kernels) or family.basis.certainty == "inferred"
        if family.kernels not in cann.kernels and not unseen:
            yield Problem(
                say("CANN {version} has operators for {there}, not for {chip} ({kernels}).", version=cann.version,
                    there=", ".join(cann.kernels) or "no chip", chip=name, kernels=family.kernels),
                say("Install {package} of CANN {version}.", package=operator_package(family, cann.version),
                    version=cann.version),
            )  # fmt: skip


@check("ND207")
def operator_package_of_other_release(env: Environment) -> Iterator[Problem]:
    """Toolkit and operator package are of different releases."""
    cann = env.cann
    if cann is not None and cann.kernels_version and not same_release(cann.kernels_version, cann.version):
        yield Problem(
            say("The toolkit is {toolkit}, its operator package {kernels}.", toolkit=cann.version,
                kernels=cann.kernels_version),
            say("Install the operator package of CANN {version}.", version=cann.version),
        )  # fmt: skip


@check("ND208")
def no_nnal(env: Environment) -> Iterator[Problem]:
    """NNAL is missing, or its set_env.sh was not sourced."""
    if not env.has_npu or not env.canns:
        return
    if env.nnal is None:
        yield Problem(
            say("NNAL (ATB) is not installed."),
            say("Install the NNAL package of the same release as CANN."),
        )
    elif not env.variables.get("ATB_HOME_PATH"):
        yield Problem(
            say("NNAL {version} is installed, but ATB_HOME_PATH is not set.", version=env.nnal.version),
            say("Source its set_env.sh after that of CANN."),
            (f"source {env.nnal.path.rsplit('/', 1)[0]}/set_env.sh",),
        )


@check("ND209")
def nnal_of_other_release(env: Environment) -> Iterator[Problem]:
    """NNAL and CANN are of different releases."""
    if env.nnal and env.cann and not same_release(*map(table_release, (env.nnal.version, env.cann.version))):
        yield Problem(
            say("NNAL is {nnal}, CANN is {cann}.", nnal=env.nnal.version, cann=env.cann.version),
            say("Install toolkit, operator package and NNAL of one release, the one that torch_npu is paired with."),
        )
    for extension in env.extensions:
        if extension.package == "torch-npu" and extension.undefined:
            yield Problem(
                say("libatb.so lacks what torch_npu calls: {names}.", names=_some(extension.undefined)),
                say("Install the NNAL of the CANN release that torch_npu is paired with."),
            )


@check("ND210")
def nnal_of_other_abi(env: Environment) -> Iterator[Problem]:
    """ATB_HOME_PATH names the C++ ABI that torch is not built with."""
    home = env.variables.get("ATB_HOME_PATH", "").rstrip("/")
    if env.torch is None or "cxx_abi_" not in home or not env.nnal:
        return
    wanted = f"cxx_abi_{env.torch.cxx11_abi}"
    if not home.endswith(wanted):
        yield Problem(
            say("ATB_HOME_PATH is {home}; this torch is built with {wanted}.", home=home, wanted=wanted),
            say("Source NNAL's set_env.sh with the ABI of torch."),
            (f"source {env.nnal.path.rsplit('/', 1)[0]}/set_env.sh --cxx_abi={env.torch.cxx11_abi}",),
        )


@check("ND211")
def old_transfer_module(env: Environment) -> Iterator[Problem]:
    """PYTHONPATH holds the transfer_to_npu of an old toolkit."""
    if env.settings.transfer_module:
        yield Problem(
            say("PYTHONPATH has {path}, which holds a transfer_to_npu of CANN's old migration tool.",
                path=env.settings.transfer_module),
            say("Take it off PYTHONPATH, and write: from torch_npu.contrib import transfer_to_npu"),
        )  # fmt: skip


def _source_line(cann: Cann) -> str:
    return f"source {cann.path}/set_env.sh"


def _cann_paths(env: Environment) -> list[str]:
    found = paths(env, "LD_LIBRARY_PATH") + paths(env, "PYTHONPATH")
    return found + [env.variables[name] for name in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH") if name in env.variables]


def _inside(path: str, root: str, env: Environment) -> bool:
    real = env.real_paths.get(path, path)
    return real == root or real.startswith(root + "/")


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" (+{len(names) - 3})" if len(names) > 3 else "")
