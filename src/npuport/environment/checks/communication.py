"""Several devices and several machines: rank table, interfaces, ports, TLS, firewall, launchers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from npuport.environment.checks.registry import Problem, check
from npuport.environment.snapshot import Environment
from npuport.findings import Sentence, say

_PORTS = 32
_FIRST_PORT = 60000  # HCCL_IF_BASE_PORT's default
_LONGEST_NAME = 64


@check("ND501")
def rank_table_wrong(env: Environment) -> Iterator[Problem]:
    """RANK_TABLE_FILE names a file that HCCL refuses."""
    table = env.rank_table
    if table is None:
        return
    unset = ("unset RANK_TABLE_FILE",)
    fix = say("Correct the file; with torchrun none is needed: unset RANK_TABLE_FILE and the ranks negotiate.")
    if table.state == "missing":
        yield Problem(say("RANK_TABLE_FILE {path} cannot be read.", path=table.path), fix, unset)
    elif table.state == "link":
        yield Problem(
            say("RANK_TABLE_FILE {path} is a symbolic link, which torch_npu refuses.", path=table.path), fix, unset
        )
    elif table.state == "broken":
        yield Problem(
            say("RANK_TABLE_FILE {path} is not JSON (comments are not allowed): {problem}", path=table.path,
                problem=table.problem),
            fix, unset,
        )  # fmt: skip
    else:
        for problem in rank_table_problems(table.document, env.network.device_addresses):
            yield Problem(say("{path}: {problem}", path=table.path, problem=problem), fix, unset)


def rank_table_problems(table: Mapping[str, Any], addresses: Mapping[str, str]) -> Iterator[Sentence]:
    """What is wrong with a rank table of version 1.0 or 1.2, against the addresses in this machine's hccn.conf."""
    version, servers = str(table.get("version", "")), table.get("server_list")
    if "group_list" in table:
        return  # the old template, which HCCL still reads
    if version not in ("1.0", "1.2"):
        yield say("version is {version}, not 1.0 or 1.2", version=version or "missing")
    if table.get("status") not in ("completed", "initializing"):
        yield say("status is {status}, not completed or initializing", status=table.get("status", "missing"))
    if not isinstance(servers, list) or not servers:
        yield say("server_list is missing or empty")
        return
    if str(table.get("server_count", "")) != str(len(servers)):
        yield say("server_count is {count}, server_list has {number}", count=table.get("server_count", "missing"),
                  number=len(servers))  # fmt: skip
    yield from _server_problems([one for one in servers if isinstance(one, dict)], addresses)


def _server_problems(servers: list[dict[str, Any]], addresses: Mapping[str, str]) -> Iterator[Sentence]:
    names = [str(one.get("server_id", "")) for one in servers]
    if len(set(names)) != len(names) or any(not 0 < len(name) <= _LONGEST_NAME for name in names):
        yield say("each server needs a server_id of its own, of at most 64 characters")
    devices = [device for one in servers for device in _devices(one)]
    ranks = sorted(str(device.get("rank_id", "")) for device in devices)
    if sorted(map(str, range(len(devices)))) != ranks:
        yield say("rank_id must run from 0 to {last}, each once; found {ranks}", last=len(devices) - 1,
                  ranks=", ".join(ranks[:10]))  # fmt: skip
    for device in devices:
        address = str(device.get("device_ip", ""))
        if address and not _is_address(address):
            yield say(
                "device_ip {address} of rank {rank} is no IP address", address=address, rank=device.get("rank_id")
            )
        elif not address and len(servers) > 1:
            yield say("rank {rank} has no device_ip, which several servers need", rank=device.get("rank_id"))
    present = set(addresses.values())
    for one in servers:
        mine = {str(device.get("device_id", "")): str(device.get("device_ip", "")) for device in _devices(one)}
        if present & set(mine.values()):
            for number, address in mine.items():
                if address and number in addresses and addresses[number] != address:
                    yield say("device {number} has {address} there and {other} in /etc/hccn.conf", number=number,
                              address=address, other=addresses[number])  # fmt: skip


@check("ND502")
def interface_unknown(env: Environment) -> Iterator[Problem]:
    """A variable names a network interface that this machine does not have."""
    for name in ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"):
        value = env.variables.get(name, "")
        if not value or value.startswith("^") or not env.network.interfaces:
            continue
        exact = value.startswith("=") or not name.startswith("HCCL")
        wanted = [word.lstrip("=") for word in value.split(",") if word]
        found = [
            one
            for one in env.network.interfaces
            for word in wanted
            if one == word or (not exact and one.startswith(word))
        ]
        if not found:
            here = [one for one in env.network.interfaces if one != "lo"]
            yield Problem(
                say("{name} is {value}; this machine has {interfaces}.", name=name, value=value,
                    interfaces=", ".join(here) or "lo"),
                say("Name the interface that reaches the other machines."),
                (f"export {name}={here[0]}",) if here else (),
            )  # fmt: skip


@check("ND503")
def hccl_ports_not_reserved(env: Environment) -> Iterator[Problem]:
    """The kernel may give HCCL's ports to any program."""
    if env.network.port_range is None or len(env.devices.nodes) < 2:
        return
    first = _base_port(env)
    low, high = env.network.port_range
    if low <= first + _PORTS - 1 and first <= high and not _reserved(env.network.reserved_ports, first):
        ports = f"{first}-{first + _PORTS - 1}"
        yield Problem(
            say("Ports {ports} are not reserved, and in the kernel's range for any program ({low} – {high}).",
                ports=ports, low=low, high=high),
            say("Reserve them."),
            (f"sudo sysctl -w net.ipv4.ip_local_reserved_ports={ports}",),
        )  # fmt: skip


