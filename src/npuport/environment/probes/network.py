"""The host's network and the devices' own, as HCCL needs them, and the rank table."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from npuport.environment.machine import Machine
from npuport.environment.snapshot import Network, RankTable

HCCN_TOOL = "/usr/local/Ascend/driver/tools/hccn_tool"

_ADDRESS = re.compile(r"^address_(\d+)\s*=\s*(\S+)", re.MULTILINE)
_TLS = re.compile(r"tls switch\[([01])\]")
_LISTENING = "0A"  # state in /proc/net/tcp


def tls_command(device: int) -> tuple[str, ...]:
    """The command that reads the TLS switch of a device."""
    return (HCCN_TOOL, "-i", str(device), "-tls", "-g")


def network(machine: Machine, devices: Sequence[int]) -> Network:
    """Interfaces, ports, firewall, and the devices' addresses and TLS switches."""
    limits = (machine.text("/proc/sys/net/ipv4/ip_local_port_range") or "").split()
    switches = {str(device): _TLS.search(machine.run(tls_command(device)).output) for device in devices}
    return Network(
        interfaces=machine.names("/sys/class/net"),
        port_range=(int(limits[0]), int(limits[1])) if len(limits) == 2 and all(map(str.isdecimal, limits)) else None,
        reserved_ports=(machine.text("/proc/sys/net/ipv4/ip_local_reserved_ports") or "").strip(),
        listening=tuple(sorted(_listening(machine))),
        firewall=machine.run(("firewall-cmd", "--state")).output.strip() == "running",
        device_addresses=dict(_ADDRESS.findall(machine.text("/etc/hccn.conf") or "")),
        tls={device: int(match[1]) for device, match in switches.items() if match},
    )


def rank_table(machine: Machine) -> RankTable | None:
    """The rank table in use; None without RANK_TABLE_FILE."""
    path = machine.variables.get("RANK_TABLE_FILE", "")
    if not path:
        return None
    if machine.path(path).is_symlink():
        return RankTable(path, "link", "", {})
    text = machine.text(path)
    if text is None:
        return RankTable(path, "missing", "", {})
    try:
        document = json.loads(text)
    except ValueError as error:
        return RankTable(path, "broken", str(error), {})
    if not isinstance(document, dict):
        return RankTable(path, "broken", "not an object", {})
    return RankTable(path, "ok", "", document)


def _listening(machine: Machine) -> set[int]:
    ports = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (machine.text(name) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == _LISTENING:
                ports.add(int(words[1].rsplit(":", 1)[1], 16))
    return ports
