"""Machines whose files, variables and packages say nothing that can be understood: the checks still end, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from environment.machines import SITE, TREE, Faked, Link, trained_on
from environment.variants import rank_table, with_package, with_rank_table
from npuport.environment.checks.registry import diagnose

GARBAGE = ("", b"\xff\x00\xfe \x00", "=\n=:[,]\n:::\nVersion=\nversion=abc\n", "[[[{{{")
NUMBERS = ("HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_IF_BASE_PORT", "MASTER_PORT", "WORLD_SIZE",
           "LOCAL_WORLD_SIZE", "ASCEND_RT_VISIBLE_DEVICES", "PYTORCH_NPU_ALLOC_CONF", "HCCL_SOCKET_IFNAME")  # fmt: skip
TABLES = (
    "[]",
    '{"server_list": 5}',
    '{"version": "1.0", "server_list": [1, {"server_id": null, "device": 5}]}',
    '{"version": "1.0", "status": "completed", "server_list": [{"device": [1, {"device_id": [1]}]}]}',
)


def broken() -> Iterator[tuple[str, Faked]]:
    machine = trained_on().having({"/home/ada/ranks.json": rank_table()}, RANK_TABLE_FILE="/home/ada/ranks.json")
    files = [name for name, content in machine.files.items() if content is not TREE and not isinstance(content, Link)]
    for number, garbage in enumerate(GARBAGE):
        yield f"files {number}", machine.having(dict.fromkeys(files, garbage))
    folder = next(name for name, content in machine.files.items() if content is TREE and "/kernel/" in name)
    yield "a file for a folder", machine.without(folder).having({folder.rsplit("/", 1)[0]: "a file"})
    for value in ("", "²", "-1", "[1", "9" * 40, "a,b,,c"):
        yield f"numbers {value[:5]}", machine.having(None, **dict.fromkeys(NUMBERS, value))
        yield f"paths {value[:5]}", machine.having(None, **dict.fromkeys(machine.variables, value))
    for text in TABLES:
        yield f"rank table {text[:30]}", with_rank_table(text)
    for name in ("torch", "torch_npu", "numpy", "transformers"):
        yield f"version of {name}", with_package(name, "weird")
    yield "torch alone", with_package("torch", "weird", machine=trained_on().without(f"{SITE}/torch_npu-"))
    nothing: dict[str, object] = {"arch": "", "glibc": "", "prefix": "", "home": "", "folder": "", "search_path": ()}
    yield "process", machine.running(**nothing)
    yield "npu-smi", machine.answering("npu-smi info", "\x00| 0     910B3 | OK |\n| 0 | 0000:C1:00.0 | 1 / |\n")


@pytest.mark.parametrize(("name", "machine"), list(broken()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_broken_machine_is_diagnosed(name: str, machine: Faked, tmp_path: Path) -> None:
    said = [f"{one.seen} {one.fix}" for one in diagnose(machine.environment(tmp_path))]
    assert all(said), name
