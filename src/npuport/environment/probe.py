"""All probes in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from npuport.environment.machine import Answer, Machine
from npuport.environment.probes import ascend, libraries, network, packages, settings, system
from npuport.environment.snapshot import Environment

_COMMANDS = (ascend.NPU_SMI, settings.COMPILER, settings.CMAKE, ("firewall-cmd", "--state"))


def probe(machine: Machine) -> Environment:
    """Read the machine once. Commands run side by side, so that the slowest one counts."""
    devices = ascend.devices(machine)
    machine = _asked(machine, [*_COMMANDS, *map(network.tls_command, devices.nodes)])
    smi, npus, processes = ascend.npu_smi(machine)
    chips = ascend.chips(npus)
    installed = packages.packages(machine)
    return Environment(
        system=system.system(machine),
        user=system.user(machine),
        python=system.python(machine),
        packages=installed,
        driver=ascend.driver(machine),
        firmware=ascend.firmware(machine),
        smi=smi,
        npus=npus,
        npu_processes=processes,
        chips=chips,
        devices=devices,
        canns=ascend.canns(machine),
        nnal=ascend.nnal(machine),
        torch=libraries.torch(machine, installed),
        torch_npu=libraries.torch_npu(machine, installed, chips),
        extensions=libraries.extensions(machine, installed),
        libraries=libraries.libraries(machine, installed),
        tools=settings.tools(machine),
        network=network.network(machine, devices.nodes),
        rank_table=network.rank_table(machine),
        settings=settings.settings(machine, installed),
        active_environment=system.active_environment(machine),
        dead_paths=system.dead_paths(machine),
        real_paths=system.real_paths(machine),
        variables=system.variables(machine),
    )


def _asked(machine: Machine, commands: Sequence[tuple[str, ...]]) -> Machine:
    """The machine with the answers of these commands at hand."""
    with ThreadPoolExecutor(max_workers=len(commands)) as pool:
        answers = dict(zip(commands, pool.map(machine.run, commands), strict=True))
    return replace(machine, run=lambda command: answers.get(tuple(command), Answer(None)))
