"""The measured tables against the authorities: the real torch_npu, its dispatcher and its files."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from npuport import facts
from npuport.facts._tables import DATA

pytestmark = pytest.mark.sim
if importlib.util.find_spec("torch_npu") is None:
    pytest.skip("needs torch_npu", allow_module_level=True)
TOOLS = Path(__file__).resolve().parents[2] / "tools"

RESOLVE = """
import importlib, json, sys, torch, torch_npu

def resolve(dotted):
    #By attributes, as a program does after `import torch, torch_npu`; modules that nobody imported yet are imported.
    parts = dotted.split(".")
    value = importlib.import_module(parts[0])
    for end, part in enumerate(parts[1:], 2):
        if not hasattr(value, part):
            importlib.import_module(".".join(parts[:end]))
        value = getattr(value, part)
    return value

def problem(npu_name, import_from):
    try:
        value = resolve(npu_name)
    except Exception as error:
        return f"{npu_name}: {error}"
    if import_from:
        last = npu_name.rpartition(".")[2]
        found = getattr(importlib.import_module(import_from), last)
        if found is not value and found != value:
            return f"from {import_from} import {last} is another object than {npu_name}"

problems = [problem(*pair) for pair in json.loads(sys.argv[1])]
print(json.dumps([p for p in problems if p]))
"""

RUN_TOOL = """
import json, runpy, sys
sys.path.insert(0, {tools!r})
tool = runpy.run_path({script!r})
print(json.dumps({expression}))
"""


def remeasure(on_cann: Any, script: str, expression: str) -> Any:
    return on_cann(RUN_TOOL.format(tools=str(TOOLS), script=str(TOOLS / script), expression=expression))


def installed(distribution: str) -> str:
    return importlib.metadata.version(distribution).partition("+")[0]


@pytest.fixture(autouse=True)
def _same_version() -> None:
    if installed("torch-npu") != "2.13.0":
        pytest.skip("the tables were measured on torch_npu 2.13.0")


def test_names_are_what_the_namespace_says(on_cann: Any) -> None:
    measured = remeasure(on_cann, "measure_torch_npu_names.py", "tool['as_csv'](tool['measure']())")
    assert measured == (DATA / "torch_cuda_measured.csv").read_text(encoding="utf-8")


def test_operators_are_what_the_dispatcher_says(on_cann: Any) -> None:
    measured = remeasure(on_cann, "measure_operators.py", "tool['measure']()")
    assert measured == json.loads((DATA / "operators.json").read_text(encoding="utf-8"))


def test_every_counterpart_exists_and_can_be_imported_from_where_we_say(on_cann: Any) -> None:
    entries: list[facts.CudaName | facts.TorchName] = [*facts.all_torch_cuda_names(), *facts.all_torch_names()]
    pairs = [(e.npu_name, e.import_from) for e in entries if e.npu_name and not e.name.endswith("pin_memory_device")]
    assert len(pairs) > 200
    assert on_cann(RESOLVE, json.dumps(pairs)) == []


def test_every_accelerator_name_exists_beside_its_cuda_name(on_cann: Any) -> None:
    entries = facts.all_accelerator_names()
    pairs = [(e.accelerator_name, None) for e in entries] + [(e.name, None) for e in entries]
    assert on_cann(RESOLVE, json.dumps(pairs)) == []


def test_module_paths_import_the_module_that_torch_npu_uses(on_cann: Any) -> None:
    source = """
import importlib, json, sys, torch, torch_npu
pairs = json.loads(sys.argv[1])
print(json.dumps([path for path, name in pairs if importlib.import_module(path) is not eval(name)]))
"""
    modules = [(e.module_path, e.npu_name) for e in facts.all_torch_cuda_names() if e.module_path]
    assert len(modules) > 5
    assert on_cann(source, json.dumps(modules)) == []


def test_importing_a_submodule_of_torch_npu_by_its_alias_makes_a_second_copy(on_cann: Any) -> None:
    source = """
import json, torch, torch_npu
kept = torch_npu.npu.amp.GradScaler
from torch.npu.amp import GradScaler
print(json.dumps(GradScaler is kept))
"""
    assert on_cann(source) is False


def test_fallback_operators_refuse_to_run_where_fallback_is_forbidden(on_cann: Any) -> None:
    chosen = ["lgamma", "digamma", "heaviside", "hypot", "i0", "nextafter"]
    for name in chosen:
        status = facts.operator_status(name)
        assert status is not None and status.status == "cpu_fallback"
    source = """
import json, sys, torch, torch_npu
x = torch.empty(2, device="npu")
said = {}
for name in json.loads(sys.argv[1]):
    operator = getattr(torch, name)
    try:
        operator(x, x) if name in ("heaviside", "hypot", "nextafter") else operator(x)
        said[name] = "ran"
    except Exception as error:
        said[name] = str(error)
print(json.dumps(said))
"""
    said = on_cann(source, json.dumps(chosen), TORCH_NPU_FALLBACK_CPU_DISABLE="1")
    assert all(f"aten::{name}" in text for name, text in said.items()), said


BEHAVIOUR = """
import json, torch, torch_npu
said = {}
torch.empty(1, device="npu")
def ask(name, question):
    try:
        said[name] = str(question())
    except BaseException as error:
        said[name] = f"{type(error).__name__}: {error}"

