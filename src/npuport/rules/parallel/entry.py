"""Where a script starts and ends: the process takes its device and joins the others; at the end it leaves them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.parallel.script import Function, Script, function_of
from npuport.rules.parallel.steps import Step
from npuport.rules.parallel.wrapping import is_main_test
from npuport.source.module import parent

# Statements that may come before: they touch no device, and --help should not wait for one.
_FIRST = ("argparse", "add_argument", "parse_args", "parser", "os.environ", "warnings", "logging")


@dataclass(frozen=True)
class Entry:
    """Where the script starts: in ``function``, or at module level where that is None."""

    function: Function | None
    first: ast.stmt  # before this the process group is made
    last: ast.stmt  # after this it is left
    words: str


def find_entry(wraps: list[ast.Call], script: Script) -> Entry | None:
    """The entry point of a script that wraps a model at ``wraps``; None for a module that others import."""
    guard = next((one for one in script.module.tree.body if isinstance(one, ast.If) and is_main_test(one.test)), None)
    outside = [wrap for wrap in wraps if function_of(wrap) is None and _top(wrap) is not guard]
    if outside:
        return _of_block(script.module.tree.body, None, "after the imports", script)
    if guard is None:
        called = [one for one in script.module.tree.body if isinstance(one, ast.Expr) and _calls_own(one, script)]
        return _of_block(script.module.tree.body, None, "after the imports", script) if called else None
    main = _calls_own(guard.body[0], script) if len(guard.body) == 1 else None
    if main is None:
        return _of_block(guard.body, None, f"at the head of the block of line {guard.lineno}", script)
    in_main = _of_block(main.body, main, f"at the head of {main.name}(), line {main.lineno}", script)
    leaves_by_itself = isinstance(guard.body[0], ast.Expr) and not _exits(guard.body[0], script)
    if in_main is None or not leaves_by_itself:
        return in_main
    return Entry(main, in_main.first, guard.body[0], in_main.words)


def entry_step(entry: Entry, local_rank: str, dist: str, script: Script) -> Step:
    """The statements that begin and end the work of a process."""
    begin = script.insert_before(entry.first, _begin(local_rank, dist, script))
    end = script.insert_after(entry.last, [f"{dist}.destroy_process_group()"])
    words = (
        f'{entry.words}: {local_rank} = int(os.environ.get("LOCAL_RANK", 0)), {_set_device(script)}({local_rank}) and '
        f"{dist}.init_process_group({_backend(script)}); {dist}.destroy_process_group() at the end"
    )
    if begin is None or end is None:
        return Step(words, unclear=f"line {entry.first.lineno} holds several statements")
    return Step(words, (begin, end))


def _begin(local_rank: str, dist: str, script: Script) -> list[str]:
    backend = _backend(script)
    alone = ", ".join(part for part in (backend, f"store={dist}.HashStore(), rank=0, world_size=1") if part)
    take = [f"{_set_device(script)}({local_rank})"]
    if script.context.agnostic:
        take = ["if torch.accelerator.is_available():", f"    {take[0]}"]
    return [
        "# torchrun starts one process for each device; without torchrun this is a group of one, on the first device.",
        f'{local_rank} = int(os.environ.get("LOCAL_RANK", 0))',
        *take,
        'if "LOCAL_RANK" in os.environ:',
        f"    {dist}.init_process_group({backend})",
        "else:",
        f"    {dist}.init_process_group({alone})",
    ]


def _set_device(script: Script) -> str:
    return "torch.accelerator.set_device_index" if script.context.agnostic else "torch.npu.set_device"


def _backend(script: Script) -> str:
    """Without a name torch takes the backend of each device: NCCL, HCCL, and Gloo for the CPU."""
    return "" if script.context.agnostic else '"hccl"'


def device_ids(entry: Entry | None, wrap: ast.Call, local_rank: str, script: Script) -> str:
    """The device of the process, as it can be named where the model is wrapped."""
    visible = entry is not None and entry.function in (None, function_of(wrap))
    if script.context.agnostic:
        index = local_rank if visible else "torch.accelerator.current_device_index()"
        return f"[{index}] if torch.accelerator.is_available() else None"
    return f"[{local_rank if visible else 'torch.npu.current_device()'}]"


def _of_block(block: list[ast.stmt], function: Function | None, words: str, script: Script) -> Entry | None:
    for statement in block:
        if not _may_come_first(statement, script):
            return Entry(function, statement, block[-1], words) if not _returns(block[-1]) else None
    return None


def _may_come_first(statement: ast.stmt, script: Script) -> bool:
    """Imports, definitions, docstrings, and statements about options and the environment."""
    if isinstance(statement, ast.Import | ast.ImportFrom | Function | ast.ClassDef | ast.Global):
        return True
    if isinstance(statement, ast.Try):
        return all(_may_come_first(one, script) for one in statement.body)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    if not isinstance(statement, ast.Expr | ast.Assign) or any(script.context.definition_of(one.func) for one in calls):
        return False
    text = script.text(statement)
    return any(word in text for word in _FIRST)


def _returns(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return)


def _calls_own(statement: ast.stmt, script: Script) -> Function | None:
    """The function of the file that a statement calls: ``main()``, ``sys.exit(main())``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            own = script.callee(node)
            if own is not None:
                return own
    return None


