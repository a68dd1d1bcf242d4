"""One test for each check of the programs in programs/, which run on the simulated NPU."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.search_path import STARTUP
from npuport.sim import SimOptions

# program: devices, processes
PROGRAMS = {
    "stand_in.py": (2, 1),
    "devices.py": (2, 1),
    "memory.py": (2, 1),
    "runtime.py": (2, 1),
    "random_numbers.py": (2, 1),
    "training.py": (1, 1),
    "mixed_precision.py": (1, 1),
    "data_and_files.py": (2, 1),
    "tools.py": (1, 1),
    "recorder.py": (1, 1),
    "hccl.py": (2, 1),
    "sharing.py": (1, 1),
    "fused_collectives.py": (2, 2),
}


def checks_in(program: str) -> list[str]:
    """Names of the functions ``check_*`` of a program, in their order."""
    tree = ast.parse((Path(__file__).parent / "programs" / program).read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


@pytest.mark.parametrize(("program", "check"), [(name, check) for name in PROGRAMS for check in checks_in(name)])
def test_program(outcomes: Callable[..., dict[str, str | None]], program: str, check: str) -> None:
    devices, processes = PROGRAMS[program]
    error = outcomes(program, devices, processes)[check]
    assert error is None, error


def test_expandable_segments(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = """
import torch
before = torch.npu.mem_get_info()[0]
held = [torch.full((1 << 20,), float(i), device="npu") for i in range(12)]
assert [t[-1].item() for t in held] == list(range(12))
assert before - torch.npu.mem_get_info()[0] >= 48 << 20
del held
torch.npu.empty_cache()
assert torch.npu.mem_get_info()[0] == before
print("done")
"""
    done = simulated(["-c", code], PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
    assert done.stdout == "done\n", done.stderr[-2000:]


def test_a_library_in_front_of_cann(simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    source, library = tmp_path / "hook.c", tmp_path / "hook.so"
    source.write_text("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int aclrtMallocAlign32(void **pointer, size_t size, int policy) {
    puts("hooked");
    return ((int (*)(void **, size_t, int))dlsym(RTLD_NEXT, "aclrtMallocAlign32"))(pointer, size, policy);
}
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    done = simulated(["-c", "import torch; print(torch.ones(2, device='npu').tolist())"], LD_PRELOAD=str(library))
    assert sorted(done.stdout.split("\n")) == ["", "[1.0, 1.0]", "hooked"], done.stderr[-2000:]


def test_importing_does_not_touch_the_devices(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """So that a program may still fork, and choose its devices."""
    code = """
import os, torch
assert not torch.npu.is_initialized()
child = os.fork()
if child == 0:
    os._exit(int(torch.ones(3, device="npu:1").sum().item()))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
counts = []
for visible in ("0,1", "1", "0,32,1", "0, 1", "1,0", "", ",0", "npu0", "0,1,1"):
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = visible
    counts.append(torch.npu.device_count())
print(*counts)
"""
    done = simulated(["-c", code], SimOptions(devices=2))
    assert done.stdout == "2 1 1 1 0 0 0 0 0\n", done.stderr[-2000:]


@pytest.mark.parametrize(
    ("visible", "count"), [("1", 1), ("0,32,1", 1), ("0, 1", 1), ("1,0", 0), (",0", 0), ("0,1", 2)]
)
def test_the_runtime_counts_visible_devices_alike(
    simulated: Callable[..., subprocess.CompletedProcess[str]], visible: str, count: int
) -> None:
    code = "import torch, torch_npu; print(torch_npu._C._npu_getDeviceCount(), torch.npu.device_count())"
    done = simulated(["-c", code], SimOptions(devices=2), ASCEND_RT_VISIBLE_DEVICES=visible)
    assert done.stdout == f"{count} {count}\n", done.stderr[-2000:]


def test_memory_of_a_small_chip(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = "import torch; torch.empty(3 << 30, dtype=torch.uint8, device='npu')"
    done = simulated(["-c", code], SimOptions(chip="Ascend910B4", memory_gib=2))
    assert done.returncode == 1 and "2.00 GiB total capacity" in done.stderr


def test_activate_in_process(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = (
        "import npuport.sim as sim\nassert not sim.is_active()\nsim.activate(sim.SimOptions(chip='Ascend910A'))\n"
        "import torch\nprint(sim.is_active(), torch.npu.get_device_name(0), torch.npu.is_bf16_supported())\n"
        "sim.activate()\n"
    )
    plain = dict.fromkeys(("NPUPORT_SIM", "LD_LIBRARY_PATH", "NPUPORT_SIM_CHIP"), "")
    done = simulated(["-c", code], TORCH_DEVICE_BACKEND_AUTOLOAD="1", **plain)
    assert done.stdout.startswith("True Ascend910A False\n"), done.stderr[-2000:]
    assert "torch is already imported" in done.stderr


def test_outside_a_simulated_run_nothing_happens(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = "import sys, npuport.sim as sim; print(len(sys.meta_path), sim.is_active())"
    plain = simulated(["-I", "-c", code]).stdout.split()[0]
    assert simulated(["-c", code], NPUPORT_SIM="0").stdout == f"{plain} False\n"
    assert simulated(["-c", code]).stdout == f"{int(plain) + 1} True\n"


@pytest.mark.parametrize("first", ["torch", "torch_npu", "torch_npu.npu"])
def test_whatever_is_imported_first(simulated: Callable[..., subprocess.CompletedProcess[str]], first: str) -> None:
    code = f"import {first}, torch\nx = torch.ones(2, device='npu')\nprint(torch.cat([x, x]).tolist())"
    done = simulated(["-c", code])
    assert done.stdout == "[1.0, 1.0, 1.0, 1.0]\n", done.stderr[-2000:]
    assert "sitecustomize" not in done.stderr


def test_a_process_without_torch_npu_loads_nothing_of_the_simulation(
    simulated: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    loaded = "print(*(name for name in sys.modules if name.startswith('npuport.sim')), sep='')"
    for auto in ("0", "1"):
        done = simulated(["-c", f"import sys; {loaded}; import torch_npu; {loaded}"], NPUPORT_AUTO=auto)
        before, after = done.stdout.splitlines()
        assert before == "" and "npuport.sim.loading" in after, done.stderr


def test_the_hidden_sitecustomize_runs_too(
    simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.hidden_ran = True\n")
    startup = STARTUP
    done = simulated(["-c", "print(hidden_ran)"], PYTHONPATH=os.pathsep.join([startup, str(tmp_path)]))
    assert done.stdout == "True\n", done.stderr


def test_missing_names_what_is_refused(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = (
        "import torch, npuport.sim as sim\nnames = sim.missing()\n"
        "print('npu::obfuscation_finalize' in names, 'aten::add.Tensor' in names, len(names) < 500)"
    )
    assert simulated(["-c", code]).stdout == "True False True\n"
