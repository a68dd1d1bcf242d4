"""torch, torch_npu and the packages around them: which of them do not fit."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from npuport.environment.checks.registry import Problem, check
from npuport.environment.snapshot import Environment
from npuport.facts import torch_npu_for
from npuport.findings import say


def base(version: str) -> str:
    """ "2.7.1" of "2.7.1.post2" or "2.7.1+cpu"; the text itself where it is no version."""
    try:
        return Version(version).base_version
    except InvalidVersion:
        return version


@check("ND303")
def torch_npu_for_other_torch(env: Environment) -> Iterator[Problem]:
    torch, torch_npu = env.package("torch"), env.package("torch-npu")
    if torch is None or torch_npu is None or base(torch.version) == base(torch_npu.version):
        return
    seen = say(
        "torch {torch} is installed, but torch_npu {npu} is built for torch {wanted}.",
        torch=torch.version,
        npu=torch_npu.version,
        wanted=base(torch_npu.version),
    )
    if torch_npu_for(base(torch_npu.version)):
        yield Problem(
            seen,
            say("Bring back the torch that torch_npu wants, and pin it, so that no other package replaces it."),
            (f"pip install torch=={base(torch_npu.version)}",),
        )
    else:
        yield Problem(seen, say("Install a pair of torch and torch_npu that exists; `npuport doctor --plan` names it."))
