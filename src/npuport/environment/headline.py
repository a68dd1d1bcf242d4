"""A machine in a few lines."""

from __future__ import annotations

from collections import Counter

from npuport.environment.snapshot import Environment
from npuport.findings import Sentence, say


def headline(env: Environment) -> list[tuple[Sentence, str]]:
    """What a reader wants to see first: name and value."""
    chips = Counter(one.chip for one in env.npus)
    devices = ", ".join(f"{number} x {chip}" for chip, number in sorted(chips.items()))
    driver = f"{env.driver.version}, firmware {env.firmware or '?'}" if env.driver else "-"
    canns = ", ".join(f"{one.version} ({one.path}{'' if one.active else ', not in use'})" for one in env.canns)
    torch, torch_npu = env.package("torch"), env.package("torch-npu")
    return [
        (
            say("system"),
            f"{env.system.os_id} {env.system.os_version} {env.system.arch}, glibc {env.system.glibc or '?'}"
            + (", container" if env.system.container else ""),
        ),
        (say("NPU"), devices or "-"),
        (say("driver"), driver),
        (say("CANN"), canns or "-"),
        (say("Python"), f"{env.python.version} ({env.python.kind}) {env.python.executable}"),
        (say("torch"), f"{torch.version if torch else '-'}, torch_npu {torch_npu.version if torch_npu else '-'}"),
    ]
