"""The rule about DataParallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import torch_name
from npuport.findings import Applicability, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.parallel.loaders import training_loops
from npuport.rules.parallel.metrics import figures_of
from npuport.rules.parallel.names import DATA_PARALLEL, DISTRIBUTED, STARTS_GROUPS
from npuport.rules.parallel.plan import steps_of
from npuport.rules.parallel.saving import other_writers
from npuport.rules.parallel.script import Script, merged
from npuport.rules.parallel.steps import Step
from npuport.source.module import ancestors

_SERVER = 8  # NPUs of the usual server, where the file does not tell how many devices it takes
_ASKED = re.compile(r"isinstance\([^()\n]*(?<!Distributed)DataParallel\b")
_HEAD = "one process cannot drive several NPUs through DataParallel"


class DataParallelModule(Rule):
    """``nn.DataParallel``, which drives several devices from one process."""

    code = "NP303"
    name = "data-parallel"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\bDataParallel\b", r"\bdata_parallel\b")
    nodes = (ast.Call, ast.ClassDef)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        makers = node.bases if isinstance(node, ast.ClassDef) else [node.func] if isinstance(node, ast.Call) else []
        for maker in makers:
            name = context.name_of(maker)
            if name in DATA_PARALLEL:
                yield self._found(maker, name, context)

    def _found(self, maker: ast.expr, name: str, context: Context) -> Finding:
        script = Script(context)
        command = f"torchrun --nproc_per_node={_processes(script)} {context.module.path}"
        taken = _own_way(script)
        steps = [] if taken else steps_of(script)
        unclear = [step.unclear for step in steps if step.unclear]
        fix = None
        if taken:
            words = f"; line {taken} belongs to a way with one process for each device: take that one"
        elif unclear:
            start = command if _is_started(maker, context) else "torchrun, of the program that uses this"
            words = f"; start one for each with {start}. {_by_hand(steps, unclear)}{_only_predicts(script)}"
        else:
            edits = merged(edit for step in steps for edit in step.edits)
            fix = context.fix(edits, Applicability.UNSAFE, "one process for each device")
            words = f": with the fix, {command} starts one for each{_notes(script)}"
        fact = torch_name(name.replace("data_parallel.", "", 1) if name.count("parallel") > 1 else name)
        return context.finding(
            self, maker, _HEAD + words, fix=fix, basis=fact.basis if fact else None, name=name, command=command
        )


def _is_started(maker: ast.expr, context: Context) -> bool:
    """Whether the file is what is started: it has a main guard, or does the work outside of functions."""
    inside = any(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for one in ancestors(maker))
    return not inside or "__main__" in context.module.text


def _own_way(script: Script) -> int | None:
    """The line where a file starts a process group, or wraps for one; None where it does not."""
    return next((call.lineno for call in script.calls_of(STARTS_GROUPS | DISTRIBUTED)), None)


def _only_predicts(script: Script) -> str:
    if "backward" in script.module.text:
        return ""
    return (
        "; a program that only predicts needs one NPU: with ASCEND_RT_VISIBLE_DEVICES=0 DataParallel passes it all on"
    )


def _by_hand(steps: list[Step], unclear: list[str]) -> str:
    numbered = "; ".join(f"({number}) {step.words}" for number, step in enumerate(steps, 1))
    return f"npuport leaves this to you, for {' and '.join(dict.fromkeys(unclear))}: {numbered}"


def _notes(script: Script) -> str:
    """What the fix leaves as it is, and a reader should know of."""
    notes = []
    own = sorted({name for loop in training_loops(script) for name in figures_of(loop, script).own})
    if own:
        notes.append(f"{', '.join(own)}: each process has its own figures")
    leaves = sorted({line for loop in training_loops(script) for line in _leaves(loop.node)})
    if leaves:
        notes.append(f"line {', '.join(map(str, leaves))} leaves a step: all processes must together, or they hang")
    loading = [k.value.lineno for call in script.calls for k in call.keywords if k.arg == "download"]
    if loading:
        notes.append(f"line {loading[0]}: let one process download before the others start")
    writers = other_writers(script)
    if writers:
        notes.append(f"each process writes what line {', '.join(map(str, writers))} writes: leave it to rank 0")
    drawn = _drawn_at_random(script)
    if drawn:
        notes.append(f"line {drawn} draws at random before the processes share anything: seed all of them equally")
    asking = [
        path
        for path, text in script.context.project.holding("DataParallel")
        if path != script.module.path and _ASKED.search(text)
    ]
    if asking:
        notes.append(f"{', '.join(asking)} asks isinstance(…, DataParallel): ask for DistributedDataParallel too")
    return "".join(f"; {note}" for note in notes)


def _processes(script: Script) -> int:
    """How many processes to start: as many as the device_ids that the file gives, if it tells."""
    for call in script.calls:
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "device_ids"), None)
        if isinstance(given, ast.List | ast.Tuple) and script.name_of_call(call) in DATA_PARALLEL and given.elts:
            return len(given.elts)
    return _SERVER


def _leaves(loop: ast.For) -> Iterator[int]:
    """Lines where a condition ends a step of a training loop early."""
    for condition in ast.walk(loop):
        if isinstance(condition, ast.If):
            inside = [one for part in (condition.body, condition.orelse) for one in part]
            yield from (one.lineno for one in inside if isinstance(one, ast.Continue | ast.Break | ast.Return))


def _drawn_at_random(script: Script) -> int | None:
    """The line of a random split of the data in a file that sets no seed: each process would split otherwise."""
    names = {call: script.name_of_call(call) for call in script.calls}
    if any(name.endswith(("manual_seed", ".seed", "seed_everything", "set_seed")) for name in names.values()):
        return None
    for call, name in names.items():
        seeded = any(keyword.arg in ("generator", "random_state") for keyword in call.keywords)
        if name.endswith(("random_split", "train_test_split")) and not seeded:
            return call.lineno
    return None