@check("ND504")
def hccl_port_taken(env: Environment) -> Iterator[Problem]:
    """A program listens on a port of HCCL or on MASTER_PORT of this machine."""
    first = _base_port(env)
    taken = [port for port in env.network.listening if first <= port < first + _PORTS]
    master = env.variables.get("MASTER_PORT", "")
    if master.isdecimal() and int(master) in env.network.listening and env.variables.get("RANK", "0") == "0":
        yield Problem(
            say("A program listens on MASTER_PORT {port}.", port=master),
            say("End the old training, or choose another port."),
            (f"ss -ltnp 'sport = :{master}'", "export MASTER_PORT=29571"),
        )
    if taken and env.has_npu:
        ports = ", ".join(map(str, taken))
        yield Problem(
            say("A program listens on {ports}.", ports=ports),
            say("Find it: if it is an old training, end it; if not, move HCCL's ports."),
            (f"ss -ltnp 'sport = :{taken[0]}'", "export HCCL_IF_BASE_PORT=50000"),
        )


@check("ND505")
def device_without_address(env: Environment) -> Iterator[Problem]:
    """A training over several machines, and devices without addresses."""
    if not _several_machines(env) or not env.devices.nodes:
        return
    without = [str(number) for number in env.devices.nodes if str(number) not in env.network.device_addresses]
    if without:
        yield Problem(
            say("/etc/hccn.conf has no address for device {devices}.", devices=", ".join(without)),
            say("Give each device an address in the network of the NPUs; into a container, mount /etc/hccn.conf."),
            (f"hccn_tool -i {without[0]} -ip -s address ADDRESS netmask MASK",),
        )


@check("ND506")
def tls_switch_differs(env: Environment) -> Iterator[Problem]:
    """Some devices of the machine use TLS and some do not."""
    on = [device for device, switch in env.network.tls.items() if switch]
    if on and len(on) < len(env.network.tls):
        yield Problem(
            say("TLS is on for device {on} and off for the others.", on=", ".join(on)),
            say("Set one switch on all devices of all machines, then begin again."),
            ("for i in " + " ".join(env.network.tls) + '; do hccn_tool -i "$i" -tls -s enable 0; done',),
        )


@check("ND507")
def firewall_on(env: Environment) -> Iterator[Problem]:
    """A firewall runs and the training spans machines."""
    if env.network.firewall and _several_machines(env):
        yield Problem(
            say("firewalld is running."),
            say("Let the other machines of the job through."),
            ("sudo firewall-cmd --zone=trusted --add-source=NETWORK/24",),
        )


@check("ND508")
def launcher_drops_variables(env: Environment) -> Iterator[Problem]:
    """A DeepSpeed whose launcher knows NCCL's variables only."""
    package = env.package("deepspeed")
    if package is not None and env.settings.deepspeed_exports is False:
        yield Problem(
            say("DeepSpeed {version} does not hand HCCL_* and ASCEND_* variables on to other machines.",
                version=package.version),
            say("Install a newer DeepSpeed, or write the variables into ~/.deepspeed_env, one NAME=value a line."),
            ("env | grep -E '^(ASCEND|HCCL|LD_LIBRARY_PATH|PATH)' > ~/.deepspeed_env",),
        )  # fmt: skip


@check("ND509")
def loopback_address(env: Environment) -> Iterator[Problem]:
    """Several machines, and an address that only this one reaches."""
    for name in ("MASTER_ADDR", "HCCL_IF_IP"):
        value = env.variables.get(name, "")
        if _several_machines(env) and (value == "localhost" or value.startswith("127.")):
            yield Problem(
                say("{name} is {value}, and the training has more ranks than this machine.", name=name, value=value),
                say("Write the address at which the other machines reach it."),
            )


@check("ND510")
def allow_list_missing(env: Environment) -> Iterator[Problem]:
    """HCCL's allow list is on and there is none."""
    if env.variables.get("HCCL_WHITELIST_DISABLE") == "0" and (
        not env.variables.get("HCCL_WHITELIST_FILE") or "HCCL_WHITELIST_FILE" in env.dead_paths
    ):
        yield Problem(
            say("HCCL_WHITELIST_DISABLE is 0, and HCCL_WHITELIST_FILE names no file."),
            say("Turn the list off, or write it."),
            ("export HCCL_WHITELIST_DISABLE=1",),
        )


def _devices(server: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The devices of a server, as far as they are objects at all."""
    listed = server.get("device")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _base_port(env: Environment) -> int:
    value = env.variables.get("HCCL_IF_BASE_PORT", "")
    return int(value) if value.isdecimal() else _FIRST_PORT


def _reserved(text: str, first: int) -> bool:
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        if int(low) <= first and first + _PORTS - 1 <= int(high or low):
            return True
    return False


def _several_machines(env: Environment) -> bool:
    world, local = env.variables.get("WORLD_SIZE", ""), env.variables.get("LOCAL_WORLD_SIZE", "")
    here = int(local) if local.isdecimal() else len(env.devices.nodes)
    servers = env.rank_table.document.get("server_list", []) if env.rank_table else []
    return (world.isdecimal() and here > 0 and int(world) > here) or (isinstance(servers, list) and len(servers) > 1)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
