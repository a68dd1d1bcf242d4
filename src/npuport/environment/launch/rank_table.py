"""Rank tables: the JSON that RANK_TABLE_FILE names, made from the addresses of each machine's devices.

The form is that of CANN's documents on cluster information (August 2026) for Atlas A2 and the first 910, version 1.0.
Version 1.2, for Atlas A3, holds the numbers of devices within a super node, which no file of a machine tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from npuport.errors import UserError
from npuport.facts import Chip

_ADDRESS = re.compile(r"^address_(\d+)=(\S+)$", re.MULTILINE)


def device_addresses(text: str, path: str) -> dict[int, str]:
    """The addresses of a machine's devices, by physical number, from its /etc/hccn.conf.

    Raises:
        UserError: the file has no address.
    """
    found = {int(number): address for number, address in _ADDRESS.findall(text)}
    if not found:
        raise UserError("{path} has no lines address_N=…: it should be a copy of /etc/hccn.conf", path=path)
    return dict(sorted(found.items()))


def rank_table(servers: Mapping[str, Mapping[int, str]], chip: Chip) -> dict[str, Any]:
    """The rank table of machines, each with the addresses of its devices by physical number; ranks in that order.

    Raises:
        UserError: an address stands twice, or the chip wants what is not in the files.
    """
    if chip.family not in {"A2", "910"}:
        raise UserError(
            "{chip} has a rank table of another form, with numbers that /etc/hccn.conf does not hold. torchrun needs "
            "none: unset RANK_TABLE_FILE, and the ranks negotiate.",
            chip=chip.name,
        )
    addresses = [address for devices in servers.values() for address in devices.values()]
    twice = sorted({address for address in addresses if addresses.count(address) > 1})
    if twice:
        raise UserError("the address {address} stands twice: each device has its own", address=twice[0])
    rank = 0
    listed = []
    for server, devices in servers.items():
        entries = []
        for number, address in devices.items():
            entries.append({"device_id": str(number), "device_ip": address, "rank_id": str(rank)})
            rank += 1
        listed.append({"server_id": server, "device": entries})
    return {
        "version": "1.0",
        "status": "completed",
        "server_count": str(len(listed)),
        "server_list": listed,
    }
