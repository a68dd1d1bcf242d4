"""Which device a process takes, and what it starts with: mistakes that one machine with CUDA forgives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors

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


class GroupOfSomeRanks(Rule):
    """A process group is made by those ranks only that are in it."""

    code = "NP315"
    name = "group-of-some-ranks"
    severity = Severity.WARNING
    agnostic = True
    markers = (r"\bnew_group\(",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) != "torch.distributed.new_group":
            return
        if any(keyword.arg in {"use_local_synchronization", None} for keyword in node.keywords):
            return
        if not any(isinstance(around, ast.If) and _chooses_ranks(around, node) for around in ancestors(node)):
            return
        end = context.module.lines.span(node)[1]
        joint = ", " if node.args or node.keywords else ""
        yield context.finding(
            self,
            node.func,
            "all ranks have to make a group, in the same order, or some wait for ever: make it outside of this branch,"
            " or with use_local_synchronization=True by its members alone",
            fix=context.fix(
                [Edit(end - 1, end - 1, f"{joint}use_local_synchronization=True")],
                Applicability.UNSAFE,
                "only members wait for one another",
            ),
            basis=Basis("torch.distributed.new_group", "documented", "torch 2.13.0"),
        )


def _chooses_ranks(branch: ast.If, node: ast.AST) -> bool:
    """Whether a branch depends on the rank of the process, and ``node`` is in one side of it only."""
    names = {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(branch.test)
        if isinstance(part, ast.Name | ast.Attribute)
    }
    asked = any(name == "rank" or name.endswith(("_rank", "get_rank")) for name in names)
    sized = any("size" in name for name in names) or _asks_for_launcher(branch.test)
    both = bool(branch.orelse) and all(
        any("new_group" in ast.dump(statement) for statement in side) for side in (branch.body, branch.orelse)
    )
    return asked and not sized and not both and not any(part is node for part in ast.walk(branch.test))


def _asks_for_launcher(test: ast.expr) -> bool:
    """``local_rank != -1`` or ``rank is not None``: whether there are several processes, which all of them know."""
    return any(
        isinstance(part, ast.Compare)
        and any(isinstance(side, ast.UnaryOp) or getattr(side, "value", 0) is None for side in part.comparators)
        for part in ast.walk(test)
    )


class UnusedParametersSought(Rule):
    """DistributedDataParallel looks for unused parameters at every step."""

    code = "NP316"
    name = "unused-parameters-sought"
    severity = Severity.INFO
    markers = (r"\bfind_unused_parameters\s*=\s*True\b",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func) or ""
        if not name.startswith("torch.nn.parallel.") or not name.endswith("DistributedDataParallel"):
            return
        for keyword in node.keywords:
            if keyword.arg == "find_unused_parameters" and getattr(keyword.value, "value", None) is True:
                yield context.finding(
                    self,
                    keyword,
                    "this walks the whole graph on the host at every step, which an NPU waits for: leave it out where"
                    " every parameter has a gradient; broadcast_buffers=False saves a broadcast of unchanged buffers",
                    basis=Basis("torch.nn.parallel.DistributedDataParallel", "documented", "torch 2.13.0"),
                )


class ThreadWithoutDevice(Rule):
    """A thread works on the device, and only its parent has chosen which."""

    code = "NP317"
    name = "thread-without-device"
    severity = Severity.WARNING
    markers = (r"\bThread\(",)
    needs = (("set_device",),)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) != "threading.Thread":
            return
        for keyword in node.keywords:
            own = context.definition_of(keyword.value) if keyword.arg == "target" else None
            if own is None or own.is_class or own.path != context.module.path:
                continue
            text = own.module.segment(own.node)
            if re.search(r"\.(?:cuda|npu)\(\)|[\"'](?:cuda|npu)[\"']", text) and "set_device" not in text:
                yield context.finding(
                    self,
                    keyword.value,
                    "a thread begins on device 0, whatever device its parent has set: call set_device first in it, or"
                    " name the device with its number",
                    basis=Basis("torch_npu on a simulated CANN", "measured", "2.13.0"),
                )


RULES: tuple[type[Rule], ...] = (
    GlobalRankAsDevice,
    ForkWithDevices,
    DeviceIdAsNumber,
    DtypeOfCollective,
    GroupOfSomeRanks,
    UnusedParametersSought,
    ThreadWithoutDevice,
)
