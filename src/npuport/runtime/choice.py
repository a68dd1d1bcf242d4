"""Whether this process should run CUDA code on an NPU."""

from __future__ import annotations

import os

from npuport.errors import UserError
from npuport.runtime.installed import spec_of, torch_says

VARIABLE = "NPUPORT_DEVICE"
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
"""With 0, torch does not import torch_npu, which fails without CANN, at the end of its own import."""


def asked() -> str:
    """What NPUPORT_DEVICE says: npu, cuda, cpu, or nothing.

    Raises:
        UserError: it says something else.
    """
    value = os.environ.get(VARIABLE, "").strip().lower()
    if value not in {"", "npu", "cuda", "cpu"}:
        raise UserError("{variable}={value} is none of npu, cuda, cpu", variable=VARIABLE, value=value)
    return value


def without_npu() -> dict[str, str]:
    """What has torch load without torch_npu where NPUPORT_DEVICE asks for another device, unless the user set it."""
    return {AUTOLOAD: "0"} if asked() in {"cuda", "cpu"} and AUTOLOAD not in os.environ else {}


def wants_npu() -> bool:
    """True where torch_npu is installed and no CUDA device is there, unless NPUPORT_DEVICE decides.

    Imports torch only where torch is built for CUDA.

    Raises:
        UserError: NPUPORT_DEVICE has a value other than npu, cuda, cpu, or asks for an NPU without torch_npu.
    """
    wanted = asked()
    if wanted in {"cuda", "cpu"}:
        return False
    installed = spec_of("torch_npu") is not None
    if wanted == "npu":
        if not installed:
            raise UserError(
                "{variable}=npu needs torch_npu, which this Python lacks; install the version that equals torch's",
                variable=VARIABLE,
            )
        return True
    return installed and not _has_cuda()


def wants_usable_npu() -> bool:
    """As ``wants_npu``, for whoever starts a run.

    Raises:
        UserError: as above; or torch would not load, as with torch_npu but without CANN.
    """
    wanted = wants_npu()
    if wanted and asked() != "npu":
        import ctypes

        try:
            ctypes.CDLL("libascendcl.so")
        except OSError as error:
            raise UserError(
                "torch does not load here: {cause}\n  set up CANN, or use the simulated NPU: npuport run --sim …\n"
                "  or no NPU at all: NPUPORT_DEVICE=cpu npuport run …",
                cause=error,
            ) from error
    return wanted


def _has_cuda() -> bool:
    if torch_says("cuda") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())
