"""The world around the program: environment variables, NVIDIA's tools, the version of CUDA."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import Variable, torch_name, variable
from npuport.findings import Applicability, Edit, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors, parent

_NAME = re.compile(r"[A-Z][A-Z0-9_]{3,}")
# Dictionaries that become an environment, by everybody's naming.
_ENVIRONMENT = re.compile(r"(?i)^(?:.*_)?(?:env|envs|environ|environment|env_?vars|env_?dict)(?:_copy|_vars)?$")
_KEY_METHODS = {"get", "pop", "setdefault", "setenv", "delenv", "getenv", "putenv", "unsetenv", "__contains__"}
_KEY_FUNCTIONS = {"os.getenv", "os.putenv", "os.unsetenv"}
# Values that mean the same under the new name; where none is listed, a person has to look at it.
_SAME_VALUES = {
    "CUDA_VISIBLE_DEVICES": re.compile(r"\d+(?:,\d+)*"),
    "CUDA_LAUNCH_BLOCKING": re.compile(r"[01]"),
    "PYTORCH_CUDA_ALLOC_CONF": re.compile(
        r"expandable_segments:(?:True|False)|max_split_size_mb:(?:[3-9]\d|2[1-9]|\d{3,})"
    ),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": re.compile(r"[01]"),
    "TORCH_NCCL_BLOCKING_WAIT": re.compile(r"[01]"),
    "NCCL_BLOCKING_WAIT": re.compile(r"[01]"),
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": re.compile(r"[0-3]"),
    "NCCL_ASYNC_ERROR_HANDLING": re.compile(r"[0-3]"),
    "TORCH_NCCL_DESYNC_DEBUG": re.compile(r"[01]"),
    "NCCL_DESYNC_DEBUG": re.compile(r"[01]"),
}
# Renamed, but what is written there has to be thought of anew.
_OTHER_VALUES = {
    "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR", "CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE",
    "NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE",
    "TORCH_NCCL_AVOID_RECORD_STREAMS", "PYTORCH_ALLOC_CONF",
}  # fmt: skip


def cuda_variable(name: str) -> Variable | None:
    """What is known of an environment variable that belongs to the CUDA world; None for all others."""
    known = variable(name) if _NAME.fullmatch(name) else None
    if known is not None and known.basis.source == "its prefix" and name.startswith("CUDA_"):
        return None  # projects name switches of their own so
    return known if known is not None and (known.status != "same" or re.search("CUDA|NCCL|NVIDIA", name)) else None


def same_value(name: str, value: object) -> bool:
    """Whether a value known in advance means the same under the counterpart's name."""
    pattern = _SAME_VALUES.get(name)
    if pattern is None or not isinstance(value, str) or pattern.fullmatch(value) is None:
        return False
    if name == "CUDA_VISIBLE_DEVICES":  # any other order gives no device at all
        numbers = [int(part) for part in value.split(",")]
        return numbers == sorted(set(numbers))
    return True


def meaning(known: Variable) -> str:
    """One sentence on what Ascend has instead."""
    if known.status == "same":
        return f"{known.name} stays as it is"
    if known.counterpart is None:
        return f"nothing on Ascend reads {known.name}"
    return f"Ascend reads {known.counterpart} instead of {known.name}"


