"""A plan as a shell script that installs it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from npuport import __version__
from npuport.environment.plan.plan import Plan
from npuport.environment.releases import set_env
from npuport.errors import UserError
from npuport.facts import cann_python_packages

_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
_DOWNLOADS = "https://www.hiascend.com/developer/download/community/result?module=cann"


def install_script(plan: Plan) -> str:
    """The script. It stops at the first failure, and installs nothing before it has seen every file it needs.

    Raises:
        UserError: the plan leaves open what the script must know.
    """
    if not plan.request.family:
        raise UserError("an install script needs the chip. Add it to the plan, for example: Ascend910B3")
    if not plan.python:
        raise UserError("an install script needs the Python. Add it to the plan, for example: Python 3.9")
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    release = plan.release
    yield "#!/usr/bin/env bash"
    yield f"# Written by npuport {__version__}: {_title(plan)}."
    yield "# Usage: bash install.sh [folder with the downloaded files] [folder of the new Python environment]"
    if plan.packages:
        yield f"# Download into that folder first, from {_DOWNLOADS}:"
        yield from (f"#   {name.format(arch=plan.request.arch or '<processor>')}" for name in plan.packages)
    if not release.on_pypi:
        yield f"#   torch_npu-{release.torch_npu}-*.whl, from the releases of Ascend/pytorch"
    yield "set -euo pipefail"
    yield ""
    if plan.packages or not release.on_pypi:
        yield "files=${1:-.}"
    yield "environment=${2:-$HOME/npu}"
    if plan.packages:
        yield "ascend=${ASCEND_INSTALL_PATH:-/usr/local/Ascend}"
    if plan.packages or plan.request.arch:
        yield "arch=$(uname -m)"
    yield 'stop() { echo "install.sh: $1" >&2; exit 1; }'
    yield ""
    yield from _conditions(plan)
    yield ""
    yield from _cann(plan)
    yield from _python(plan)


def _title(plan: Plan) -> str:
    request, release = plan.request, plan.release
    parts = [f"torch {release.torch}", f"torch_npu {release.torch_npu}"]
    parts += [f"CANN {release.cann}"] if release.cann else []
    parts += [f"Python {plan.python}", request.chip or request.family, request.arch, request.system]
    return ", ".join(part for part in parts if part)


def _conditions(plan: Plan) -> Iterator[str]:
    """Everything that must be there before anything is installed."""
    if plan.request.arch:
        wanted = plan.request.arch
        yield f'[ "$arch" = {wanted} ] || stop "this plan is for {wanted}, and this machine is $arch"'
    yield '[ -f /usr/local/Ascend/driver/version.info ] || stop "install driver and firmware of the NPU first"'
    yield f'command -v python{plan.python} >/dev/null || stop "python{plan.python} is not on PATH"'
    for name in plan.packages:
        file = name.replace("{arch}", "$arch")
        yield f'[ -f "$files/{file}" ] || stop "$files/{file} is missing; download it first"'
    if not plan.release.on_pypi:
        wheel = f"torch_npu-{plan.release.torch_npu}-"
        yield f'compgen -G "$files/{wheel}*.whl" >/dev/null || stop "$files/{wheel}*.whl is missing; download it first"'


def _cann(plan: Plan) -> Iterator[str]:
    if plan.release.cann is None:
        yield "# No document pairs this torch_npu with a CANN: the one that is installed is used."
        yield '[ -n "${ASCEND_HOME_PATH:-}" ] || stop "install CANN and source its set_env.sh first"'
        yield ""
        return
    toolkit, *others = (name.replace("{arch}", "$arch") for name in plan.packages)
    yield f'bash "$files/{toolkit}" --install --quiet --install-path="$ascend"'
    yield "# set_env.sh reads variables that may be unset."
    yield "set +u"
    yield "# shellcheck source=/dev/null"
    yield f'. "$ascend/{set_env(plan.release.cann)}"'
    yield "set -u"
    for name in others:
        yield f'bash "$files/{name}" --install --quiet --install-path="$ascend"'
    yield ""


def _python(plan: Plan) -> Iterator[str]:
    release = plan.release
    numpy = f"numpy=={plan.numpy}" if plan.numpy else "numpy"
    needed = [numpy if name == "numpy" else name for name in cann_python_packages()]
    yield f'python{plan.python} -m venv "$environment"'
    yield "# shellcheck source=/dev/null"
    yield '. "$environment/bin/activate"'
    yield f"python -m pip install {shlex.join(needed)}"
    vision = [f"torchvision=={plan.torchvision}"] if plan.torchvision else []
    yield f"python -m pip install --index-url {_TORCH_INDEX} {shlex.join([f'torch=={release.torch}', *vision])}"
    if release.on_pypi:
        yield f"python -m pip install torch-npu=={release.torch_npu}"
    else:
        yield f'python -m pip install "$files"/torch_npu-{release.torch_npu}-*.whl'
    yield "# Keeps later installations from exchanging torch."
    yield f"printf 'torch=={release.torch}\\n{numpy}\\n' > \"$environment/constraints.txt\""
    yield ""
    if release.cann is not None:
        yield "set +u"
        yield "# shellcheck source=/dev/null"
        yield '. "$ascend/nnal/atb/set_env.sh"'
        yield "set -u"
    yield "python -c 'import torch, torch_npu; a = torch.ones(2).npu(); print(torch_npu.__version__, (a + a).cpu())'"
    yield 'echo "Ready. In every shell that trains:"'
    if release.cann is not None:
        yield f'echo "  source $ascend/{set_env(release.cann)}; source $ascend/nnal/atb/set_env.sh"'
    yield 'echo "  source $environment/bin/activate; export PIP_CONSTRAINT=$environment/constraints.txt"'
