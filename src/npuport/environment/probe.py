"""All probes in one pass."""

from __future__ import annotations

from npuport.environment.machine import Machine
from npuport.environment.probes import ascend, packages, system
from npuport.environment.snapshot import Environment


def probe(machine: Machine) -> Environment:
    """Read the machine once."""
    smi, npus = ascend.npu_smi(machine)
    return Environment(
        system=system.system(machine),
        user=system.user(machine),
        python=system.python(machine),
        packages=packages.packages(machine),
        driver=ascend.driver(machine),
        firmware=ascend.firmware(machine),
        smi=smi,
        npus=npus,
        devices=ascend.devices(machine),
        canns=ascend.canns(machine),
        nnal=ascend.nnal(machine),
        variables=system.variables(machine),
    )
