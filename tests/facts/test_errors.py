"""Error codes against their authorities, and messages as people met them against what lies behind them."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import warnings
from pathlib import Path

import pytest

import npuport
from npuport import facts
from npuport.environment.troubles import may_tell

CHINESE = json.loads((Path(npuport.__file__).parent / "report" / "chinese_errors.json").read_text(encoding="utf-8"))


def torch_npu_folder() -> Path:
    try:
        return Path(str(importlib.metadata.distribution("torch-npu").locate_file("torch_npu")))
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("torch_npu is not installed")


@pytest.mark.parametrize(
    ("header", "at_least"),
    [("acl/error_codes/rt_error_codes.h", 134), ("acl/error_codes/ge_error_codes.h", 36), ("acl/acl_base_rt.h", 69)],
)
def test_every_code_of_cann_s_headers_has_its_name(header: str, at_least: int) -> None:
    text = (torch_npu_folder() / "include" / header).read_text(encoding="utf-8")
    defined = re.findall(r"\b(ACL_ERROR_\w+)\s*=?\s*(\d{6})U?\b", text)
    assert len(defined) >= at_least
    for name, code in defined:
        entry = facts.error_code(code)
        assert entry is not None, code
        assert entry.name == name


def test_torch_npu_s_own_codes_mean_what_its_source_says() -> None:
    source = (torch_npu_folder() / "utils/_error_code.py").read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # escapes in torch_npu's strings
        tree = ast.parse(source)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    meanings = [ast.literal_eval(node.value) for node in classes["ErrCode"].body if isinstance(node, ast.Assign)]
    modules = [ast.literal_eval(node.value) for node in classes["_SubModuleID"].body if isinstance(node, ast.Assign)]
    assert len(meanings) > 15
    for number, _ in meanings:
        for module in modules:
            entry = facts.error_code(f"ERR{module:02}{number:03}")
            assert (entry is None) == (number == 0), (module, number)


@pytest.mark.parametrize("code", ["507999", "EI8888", "ERR01555", "ERR77001", "123456", "word", "E1"])
def test_a_code_that_nobody_names_is_unknown(code: str) -> None:
    assert facts.error_code(code) is None


def test_an_inner_error_of_any_component_is_one() -> None:
    entry = facts.error_code("EI9999")
    assert entry is not None
    assert (entry.meaning, entry.component) == ("inner error", "HCCL")


@pytest.mark.parametrize("entry", facts.all_known_errors(), ids=lambda entry: entry.name)
def test_every_known_error_can_be_met_and_speaks_chinese(entry: facts.KnownError) -> None:
    assert entry.codes or entry.text is not None
    assert all(facts.error_code(code) is not None for code in entry.codes)
    assert entry.cause in CHINESE
    for step in entry.steps:
        assert step in CHINESE or step.isascii()  # a step that is a command needs no translation
    assert entry.role in {"cause", "effect", "harmless"}


def test_a_code_has_one_meaning() -> None:
    codes = [code for entry in facts.all_known_errors() for code in entry.codes]
    assert len(codes) == len(set(codes))


MESSAGES = [
    ("ImportError: libhccl.so: cannot open shared object file: No such file or directory", "cann-libraries-not-found"),
    ("OSError: libascendcl.so: cannot open shared object file: No such file", "cann-libraries-not-found"),
    ("AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'", "cuda-call-in-cpu-torch"),
    ("AssertionError: Torch not compiled with CUDA enabled", "cuda-call-in-cpu-torch"),
    ("ImportError: /opt/conda/lib/libgomp.so.1: cannot allocate memory in static TLS block", "static-tls"),
    ("ModuleNotFoundError: No module named 'torch_npu._C'", "torch-npu-from-source-folder"),
    (
        "ERROR: torch_npu-2.1.0-cp38-cp38-linux_aarch64.whl is not a supported wheel on this platform.",
        "wheel-not-supported",
    ),
    ("ModuleNotFoundError: No module named 'te'", "tbe-modules-missing"),
    ("E40020: [PID: 3] Failed to import Python module tbe. Reason: x", "tbe-modules-missing"),
    ("ModuleNotFoundError: No module named 'decorator'", "cann-python-packages-missing"),
    ("ModuleNotFoundError: No module named 'sympy'", "cann-python-packages-missing"),
    ("TVMError: cce error", "tvm-versions-differ"),
    ("EZ9999: [PID: 7] Cannot find bin of op Range, integral key 0/1/", "operator-binary-missing"),
    (
        "CAUTION: 'aten::x' is not currently supported on the NPU backend and will fall back to run on the CPU.",
        "operator-falls-back",
    ),
    ("RuntimeError: Expected all tensors to be on the same device. Expected NPU tensor", "mixed-devices"),
    ("RuntimeError: Tensors must be contiguous", "not-contiguous"),
    (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation",
        "inplace-in-autograd",
    ),
    ("RuntimeError: The server socket has failed to listen: Address already in use", "address-in-use"),
    ("RuntimeError: connect() timed out. Original timeout was 1800000 ms.", "store-timeout"),
    ("DistStoreError: Socket Timeout", "store-timeout"),
    ("RuntimeError: host not found: Name or service not known", "host-not-found"),
    ("EI0001: Environment variable [HCCL_RDMA_SL] is invalid.", "hccl-environment"),
    ("EI0002: The wait execution of the Notify register times out.", "hccl-wait-timeout"),
    ("EI0003: In [HcclAllReduce], value [uint8] for parameter [dataType] is invalid.", "hccl-arguments"),
    ("EI0004: The ranktable or rank is invalid,Reason:[x]", "rank-table"),
    ("EI0014: The ranktable information check failed", "rank-table"),
    ("EI0005: The arguments for collective communication are inconsistent between ranks", "collectives-differ"),
    ("EI0006: Getting socket times out. Reason: x", "hccl-link-timeout"),
    ("EI0007: Failed to allocate resource[stream]", "hccl-resources"),
    ("EI0008: The HCCL versions are inconsistent", "hccl-versions-differ"),
    ("EI0011: Failed to allocate [3MB] bytes of NPU memory.", "out-of-memory"),
    ("EI0012: SDMA memory copy task exception occurred.", "hccl-sdma"),
    ("EI0013: An error CQE occurred during operator execution.", "hccl-roce"),
    ("EI0015: Failed to collect cluster information of the communicator", "hccl-ranks-missing"),
    ("EI0016: Value 1 for config tls is invalid.", "hccl-config"),
    ("EI0019: Failed to enable listening. The IP address and port 50001 have already been bound.", "hccl-port-taken"),
    (
        "EJ0001: Failed to initialize the HCCP process. Reason: Maybe the last training process is running.",
        "hccp-still-running",
    ),
    ("EE1001: The argument is invalid.Reason: Invalid device ID 8. Set drv devId to 8.", "device-id-out-of-range"),
    ("EE1003: rtSetDevice failed because value 9 for parameter devId is invalid.", "device-id-out-of-range"),
    ("EE1002: Stream synchronize timeout.", "stream-sync-timeout"),
    ("EE1015: x failed. Reason: The driver version capability is insufficient.", "driver-too-old"),
    ("EE2002: Value 0,0 for environment variable ASCEND_RT_VISIBLE_DEVICES is invalid.", "visible-devices-invalid"),
    ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB", "out-of-memory"),
    ("EL0004: Failed to allocate memory.", "out-of-memory"),
    ("NPU function error: aclrtMalloc, error code is 207018", "out-of-memory"),
    ("malloc error 500000", "out-of-memory"),
    ("EH0001: Value -1 for deviceId is invalid.", "acl-argument"),
    ("EH0012: x failed. Parameter y is invalid.", "acl-argument"),
    ("EZ2001: Fault aicore occurs in the system", "aicore-exception"),
    ("error code is 507015", "aicore-exception"),
    ("EZ3002: Unsupported operator", "dtype-not-supported"),
    ("RuntimeError: Initialize: NPU function error: c10_npu::SetDevice, error code is 507033", "device-setup-failed"),
    (
        "NPU function error: at_npu::native::AclSetCompileopt(aclCompileOpt::ACL_PRECISION_MODE), error code is 500001",
        "set-compile-option-failed",
    ),
    ("RuntimeError: ExchangeDevice: error code is 107002", "old-set-device-late"),
    ("RuntimeError: The Inner error is reported as above. HelpACLExecute", "error-of-an-asynchronous-operator"),
    ("MemCopySync:drvMemcpy failed", "dma-or-copy-error"),
    ("E30008: AI CPU operator execution timed out.", "aicpu-error"),
    (
        'RuntimeError: Error(s) in loading state_dict: Missing key(s) in state_dict: "module.conv1.weight"',
        "module-prefix",
    ),
    ("The Inner Error: RANK_TABLE_FILE link timeout", "rank-table"),
    ("torch.npu.config.allow_internal_format = True gives wrong results", "nz-format"),
    ("Waiting for ~/.cache/torch_extensions/py310/fused/lock", "torch-extensions-lock"),
    ("Could not run 'aten::foo' with arguments from the 'NPUTensorId' backend", "operator-without-npu-kernel"),
    ("GetInputConstDataOut ErrorNo -1", "cpu-fallback-in-export"),
    ("run.sh: line 3: $'\\r': command not found", "crlf"),
    ("codegen: op_plugin_functions.yaml: No such file or directory", "build-submodules"),
    ("CMake Error: Compatibility with CMake < 3.5 has been removed from CMake.", "build-cmake-policy"),
    ("fatal error: filesystem: No such file or directory", "build-filesystem"),
    ("/usr/bin/ld: cannot find -lopenblas", "link-openblas"),
    ("Error: pull: proxyconnect tcp: dial tcp: i/o timeout", "docker-proxy"),
    ("apex: /usr/bin/ld: cannot find -ltorch", "apex-link"),
    ("aclInit failed, ret: 107000", "acl-parameter-invalid"),
    ("error code 148049", "opp-path-invalid"),
    ("libpt_kernels.so not found, ASCEND_AICPU_PATH is empty", "old-kernel-library"),
    ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.0", "gradient-overflow"),
    ("the first iteration is very slow", "first-step-slow"),
    # What people reported of their environments.
    ("AttributeError: module 'torch_npu' has no attribute '_isinstance'", "old-torch-npu-lacks-operator"),
    ("AttributeError: module 'torch_npu' has no attribute 'npu_geglu'", "old-torch-npu-lacks-operator"),
    ("ImportError: libtorch_npu.so: undefined symbol: _ZN5torch10ValueErrorC1E", "undefined-symbol-in-torch-npu"),
    ("ImportError: libtbe_adapter.so: undefined symbol: _ZN3abc", "atb-of-another-release"),
    ("ImportError: libop_plugin_atb.so: undefined symbol: _ZN3atb15CreateOperationE", "atb-of-another-release"),
    ("RuntimeError: Failed to load the backend extension: torch_npu.", "backend-autoload-failed"),
    ("undefined symbol: _ZN7c10_npu10NpuRunMode8cur_modeE", "undefined-symbol-in-torch-npu"),
    ("undefined symbol: AclrtPeekAtLastError", "undefined-symbol-in-torch-npu"),
    ("AttributeError: module 'torchair' has no attribute 'get_npu_backend'", "torchair-too-old"),
    ("RuntimeError: Unsupported soc version: Ascend310B4", "soc-not-supported"),
    ("nms_impl: implementation for device npu:0 not found.", "mmcv-without-npu"),
    ("RuntimeError: Conv3D: DT_BFLOAT16 of input x not supported", "dtype-not-supported"),
    ("RuntimeError: call aclnnCast failed, detail:EZ9999: Inner Error!", "aclnn-inner-error"),
    ("RuntimeError: bf16 is not supported on this device", "dtype-not-supported"),
    ("torch-npu 2.5.1 requires torch==2.5.1, but you have torch 2.6.0 which is incompatible.", "pip-replaced-torch"),
    ("RuntimeError: Cannot re-initialize NPU in forked subprocess.", "fork-after-npu"),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES, ids=[f"{name}-{text[:30]}" for text, name in MESSAGES])
def test_messages_as_people_met_them(message: str, expected: str) -> None:
    found = facts.known_error(message)
    assert found is not None
    assert found.name == expected


@pytest.mark.parametrize("message", [message for message, _ in MESSAGES if not message.startswith("torch.npu.config")])
def test_the_quick_look_at_a_line_misses_no_error(message: str) -> None:
    assert may_tell(message)


@pytest.mark.parametrize(
    "line",
    [
        "step 100 loss 2.31 time 0.123 lr 3e-4 loss_scale 65536 memory 12.3 GiB",
        "epoch 3: saved checkpoint to out/ckpt_100000.pt",
        "num_params 507015 vocab 100000",
        "[rank0]: Using device npu:0",
    ],
)
def test_ordinary_lines_are_no_errors(line: str) -> None:
    assert facts.known_error(line) is None
    assert list(facts.codes_in(line)) == []
