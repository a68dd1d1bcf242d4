"""Devices, driver and firmware."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.environment.checks.registry import Problem, check
from npuport.environment.snapshot import Environment
from npuport.findings import say


@check("ND100")
def no_npu(env: Environment) -> Iterator[Problem]:
    if not env.has_npu:
        yield Problem(
            say("This machine shows no NPU: no PCI device, no /dev/davinci0, no driver."),
            say("On the training machine, run `npuport doctor` again; here, train on the simulated NPU."),
            ("npuport run --sim -- python train.py",),
        )


@check("ND101")
def no_driver(env: Environment) -> Iterator[Problem]:
    if env.driver is None and env.has_npu:
        if env.system.container:
            yield Problem(
                say("The container has NPU device nodes, but no driver at /usr/local/Ascend/driver."),
                say("Start the container with the host's driver mounted."),
                ("docker run -v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro …",),
            )
        else:
            yield Problem(
                say("The PCI bus has an NPU, but there is no driver at /usr/local/Ascend/driver."),
                say("Install the driver, then the firmware, for this NPU and processor, and reboot."),
            )
