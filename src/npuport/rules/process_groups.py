"""Which device a process takes, and what it starts with: mistakes that one machine with CUDA forgives."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule

_SET_DEVICE = {
    "torch.cuda.set_device",
    "torch.npu.set_device",
    "torch_npu.npu.set_device",
    "torch.accelerator.set_device_index",
    "torch.accelerator.set_device_idx",
}
_GLOBAL_RANK = {"torch.distributed.get_rank", "torch.distributed.distributed_c10d.get_rank"}


class GlobalRankAsDevice(Rule):
    """The rank among all machines is taken for the number of a device of this one."""

    code = "NP311"
    name = "global-rank-as-device"
    severity = Severity.WARNING
    markers = (r"\bset_device\b", r"\bset_device_index\b", r"\bset_device_idx\b")
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) not in _SET_DEVICE or not node.args:
            return
        device = node.args[0]
        if _is_global_rank(device, context):
            yield context.finding(
                self,
                device,
                "this is the rank among all machines: on the second machine there is no device of that number; take"
                " LOCAL_RANK, which torchrun sets, or the rank modulo the number of devices",
                basis=Basis("torchrun sets RANK and LOCAL_RANK", "documented", "torch 2.13.0"),
            )


def _is_global_rank(node: ast.expr, context: Context) -> bool:
    """Whether a value is dist.get_rank(), or int(os.environ["RANK"]), as it stands or through one variable."""
    if isinstance(node, ast.Name):
        bound = context.scope(node).lookup(node.id)
        value = bound[0].value if len(bound) == 1 else None
        return value is not None and _is_global_rank(value, context)
    if not isinstance(node, ast.Call):
        return _reads(node, "RANK", context)
    name = context.name_of(node.func)
    if name == "builtins.int" and node.args:
        return _is_global_rank(node.args[0], context)
    if name in {"os.getenv", "os.environ.get"} and node.args:
        return isinstance(node.args[0], ast.Constant) and node.args[0].value == "RANK"
    return name in _GLOBAL_RANK and not node.args and not node.keywords


def _reads(node: ast.expr, variable: str, context: Context) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and context.name_of(node.value) == "os.environ"
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == variable
    )


class ForkWithDevices(Rule):
    """Processes that train are started by fork, after which a device cannot be used."""

    code = "NP312"
    name = "fork-with-devices"
    severity = Severity.WARNING
    markers = (r"\bset_start_method\b", r"\bget_context\b", r"\bstart_method\b")
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func) or ""
        starts = name in {
            "torch.multiprocessing.set_start_method",
            "torch.multiprocessing.get_context",
            "torch.multiprocessing.start_processes",
        }
        if not starts:
            return
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg in {"method", "start_method"})]
        for argument in given:
            if isinstance(argument, ast.Constant) and argument.value == "fork":
                yield context.finding(
                    self,
                    argument,
                    "a forked process cannot use an NPU that its parent has touched: start it with spawn",
                    basis=Basis("torch_npu raises RuntimeError in a forked process", "documented", "torch_npu 2.13.0"),
                )


class DeviceIdAsNumber(Rule):
    """A process group is bound to a device that is given as a number."""

    code = "NP313"
    name = "device-id-as-number"
    severity = Severity.WARNING
    markers = (r"\bdevice_id\b",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) != "torch.distributed.init_process_group":
            return
        for keyword in node.keywords:
            if keyword.arg == "device_id" and _is_number(keyword.value, context):
                yield context.finding(
                    self,
                    keyword.value,
                    "older releases of torch take a torch.device only here, and what a number means is left to the"
                    ' accelerator and to patches such as transfer_to_npu: say torch.device("npu", index)',
                    basis=Basis("vllm-project/speculators pull request 775", "inferred"),
                )


def _is_number(node: ast.expr, context: Context) -> bool:
    """Whether a value is an int, as it stands or through one variable."""
    if isinstance(node, ast.Name):
        bound = context.scope(node).lookup(node.id)
        value = bound[0].value if len(bound) == 1 else None
        return value is not None and _is_number(value, context)
    if isinstance(node, ast.Call):
        return context.name_of(node.func) in {"builtins.int"} | _GLOBAL_RANK
    return isinstance(node, ast.Constant) and type(node.value) is int


RULES: tuple[type[Rule], ...] = (GlobalRankAsDevice, ForkWithDevices, DeviceIdAsNumber)
