"""The whole change of one script, as steps: each is needed, and only all of them together keep the training right."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.rules.parallel.devices import device_steps
from npuport.rules.parallel.entry import device_ids, entry_step, find_entry, import_step
from npuport.rules.parallel.loaders import TrainingLoop, stray_backward, training_loops
from npuport.rules.parallel.metrics import metrics_step
from npuport.rules.parallel.names import DATA_PARALLEL, DISTRIBUTED, FUNCTIONAL
from npuport.rules.parallel.sampling import epoch_steps, loader_step
from npuport.rules.parallel.saving import folder_steps, saving_steps
from npuport.rules.parallel.script import Script
from npuport.rules.parallel.steps import Step
from npuport.rules.parallel.wrapping import wrap_step
from npuport.source.module import ancestors, parent


def steps_of(script: Script) -> list[Step]:
    """What to change in a script so that each device has a process of its own, in the order of reading."""
    wraps = script.calls_of(DATA_PARALLEL - FUNCTIONAL)
    dist = script.bound_to("torch.distributed") or script.free_name("dist", "distributed")
    local_rank = script.free_name("local_rank", "local_device")
    loops, entry = training_loops(script), find_entry(wraps, script)
    if entry is None and not loops:
        return [*_apart(wraps, dist, script), *_other_mentions(script)]
    steps = list(_settings_steps(script.context))
    steps.append(import_step(dist, script))
    if entry is None:
        words = (
            f'where the program starts: {local_rank} = int(os.environ.get("LOCAL_RANK", 0)), '
            f'torch.npu.set_device({local_rank}) and {dist}.init_process_group("hccl"); '
            f"{dist}.destroy_process_group() at the end"
        )
        steps.append(Step(words, unclear="the program starts in another file, or npuport does not see where"))
    else:
        steps.append(entry_step(entry, local_rank, dist, script))
    steps += device_steps(script)
    steps += (wrap_step(call, device_ids(entry, call, local_rank, script), dist, script) for call in wraps)
    steps += _other_mentions(script)
    steps += _loading(loops, dist, script)
    if entry is not None:
        steps += saving_steps(entry, dist, script)
        steps += folder_steps(script)
    steps += (step for loop in loops if (step := metrics_step(loop, dist, script)) is not None)
    return steps


def _apart(wraps: list[ast.Call], dist: str, script: Script) -> Iterator[Step]:
    """What there is to do in a file that neither starts nor trains."""
    for call in wraps:
        step = wrap_step(call, device_ids(None, call, "local_rank", script), dist, script)
        yield Step(step.words, unclear=step.unclear or "training starts in another file")
    yield Step(
        f'where training starts: {dist}.init_process_group("hccl") and a DistributedSampler for its DataLoader',
        unclear="" if wraps else "training starts in another file",
    )


def _settings_steps(context: Context) -> Iterator[Step]:
    """Why the change is not made at all in this setting."""
    if not context.module.path.endswith(".py"):
        yield Step("make a script of the notebook", unclear="torchrun starts scripts, and this is a notebook")
    if context.agnostic and not context.settings.torch_at_least("2.6"):
        yield Step(
            "use torch 2.6 or later", unclear="before torch 2.6 there is no torch.accelerator to take a device with"
        )
    if context.settings.keep_lines or context.settings.target == "import":
        yield Step(
            "convert this file on disk: npuport convert --unsafe-fixes",
            unclear="it takes more than a change at import time",
        )


def _loading(loops: list[TrainingLoop], dist: str, script: Script) -> Iterator[Step]:
    stray = stray_backward(loops, script)
    if not loops or stray is not None:
        where = f"the one around backward() in line {stray.lineno}" if stray is not None else "one with backward()"
        yield Step(
            "give the DataLoader of the training data batch_size divided by "
            f"{dist}.get_world_size() and sampler=DistributedSampler(its data set) in the place of shuffle=True, and "
            "call loader.sampler.set_epoch(epoch) at the head of each epoch",
            unclear=f"no training loop ({where}) that iterates a DataLoader of this file is seen",
        )
    for call in dict.fromkeys(call for loop in loops for call in loop.loaders):
        yield loader_step(call, dist, script)
    seen: set[tuple[Edit, ...]] = set()
    for loop in loops:
        for step in epoch_steps(loop, script):
            if not step.edits or step.edits not in seen:
                yield step
            seen.add(step.edits)


def _other_mentions(script: Script) -> Iterator[Step]:
    """``isinstance(model, DataParallel)`` asks for the new class; other uses of the class are left to people."""
    for node in script.mentions(DATA_PARALLEL):
        around = parent(node)
        if isinstance(around, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        name = script.context.name_of(node)
        words = f"line {node.lineno}: DistributedDataParallel in the place of {script.text(node)}"
        if isinstance(around, ast.Call) and around.func is node and name not in FUNCTIONAL:
            continue
        question = next((one for one in ancestors(node) if isinstance(one, ast.Call)), None)
        if question is not None and script.name_of_call(question) == "builtins.isinstance":
            others = around.elts if isinstance(around, ast.Tuple) else []
            if not any(script.context.name_of(one) in DISTRIBUTED for one in others):
                yield Step(words, (Edit(*script.module.lines.span(node), "DistributedDataParallel"),))
        elif name in FUNCTIONAL:
            yield Step(
                f"line {node.lineno}: call the module itself, once it is wrapped in DistributedDataParallel",
                unclear=f"line {node.lineno} calls data_parallel at each step",
            )
        else:
            yield Step(words, unclear=f"line {node.lineno} uses the class itself")