def _exits(statement: ast.Expr, script: Script) -> bool:
    call = statement.value
    return not isinstance(call, ast.Call) or script.callee(call) is None


def _top(node: ast.AST) -> ast.AST:
    while (around := parent(node)) is not None:
        node = around
    return node


# -- imports ---------------------------------------------------------------------------------------------------------

_IMPORTS = {
    "os": "import os",
    "torch": "import torch",
    "torch.nn.parallel.DistributedDataParallel": "from torch.nn.parallel import DistributedDataParallel",
    "torch.utils.data.distributed.DistributedSampler": "from torch.utils.data.distributed import DistributedSampler",
}


def import_step(dist: str, script: Script) -> Step:
    """The imports that the new statements need, before the first import of the file."""
    missing = [line for target, line in _IMPORTS.items() if not _has(target, script)]
    if script.bound_to("torch.distributed") is None:
        missing.append(f"import torch.distributed as {dist}")
    words = f"imports: {'; '.join(missing)}" if missing else "imports: all there"
    ours = {"DistributedDataParallel", "DistributedSampler", "os", "torch"}
    taken = [name for name in sorted(ours & script.module.scope.bindings.keys()) if not _means(name, script)]
    if taken:
        return Step(words, unclear=f"the file uses the name {taken[0]} for something else")
    edits = _import_edits(sorted(missing, key=_order), script)
    if edits is None:
        return Step(words, unclear="the file does not begin with imports")
    return Step(words, edits)


def _import_edits(lines: list[str], script: Script) -> tuple[Edit, ...] | None:
    """``import os`` before the first import at the head of the file, what is of torch after the last of torch."""
    head = _head_imports(script)
    if not head:
        return None
    of_torch = [one for one in head if "torch" in script.text(one)]
    ours = [line for line in lines if "torch" in line]
    after = script.insert_after(of_torch[-1], ours) if of_torch else script.insert_before(head[0], ours)
    before = script.insert_before(head[0], [line for line in lines if line not in ours])
    if before is None or after is None:
        return None
    return tuple(edit for edit in (before, after) if edit.new)


def _head_imports(script: Script) -> list[ast.Import | ast.ImportFrom]:
    """The imports with which a file begins, without those of __future__."""
    found: list[ast.Import | ast.ImportFrom] = []
    for statement in script.module.tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            found += [] if future else [statement]
        elif found or not isinstance(statement, ast.Expr):
            break
    return found


def _order(line: str) -> tuple[bool, bool, str]:
    return line != "import os", line.startswith("from"), line


def _has(target: str, script: Script) -> bool:
    name = target.rpartition(".")[2]
    return name in script.module.scope.bindings


def _means(name: str, script: Script) -> bool:
    wanted = next(target for target in _IMPORTS if target.rpartition(".")[2] == name)
    return script.context.resolver.name(ast.Name(name, ast.Load()), script.module.scope) in {
        wanted,
        wanted.replace("data.distributed", "data"),
        wanted.replace("parallel.Dist", "parallel.distributed.Dist"),
    }