class CudaEnvironmentVariable(Rule):
    """An environment variable that only CUDA, NCCL or NVIDIA's software reads."""

    code = "NP501"
    name = "cuda-environment-variable"
    severity = Severity.WARNING
    markers = (
        r"CUDA_",
        r"NCCL_",
        r"NVIDIA_",
        r"CUBLAS_",
        r"CUDNN_",
        r"FORCE_CUDA",
        r"PYTORCH_HIP_ALLOC_CONF",
        r"NVTE_",
    )
    nodes = (ast.Constant, ast.keyword)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        name = node.arg if isinstance(node, ast.keyword) else getattr(node, "value", None)
        known = cuda_variable(name) if isinstance(name, str) else None
        if isinstance(node, ast.Constant) and (set_by := _set_in_command(node)) is not None:
            yield self._finding(context.module.lines.span(node), set_by, None, context)
            return
        if known is None or isinstance(parent(node), ast.JoinedStr):
            return
        if isinstance(node, ast.keyword):
            if not _is_environment_keyword(node, context):
                return
            start = context.module.lines.span(node)[0]
            place = (start, start + len(known.name))
        else:
            assert isinstance(node, ast.Constant)
            certain = _is_environment_key(node, context)
            if not certain and (known.basis.source == "its prefix" or not _may_be_key(node)):
                return
            start, end = context.module.lines.span(node)
            place = (start, end)
            if not certain:
                yield self._finding(place, known, None, context)
                return
        at = context.module.text.find(known.name, *place)
        edit = Edit(at, at + len(known.name), known.counterpart) if known.counterpart and at >= 0 else None
        yield self._finding(place, known, edit, context)

    def _finding(self, place: tuple[int, int], known: Variable, edit: Edit | None, context: Context) -> Finding:
        fix = None
        if edit is not None and known.name not in _OTHER_VALUES and f"{known.counterpart}" not in context.module.text:
            safe = known.name in _SAME_VALUES and _settled(known.name, context) and not context.has_npu_branches
            fix = context.fix([edit], Applicability.SAFE if safe else Applicability.UNSAFE, f"set {known.counterpart}")
        note = f": {_first(known.note)}" if known.note and known.status != "same" else ""
        return context.finding(
            self,
            place,
            f"{meaning(known)}{note}",
            fix=fix,
            basis=known.basis,
            severity=Severity.WARNING if known.status == "renamed" else Severity.INFO,
            variable=known.name,
        )


def _first(note: str) -> str:
    return note[0].lower() + note[1:].rstrip(".") if note[1:2].islower() else note.rstrip(".")


_READS = re.compile(r"(?:get|getenv|pop)\(\s*[\"']$|#[^\n]*$")
_CALLED = re.compile(r"\w\(\s*[\"']$")


def _settled(name: str, context: Context) -> bool:
    """Whether every value that the project gives a variable means the same under the new name.

    Readers and writers have to change together, so one doubtful value makes all of them doubtful.
    """
    writes = re.compile(rf"{name}[\"']?\s*(?P<sign>\]\s*=(?!=)|,|:|=(?!=))\s*(?P<value>[^\n]{{0,80}})")
    for _, text in context.project.holding(name):
        for match in writes.finditer(text):
            before = text[max(0, match.start() - 30) : match.start()]
            if _READS.search(before) or (match["sign"] == "," and not _CALLED.search(before)):
                continue
            # In a command line, NAME=0,1 has no quotes.
            value = re.match(r"(?P<quote>[\"'])(?P<value>.*?)(?P=quote)|(?P<bare>[\w,:.-]+)", match["value"])
            if value is None or not same_value(
                name, value["value"] or (value["bare"] if match["sign"] == "=" else None)
            ):
                return False
    return True


def _is_environ(node: ast.expr, context: Context) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return context.name_of(node) == "os.environ" or _ENVIRONMENT.match(name) is not None


def _is_environment_keyword(node: ast.keyword, context: Context) -> bool:
    """``os.environ.update(NAME=…)`` and ``dict(os.environ, NAME=…)``."""
    call = parent(node)
    if not isinstance(call, ast.Call):
        return False
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "update" and _is_environ(function.value, context):
        return True
    return (
        any(_is_environ(argument, context) for argument in call.args) and context.name_of(function) == "builtins.dict"
    )


def _is_environment_key(node: ast.expr, context: Context, depth: int = 2) -> bool:
    """Whether a string is the name of an environment variable at its place, or through a variable."""
    around = parent(node)
    if isinstance(around, ast.Subscript):
        return node is around.slice and _is_environ(around.value, context)
    if isinstance(around, ast.Compare):
        return any(_is_environ(part, context) for part in around.comparators)
    if isinstance(around, ast.Call):
        if node not in around.args[:1]:
            return False
        method = around.func.attr if isinstance(around.func, ast.Attribute) else ""
        if context.name_of(around.func) in _KEY_FUNCTIONS or method in {"setenv", "delenv"}:
            return True
        return (
            method in _KEY_METHODS
            and isinstance(around.func, ast.Attribute)
            and _is_environ(around.func.value, context)
        )
    if isinstance(around, ast.Dict):
        return node in around.keys and _is_environment_dict(around, context)
    return depth > 0 and _reaches_environment(node, around, context, depth)


