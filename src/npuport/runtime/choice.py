"""Whether this process should run CUDA code on an NPU."""

from __future__ import annotations

import importlib.util
import os

from npuport.errors import UserError

VARIABLE = "NPUPORT_DEVICE"


def wants_npu() -> bool:
    """True where torch_npu is installed and no CUDA device is there, unless NPUPORT_DEVICE decides.

    Raises:
        UserError: NPUPORT_DEVICE has a value other than npu, cuda, cpu, or asks for an NPU without torch_npu; or torch
            does not load, as with torch_npu but without CANN.
    """
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if wanted not in {"", "npu", "cuda", "cpu"}:
        raise UserError("{variable}={value} is none of npu, cuda, cpu", variable=VARIABLE, value=wanted)
    if wanted in {"cuda", "cpu"}:
        return False
    installed = importlib.util.find_spec("torch_npu") is not None
    if wanted == "npu":
        if not installed:
            raise UserError(
                "{variable}=npu needs torch_npu, which this Python lacks; install the version that equals torch's",
                variable=VARIABLE,
            )
        return True
    return installed and not _has_cuda()


def _has_cuda() -> bool:
    try:
        import torch
    except (ImportError, RuntimeError) as error:
        cause = error.__cause__ or error
        raise UserError(
            "torch does not load here: {cause}\n  set up CANN, or use the simulated NPU: npuport run --sim …",
            cause=cause,
        ) from error
    return bool(torch.version.cuda) and torch.cuda.is_available()
