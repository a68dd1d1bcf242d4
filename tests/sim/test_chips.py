"""What a chip refuses: the errors a user meets."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npuport import facts
from npuport.sim import SimOptions

Simulated = Callable[..., subprocess.CompletedProcess[str]]

SHARING = """
import signal, subprocess, sys, time
import torch

def take(gib, device="npu"):
    return torch.empty(gib << 30, dtype=torch.uint8, device=device)

if sys.argv[1] == "hold":
    held = take(20)
    print("held", flush=True)
    sys.stdin.read()

command = [sys.executable, __file__, "hold"]
other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert other.stdout.readline() == "held\\n"
free, total = torch.npu.mem_get_info()
print(total - free >= 20 << 30)
try:
    take(15)
except torch.OutOfMemoryError as error:
    print(str(error).partition(".If")[0])
take(25, "npu:1")
other.send_signal(signal.SIGKILL)
for attempt in range(100):  # the kernel takes a moment to end it
    if torch.npu.mem_get_info()[0] > 30 << 30:
        break
    time.sleep(0.05)
print(take(30).numel() >> 30)
"""


def test_processes_on_one_device_share_its_memory(simulated: Simulated, tmp_path: Path) -> None:
    script = tmp_path / "share.py"
    script.write_text(SHARING)
    options = SimOptions(chip="Ascend910B4", devices=2)
    done = simulated([script, "run"], options, NPUPORT_SIM_RUN=str(tmp_path))
    lines = done.stdout.splitlines()
    assert lines[0] == "True" and lines[2] == "30", done.stderr[-2000:]
    assert lines[1].startswith("NPU out of memory. Tried to allocate 15.00 GiB (NPU 0; 32.00 GiB total capacity;")
    assert "12.00 GiB free" in lines[1]


def test_renumbered_devices_keep_their_memory(simulated: Simulated, tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, torch\n"
        "held = torch.empty(20 << 30, dtype=torch.uint8, device='npu:1')\n"
        "ask = 'import torch; print(torch.npu.mem_get_info()[0] >> 30)'\n"
        "for visible in '01':\n"
        "    env = {**os.environ, 'ASCEND_RT_VISIBLE_DEVICES': visible}\n"
        "    subprocess.run([sys.executable, '-c', ask], env=env, check=True)\n"
    )
    options = SimOptions(chip="Ascend910B4", devices=2)
    done = simulated(["-c", code], options, NPUPORT_SIM_RUN=str(tmp_path))
    assert done.stdout.split() == ["32", "11"], done.stderr[-2000:]


ERRORS = """
import json, sys, warnings
import torch

def error_of(function):
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None

def ones(dtype, *shape):
    return torch.ones(*shape, dtype=dtype).npu()

def double(*shape):
    return ones(torch.float64, *shape)

def bfloat16_model():
    model = torch.nn.Linear(4, 4).to(torch.bfloat16).npu()
    return model(torch.ones(2, 4, dtype=torch.bfloat16).npu())

cases = {
    "convolution": lambda: torch.nn.functional.conv2d(double(1, 3, 8, 8), double(4, 3, 3, 3)),
    "convolution in float32": lambda: torch.nn.Conv2d(3, 4, 3).npu()(ones(torch.float32, 1, 3, 8, 8)),
    "matmul": lambda: double(2, 2) @ double(2, 2),
    "matmul without elements": lambda: double(0, 2) @ double(2, 2),
    "complex matmul": lambda: ones(torch.complex64, 2, 2) @ ones(torch.complex64, 2, 2),
    "int64 convolution": lambda: torch.nn.functional.conv1d(ones(torch.int64, 1, 1, 4), ones(torch.int64, 1, 1, 2)),
    "repeat_interleave": lambda: double(2).repeat_interleave(2, 0),
    "svd": lambda: torch.linalg.svd(double(2, 2)),
    "unlisted": lambda: torch.erf(torch.ones(2, dtype=torch.bfloat16).npu()),
    "bfloat16 model": bfloat16_model,
    "bfloat16 cast": lambda: torch.ones(2).npu().to(torch.bfloat16),
    "bfloat16 autocast": lambda: torch.autocast("npu", torch.bfloat16).__enter__(),
    "float16 model": lambda: torch.nn.Linear(4, 4).half().npu()(torch.ones(2, 4).half().npu()),
    "fallback": lambda: torch.lgamma(torch.ones(2).npu()),
    "sparse": lambda: torch.ones(2, 2).to_sparse().npu().exp(),
}
found = {}
for name in cases:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = error_of(cases[name])
    ours = [w for w in caught if "npuport" in str(w.message)]
    found[name] = [error, [[w.category.__name__, w.filename, str(w.message)] for w in ours]]