def _reaches_environment(node: ast.expr, around: ast.AST | None, context: Context, depth: int) -> bool:
    """Whether a variable or loop variable that holds the string is used as the name of an environment variable."""
    if isinstance(around, ast.List | ast.Tuple | ast.Set):
        node, around = around, parent(around)
    if isinstance(around, ast.For | ast.comprehension) and node is around.iter:
        targets: list[ast.expr] = [around.target]
    elif isinstance(around, ast.Assign):
        targets = around.targets
    else:
        return False
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return any(_is_environment_key(use, context, depth - 1) for name in names for use in context.module.uses(name))


def _is_environment_dict(node: ast.Dict, context: Context) -> bool:
    if any(key is None and _is_environ(value, context) for key, value in zip(node.keys, node.values, strict=True)):
        return True
    around = parent(node)
    if isinstance(around, ast.keyword):
        return around.arg is not None and _ENVIRONMENT.match(around.arg) is not None
    if isinstance(around, ast.Assign):
        return any(_is_environ(target, context) for target in around.targets)
    if isinstance(around, ast.Call) and node in around.args:
        function = around.func
        if isinstance(function, ast.Attribute) and function.attr in {"update", "dict"}:
            return _is_environ(function.value, context) or any(_is_environ(other, context) for other in around.args)
    return False


_COMMAND = re.compile(r"(?:export |set |env )?([A-Z][A-Z0-9_]+)=(?!=)")


def _set_in_command(node: ast.Constant) -> Variable | None:
    """The variable that a text begins to set, where the text is put together as a command: no message, no document."""
    found = _COMMAND.match(node.value) if isinstance(node.value, str) else None
    known = cuda_variable(found[1]) if found else None
    if known is None or known.counterpart is None:
        return None
    for around in ancestors(node):
        if isinstance(around, ast.Call):
            return None  # a message; or a command that is run at once, which is read as one
        if isinstance(around, ast.stmt):
            return known if isinstance(around, ast.Assign | ast.AugAssign | ast.Return) else None
    return None


def _may_be_key(node: ast.expr) -> bool:
    """Whether a string stands where names are collected or passed on, rather than in a message."""
    around = parent(node)
    return isinstance(around, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.Assign | ast.AnnAssign)


class NvidiaTool(Rule):
    """A command of NVIDIA's, or a command line that sets one of CUDA's variables."""

    code = "NP502"
    name = "nvidia-tool"
    severity = Severity.ERROR
    markers = (
        r"nvidia-smi",
        r"\bnvcc\b",
        r"\bnsys\b",
        r"\bncu\b",
        r"cuda-memcheck",
        r"compute-sanitizer",
        r"CUDA_\w+=",
        r"NCCL_\w+=",
    )
    nodes = (ast.Constant,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Constant)
        if not isinstance(node.value, str) or not _is_command(node, context):
            return
        tool = _TOOL.search(node.value)
        if tool is not None:
            guarded = any(isinstance(around, ast.Try | ast.If | ast.IfExp) for around in ancestors(node))
            yield context.finding(
                self,
                node,
                f"{tool[1]} is not there on an Ascend machine: {TOOLS[tool[1]]}",
                severity=Severity.WARNING if guarded else Severity.ERROR,
                tool=tool[1],
            )
        start, end = context.module.lines.span(node)
        for setting in _SETTING.finditer(context.module.text, start, end):
            known = cuda_variable(setting["name"])
            if known is None:
                continue
            fix = None
            if known.counterpart and _settled(known.name, context) and not context.has_npu_branches:
                fix = context.fix([Edit(setting.start("name"), setting.end("name"), known.counterpart)])
            yield context.finding(
                self,
                setting.span("name"),
                meaning(known),
                fix=fix,
                basis=known.basis,
                severity=Severity.WARNING if known.counterpart else Severity.INFO,
                variable=known.name,
            )


