"""Which device a process takes, and what it starts with: mistakes that one machine with CUDA forgives."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
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


_SUMS = {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"}
_SCATTERS = {"reduce_scatter", "reduce_scatter_tensor"}
_WIDE = {"torch.float64", "torch.double"}
_BYTES = {"torch.uint8", "torch.bool"}
_DTYPE_METHODS = {"double": "torch.double", "byte": "torch.uint8", "bool": "torch.bool"}


class DtypeOfCollective(Rule):
    """A tensor of a dtype that HCCL cannot add up is reduced among processes."""

    code = "NP314"
    name = "dtype-of-collective"
    severity = Severity.ERROR
    markers = (r"\ball_reduce\(", r"\breduce\(", r"\breduce_scatter(?:_tensor)?\(")
    needs = (("float64", "double", "uint8", "bool", "byte"), ("distributed",))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        operation = (context.name_of(node.func) or "").removeprefix("torch.distributed.")
        if operation not in _SUMS or not node.args or (context.name_of(node.func) == operation):
            return
        made = _makers(node.args[0], context)
        dtypes = {_dtype(maker, context) for maker in made}
        refused = _WIDE | _BYTES if operation in _SCATTERS else _WIDE
        if not dtypes or not dtypes <= refused:
            return
        wide = dtypes <= _WIDE
        yield context.finding(
            self,
            node.args[0],
            f"{operation} of {' or '.join(sorted(str(dtype).removeprefix('torch.') for dtype in dtypes))} raises"
            f" RuntimeError with HCCL: reduce {'float32' if wide else 'int32'} instead",
            fix=_with_float32(made, context) if wide and operation not in _SCATTERS else None,
            basis=Basis("torch_npu on a simulated CANN", "measured", "2.13.0"),
        )


def _makers(node: ast.expr, context: Context) -> list[ast.Call]:
    """The calls whose values an expression can be; [] where one of them is unknown."""
    if isinstance(node, ast.Call):
        return [node]
    if not isinstance(node, ast.Name):
        return []
    values = [binding.value for binding in context.scope(node).bindings.get(node.id, [])]
    calls = [value for value in values if isinstance(value, ast.Call)]
    return calls if len(calls) == len(values) else []


def _dtype(call: ast.Call, context: Context) -> str | None:
    """The dtype that a call gives its result in plain words."""
    for keyword in call.keywords:
        if keyword.arg == "dtype":
            return context.name_of(keyword.value)
    if isinstance(call.func, ast.Attribute):
        if call.func.attr in _DTYPE_METHODS and not call.args:
            return _DTYPE_METHODS[call.func.attr]
        if call.func.attr in {"to", "type"}:
            named = [name for name in map(context.name_of, call.args) if name in _WIDE | _BYTES]
            return named[0] if named else _through(call.func.value, context)
        if call.func.attr in {"cuda", "npu", "clone", "detach", "contiguous"}:
            return _through(call.func.value, context)
    return None


def _through(node: ast.expr, context: Context) -> str | None:
    return _dtype(node, context) if isinstance(node, ast.Call) else None


def _with_float32(made: list[ast.Call], context: Context) -> Fix | None:
    """float32 where the calls name float64 as a keyword; None where one of them does otherwise."""
    edits = []
    for call in made:
        named = [keyword.value for keyword in call.keywords if keyword.arg == "dtype"]
        if not named or not isinstance(named[0], ast.Attribute):
            return None
        end = context.module.lines.span(named[0])[1]
        edits.append(Edit(end - len(named[0].attr), end, "float32"))
    return context.fix(edits, Applicability.UNSAFE, "reduce float32")


RULES: tuple[type[Rule], ...] = (GlobalRankAsDevice, ForkWithDevices, DeviceIdAsNumber, DtypeOfCollective)