print("FOUND " + json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(simulated: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """``found(chip, strict)``: for each case its error, and its warnings."""
    script = tmp_path_factory.mktemp("chips") / "errors.py"
    script.write_text(ERRORS)

    @functools.cache
    def run(chip: str, strict: bool) -> Any:
        done = simulated([script], SimOptions(chip=chip, strict=strict))
        assert "FOUND " in done.stdout, done.stderr[-3000:]
        return json.loads(done.stdout.partition("FOUND ")[2]), str(script), done.stderr

    return run


@pytest.mark.parametrize(
    ("case", "function", "dtype"),
    [
        ("convolution", "aclnnConvolution", "DT_DOUBLE"),
        ("matmul", "aclnnM(?:atmul|m)", "DT_DOUBLE"),
        ("complex matmul", "aclnnM(?:atmul|m)", "DT_COMPLEX64"),
        ("int64 convolution", "aclnnConvolution", "DT_INT64"),
        ("repeat_interleave", "aclnnRepeatInterleaveInt", "DT_DOUBLE"),
    ],
)
def test_strict_raises_what_cann_says(found: Callable[..., Any], case: str, function: str, dtype: str) -> None:
    """The words of a real device: https://github.com/vllm-project/vllm-ascend/issues/6636."""
    error, warned = found("Ascend910B3", True)[0][case]
    assert warned == []
    assert re.match(
        r"RuntimeError: \w+: NPU function error: call " + function + " failed, error code is 161002\n", error
    )
    assert "ERR00100 PTA call acl api failed" in error
    assert re.search(
        r"EZ1001\): Tensor \w+ not implemented for " + dtype + r", should be in dtype support list \[DT_", error
    )


def test_strict_raises_torch_npus_own_words(found: Callable[..., Any]) -> None:
    error, _ = found("Ascend910B3", True)[0]["svd"]
    assert error.startswith("RuntimeError: svd_npu only supported Float, but getdouble")


def test_what_is_not_certain_is_never_raised(found: Callable[..., Any]) -> None:
    for strict in (False, True):
        error, warned = found("Ascend910B3", strict)[0]["unlisted"]
        assert error is None
        assert len(warned) == 1 and "aten::erf may not take bfloat16 on Ascend910B3" in warned[0][2]


@pytest.mark.parametrize(
    "case", ["convolution in float32", "matmul without elements", "bfloat16 model", "bfloat16 cast", "float16 model"]
)
def test_what_the_chip_takes_is_not_noticed(found: Callable[..., Any], case: str) -> None:
    assert found("Ascend910B3", True)[0][case] == [None, []]


def test_by_default_one_warning_names_the_users_line(found: Callable[..., Any]) -> None:
    cases, script, _ = found("Ascend910B3", False)
    error, warned = cases["matmul"]
    assert error is None
    assert [(kind, path) for kind, path, _ in warned] == [("ChipWarning", script)]
    assert "does not take float64 on Ascend910B3" in warned[0][2] and "--strict" in warned[0][2]


def test_a_bfloat16_model_on_the_first_generation(found: Callable[..., Any]) -> None:
    """The words of a real device: https://github.com/hiyouga/LLaMA-Factory/issues/6694 (EZ3002)."""
    cases, _, _ = found("Ascend910A", True)
    error, _ = cases["bfloat16 model"]
    assert (
        "OPS function error: " in error
        and "error code is 500002" in error
        and "ERR01100 OPS call acl api failed" in error
    )
    assert re.search(
        r"EZ3002: .* Optype \[\w+\] of Ops kernel \[AIcoreEngine\] is unsupported. Reason: .*DT_BFLOAT16", error
    )
    assert "Optype [Cast]" in cases["bfloat16 cast"][0]
    assert cases["float16 model"] == [None, []]
    warned = found("Ascend910A", False)[0]["bfloat16 model"]
    assert warned[0] is None and "aten::addmm does not take bfloat16 on Ascend910A" in warned[1][0][2]


def test_a_bfloat16_model_on_the_310p(found: Callable[..., Any]) -> None:
    """The words of a real device: https://github.com/hiyouga/LLaMA-Factory/issues/7522 (aclnnCast)."""
    cases, _, _ = found("Ascend310P3", True)
    for case, function in (("bfloat16 model", "aclnnAddmm"), ("bfloat16 cast", "aclnnCast")):
        assert f"call {function} failed" in cases[case][0] and "not implemented for DT_BFLOAT16" in cases[case][0]
    assert "DT_BFLOAT16" not in cases["bfloat16 cast"][0].partition("support list")[2]


def test_an_operator_without_a_kernel(found: Callable[..., Any], simulated: Simulated) -> None:
    """A fallback to the CPU is slow, not an error, unless the environment forbids it: all in torch_npu's own words."""
    cases, _, stderr = found("Ascend910B3", True)
    assert cases["fallback"] == [None, []]
    assert "The operator 'aten::lgamma.out' is not currently supported on the NPU backend and will fall back" in stderr
    assert cases["sparse"][0].startswith(
        "RuntimeError: CAUTION: The operator 'aten::exp' is not currently supported on"
    )
    code = "import torch; torch.lgamma(torch.ones(2).npu())"
    forbidden = simulated(["-c", code], SimOptions(strict=True), TORCH_NPU_FALLBACK_CPU_DISABLE="1")
    assert forbidden.returncode == 1 and "aten::lgamma" in forbidden.stderr.splitlines()[-1] + forbidden.stderr


SATURATING = """
import torch
from torch.npu import utils

big = torch.full((2,), 60000.0, dtype=torch.float16, device="npu")
utils.clear_npu_overflow_flag()
print((big + 1).tolist(), utils.get_npu_overflow_flag())
print((big * 2).tolist(), (big * -2).tolist(), utils.get_npu_overflow_flag())
print(utils.npu_check_overflow(big), utils.npu_check_overflow(big))  # telling clears the flag
zeros = torch.zeros(2, device="npu")
print((zeros / zeros).tolist(), (big.float() * 2).half().tolist(), utils.npu_check_overflow(big))
mask = torch.zeros(2, device="npu").masked_fill_(torch.tensor([True, False]).npu(), float("-inf"))
print(mask.tolist(), torch.softmax(mask, 0).tolist(), utils.npu_check_overflow(big))
"""

SCALING = """
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
scaler = torch.npu.amp.GradScaler(init_scale=2.0**20, growth_interval=4)
for _ in range(12):
    before = model.weight.detach().clone()
    optimizer.zero_grad()
    with torch.npu.amp.autocast():
        loss = model(torch.randn(4, 4, device="npu")).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    moved = not torch.equal(before, model.weight)
    print("STEP", scaler.get_scale(), moved, bool(torch.isfinite(model.weight).all()))
"""


def test_the_first_generation_saturates(simulated: Simulated) -> None:
    """INF_NAN_MODE_ENABLE and npu_check_overflow in torch_npu's documents: the extreme value, 0 for NaN, and a flag."""
    done = simulated(["-c", SATURATING], SimOptions(chip="Ascend910A"))
    assert done.stdout.splitlines() == [
        "[60000.0, 60000.0] False",
        "[65504.0, 65504.0] [-65504.0, -65504.0] True",
        "True False",
        "[0.0, 0.0] [65504.0, 65504.0] True",
        "[-inf, 0.0] [0.0, 1.0] False",
    ], done.stderr[-2000:]


def test_gradients_of_different_dtypes_are_not_unscaled_together(simulated: Simulated) -> None:
    code = (
        "import torch; one = torch.ones(1, device='npu')\n"
        "torch._amp_foreach_non_finite_check_and_unscale_([one, one.half()], one.clone(), one.clone())"
    )
    done = simulated(["-c", code], SimOptions(chip="Ascend910A"))
    assert "RuntimeError: scaled_grads must have the same dtype" in done.stderr, done.stderr[-2000:]


def test_other_chips_saturate_where_the_environment_asks(simulated: Simulated) -> None:
    code = (
        "import torch; x = torch.full((1,), 6e4, device='npu').half() * 2\n"
        "print(x.item(), torch.npu.utils.is_support_inf_nan())"
    )
    assert simulated(["-c", code]).stdout == "inf True\n"
    forced = simulated(["-c", code], INF_NAN_MODE_ENABLE="0", INF_NAN_MODE_FORCE_DISABLE="1")
    assert forced.stdout == "65504.0 False\n", forced.stderr[-2000:]


def test_loss_scaling_finds_its_scale_where_overflow_only_sets_a_flag(simulated: Simulated) -> None:
    def steps(chip: str) -> list[list[str]]:
        done = simulated(["-c", SCALING], SimOptions(chip=chip))
        found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("STEP")]
        assert len(found) == 12, done.stderr[-2000:]
        return found

    saturating, other = steps("Ascend910A"), steps("Ascend910B3")
    assert all(finite == "True" for _, _, finite in saturating)
    assert saturating == other  # the same steps are skipped, and the same scale is found
    assert saturating[0][1] == "False" and saturating[-1][1] == "True"  # skipped at first, trained at last


@pytest.mark.parametrize("chip", ["Ascend910A", "950"])
def test_what_a_chip_says_of_itself(simulated: Simulated, chip: str) -> None:
    known = facts.chip(chip)
    assert known is not None
    options = SimOptions(chip=chip, memory_gib=known.memory_gib or 64)
    code = (
        "import torch; p = torch.npu.get_device_properties(0); u = torch.npu.utils\n"
        "print(p.name, p.total_memory >> 30, p.cube_core_num, u.get_soc_version(), u.is_bf16_supported(), "
        "u.is_support_inf_nan())"
    )
    saturates = known.overflow == "saturation"
    expected = (known.name, options.memory_gib, known.ai_cores or 0, known.soc_version, known.bf16, not saturates)
    done = simulated(["-c", code], options)
    assert done.stdout.split() == [str(each) for each in expected], done.stderr[-2000:]
