"""Machines that differ from the good one in one thing, and what a case of a check is."""

from __future__ import annotations

import json
from dataclasses import dataclass

from environment.machines import NNAL, SITE, TREE, Faked, Link, distribution, npu_smi_info, toolkit, trained_on

GOOD = trained_on()
IN_CONTAINER = GOOD.having({"/.dockerenv": ""})
DRIVER = "/usr/local/Ascend/driver/version.info"
RUNNER = f"{SITE}/deepspeed/launcher/runner.py"


def with_package(name: str, version: str, *requires: str, machine: Faked = GOOD, tag: str = "py3-none-any") -> Faked:
    """The machine with this version of a package instead of its own."""
    files: dict[str, object] = {**distribution(name, version, *requires, tag=tag)}
    if name == "torch":
        files[f"{SITE}/torch/version.py"] = f"__version__ = '{version}'\ncuda: Optional[str] = None\n"
    return machine.without(f"{SITE}/{name}-").having(files)


def with_chip(chip: str, **settings: object) -> Faked:
    """The machine with eight of another chip."""
    return GOOD.answering("npu-smi info", npu_smi_info(chip, **settings))  # type: ignore[arg-type]


def with_cann(version: str, kernels: str | None = None) -> Faked:
    """The machine with another CANN; ``kernels`` is the release of its operator package if that differs."""
    path = f"/usr/local/Ascend/ascend-toolkit/{version}"
    files: dict[str, object] = {
        **toolkit(version, path),
        f"{path}/opp/built-in": TREE,
        "/usr/local/Ascend/ascend-toolkit/latest": Link(version),
        f"{path}/opp_kernel/version.info": f"Version=8\nversion_dir={kernels or version}\n",
        f"{NNAL}/version.info": f"    Ascend-cann-atb : {version}\n",
    }
    return GOOD.without("/usr/local/Ascend/ascend-toolkit").having(files)


def rank_table(**changes: object) -> str:
    """A rank table of two servers with one device each."""
    servers = [
        {"server_id": "10.0.0.1", "device": [{"device_id": "0", "device_ip": "192.168.100.100", "rank_id": "0"}]},
        {"server_id": "10.0.0.2", "device": [{"device_id": "0", "device_ip": "192.168.100.108", "rank_id": "1"}]},
    ]
    table = {"version": "1.0", "status": "completed", "server_count": "2", "server_list": servers}
    return json.dumps({**table, **changes})


def with_rank_table(text: str) -> Faked:
    return GOOD.having({"/home/ada/ranks.json": text}, RANK_TABLE_FILE="/home/ada/ranks.json")


ONE_SERVER = [{"server_id": "10.0.0.1", "device": [{"device_id": "1", "device_ip": "192.168.100.100", "rank_id": "7"}]}]
TWO_MACHINES = {"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "MASTER_ADDR": "10.0.0.1"}


@dataclass(frozen=True)
class Case:
    """A machine, the code it must get, and words of what is said: of what was seen and of the fix."""

    code: str
    machine: Faked
    sees: str
    fixes: str

    def __str__(self) -> str:
        return f"{self.code} {self.sees}"