TOOLS = {
    "nvidia-smi": "npu-smi info shows the NPUs, in another format",
    "nvcc": "CUDA sources cannot be compiled for an NPU",
    "nsys": "msprof or torch_npu.profiler profiles an NPU",
    "ncu": "msprof or torch_npu.profiler profiles an NPU",
    "cuda-memcheck": "mssanitizer is CANN's memory checker",
    "compute-sanitizer": "mssanitizer is CANN's memory checker",
}
_TOOL = re.compile(rf"(?:^|[\s|;&(/])({'|'.join(TOOLS)})(?:$|[\s|;&)])")
_SETTING = re.compile(r"(?<![\w$])(?P<name>[A-Z][A-Z0-9_]{3,})=(?P<value>[\w,:.-]*)")
_COMMANDS = re.compile(
    r"os\.(?:system|popen|exec\w+|spawn\w+)|subprocess\.\w+|shutil\.which|asyncio\.create_subprocess_\w+|shlex\.split|pty\.spawn"
)


def _is_command(node: ast.expr, context: Context) -> bool:
    """Whether a string is (part of) a command that the program runs or looks for."""
    for around in ancestors(node):
        if isinstance(around, ast.Call):
            name = context.name_of(around.func)
            if name is not None and _COMMANDS.fullmatch(name):
                return True
            if name != "builtins.str" and not _formats(around):
                return False
        elif isinstance(around, ast.Assign):
            names = [target.id for target in around.targets if isinstance(target, ast.Name)]
            return any(re.search(r"(?i)cmd|command", name) or _runs(name, context) for name in names)
        elif isinstance(around, ast.stmt | ast.Dict):
            return False
    return False


def _formats(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in {"format", "split", "join"}


def _runs(name: str, context: Context) -> bool:
    """Whether the variable ``name`` is passed to something that runs a command."""
    for use in context.module.uses(name):
        call = parent(use)
        if isinstance(call, ast.Call) and use in call.args:
            function = context.name_of(call.func)
            if function is not None and _COMMANDS.fullmatch(function):
                return True
    return False


class CudaVersionQuery(Rule):
    """``torch.version.cuda``."""

    code = "NP503"
    name = "cuda-version-query"
    severity = Severity.WARNING
    markers = (r"\bversion\.cuda\b", r"torch\.version import", ("cuda", r"\bversion\b.*\bcuda\b"))
    nodes = (ast.Attribute, ast.Name)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        around = parent(node)
        attribute = around if isinstance(around, ast.Attribute) and around.value is node else None
        name = context.name_of(node) if isinstance(node, ast.Attribute | ast.Name) else None
        if name != "torch.version.cuda" or isinstance(getattr(node, "ctx", None), ast.Store):
            return
        fact = torch_name(name)
        parsed = attribute is not None or _is_parsed(node)
        yield context.finding(
            self,
            node,
            "torch.version.cuda is None on an NPU, so taking it apart raises; torch.version.cann is CANN's version"
            if parsed
            else "torch.version.cuda is None on an NPU; torch.version.cann is CANN's version",
            severity=Severity.ERROR if parsed and not _is_tested(node) else Severity.WARNING,
            basis=fact.basis if fact else None,
        )


def _is_parsed(node: ast.AST) -> bool:
    """Whether the value is subscripted, computed with, ordered or handed to a function that wants a version."""
    around = parent(node)
    if isinstance(around, ast.Subscript):
        return around.value is node
    if isinstance(around, ast.Compare):
        return any(
            isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.In | ast.NotIn) for operator in around.ops
        )
    if isinstance(around, ast.Call) and node in around.args:
        function = around.func
        short = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return short in {"parse", "Version", "LooseVersion", "StrictVersion", "float", "int", "tuple", "list", "split"}
    return isinstance(around, ast.BinOp) and isinstance(around.op, ast.Add)


def _is_tested(node: ast.AST) -> bool:
    """Whether a condition around the node can keep None away from it."""
    return any(isinstance(around, ast.If | ast.IfExp | ast.BoolOp | ast.Try) for around in ancestors(node))


RULES: tuple[type[Rule], ...] = (CudaEnvironmentVariable, NvidiaTool, CudaVersionQuery)