ask("capability", lambda: torch.npu.get_device_capability())
ask("major", lambda: torch.npu.get_device_properties(0).major)
ask("device=", lambda: torch.npu.get_device_name(device=0))
ask("cuda string", lambda: torch.npu.set_device("cuda:0"))
ask("double", lambda: torch.empty(1, device="npu").double().dtype)
ask("float64", lambda: torch.empty(1, dtype=torch.float64, device="npu").dtype)
ask("channels_last", lambda: torch.empty(1, 1, 1, 1, device="npu").to(memory_format=torch.channels_last))
ask("channels_last_3d", lambda: torch.empty(1, 1, 1, 1, 1, device="npu").to(memory_format=torch.channels_last_3d))
ask("matmul hf32", lambda: torch.npu.matmul.allow_hf32)
ask("conv hf32", lambda: torch.npu.conv.allow_hf32)
torch.set_float32_matmul_precision("high")
ask("matmul hf32 later", lambda: torch.npu.matmul.allow_hf32)
ask("scaler", lambda: isinstance(torch.amp.GradScaler("npu"), torch.npu.amp.GradScaler))
ask("nccl", lambda: torch.distributed.is_nccl_available())
ask("group", lambda: torch.distributed.ProcessGroupHCCL)
ask("cudnn", lambda: torch.backends.cudnn.version())
ask("version", lambda: torch.version.cuda)
ask("cuda()", lambda: torch.zeros(1).cuda())
ask("default type", lambda: torch.set_default_tensor_type("torch.npu.FloatTensor"))
ask("quantised", lambda: torch.empty(2, dtype=torch.quint8).npu())
ask("capability of the accelerator", lambda: torch.accelerator.get_device_capability())
torch.npu.set_compile_mode(jit_compile=True)
ask("complex, jit", lambda: torch.empty(1, dtype=torch.complex64, device="npu"))
torch.npu.set_compile_mode(jit_compile=False)
ask("complex", lambda: torch.empty(1, dtype=torch.complex64, device="npu").dtype)
with torch.autocast("npu"):
    ask("autocast", lambda: torch.is_autocast_enabled())
    ask("autocast npu", lambda: (torch.is_autocast_enabled("npu"), torch.get_autocast_dtype("npu")))
ask("memory", lambda: torch.empty(1 << 50, dtype=torch.uint8, device="npu"))
print(json.dumps(said))
"""


def test_behaviour_that_the_notes_state(on_cann: Any) -> None:
    said = on_cann(BEHAVIOUR, kernels=True)
    begins = {
        "capability": "None",
        "major": "None",
        "device=": "TypeError",
        "cuda string": "ValueError",
        "double": "torch.float32",
        "float64": "torch.float64",
        "channels_last": "RuntimeError: Only contiguous_format or preserve_format",
        "channels_last_3d": "RuntimeError: Only contiguous_format or preserve_format",
        "matmul hf32": "False",
        "conv hf32": "True",
        "matmul hf32 later": "False",
        "scaler": "False",
        "nccl": "False",
        "group": "AttributeError",
        "cudnn": "None",
        "version": "None",
        "cuda()": "AssertionError: Torch not compiled with CUDA enabled",
        "default type": "TypeError",
        "quantised": "NotImplementedError",
        "capability of the accelerator": "RuntimeError",
        "complex, jit": "RuntimeError",
        "complex": "torch.complex64",
        "autocast": "False",
        "autocast npu": "(True, torch.float16)",
        "memory": "OutOfMemoryError: NPU out of memory",
    }
    wrong = {name: text for name, text in said.items() if not text.startswith(begins[name])}
    assert set(said) == set(begins) and not wrong, wrong


def test_variables_of_torch_npu_occur_in_its_files() -> None:
    spec = importlib.util.find_spec("torch_npu")
    assert spec is not None and spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    wanted = {entry.counterpart for entry in facts.all_variables() if entry.counterpart}
    wanted = {name for name in wanted if re.match(r"(TORCH_HCCL|TORCH_NPU|PYTORCH)_", name)}
    library = (package / "lib/libtorch_npu.so").read_bytes()
    python = b"".join(path.read_bytes() for path in package.glob("npu/**/*.py"))
    assert len(wanted) > 10
    assert not {name for name in wanted if name.encode() not in library and name.encode() not in python}


def test_the_installed_pair_is_in_the_table() -> None:
    pairs = [(release.torch, release.torch_npu) for release in facts.torch_npu_for(installed("torch"))]
    assert (installed("torch"), installed("torch-npu")) in pairs


SOC = """
import json, torch, torch_npu
print(json.dumps([torch.npu.get_soc_version(), torch.npu.is_bf16_supported(), torch.npu.get_device_name(0)]))
"""


@pytest.mark.parametrize("name", ["Ascend910A", "Ascend910B3", "Ascend310P3"])
def test_chips_are_what_torch_npu_takes_them_for(on_cann: Any, name: str) -> None:
    entry = facts.chip(name)
    assert entry is not None
    assert on_cann(SOC, chip=name) == [entry.soc_version, entry.bf16, name]
