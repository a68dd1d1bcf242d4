"""Each process reads its share of the data: DistributedSampler, the batch size, a new order in each epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Edit
from npuport.rules.parallel.loaders import TrainingLoop, loader_calls
from npuport.rules.parallel.script import Function, Script, class_of, function_of, statement_of
from npuport.rules.parallel.steps import Step
from npuport.source.module import ancestors
from npuport.source.scopes import BindingKind

_SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Call)
_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler")


def loader_step(call: ast.Call, dist: str, script: Script) -> Step:
    """A DistributedSampler for one DataLoader in the place of its shuffle, and a batch for each process."""
    given = _arguments(call)
    line = f"line {call.lineno}"
    if given is None or "batch_size" not in given or "dataset" not in given:
        words = f"{line}: give DataLoader(…) sampler=DistributedSampler(dataset) in the place of shuffle=True, and"
        return Step(
            f"{words} its batch_size divided by {dist}.get_world_size()",
            unclear=f"{line} passes what a DataLoader gets in a dict, or without a batch size",
        )
    dataset, batch, shuffle = given["dataset"], given["batch_size"], given.get("shuffle")
    name, hoisted = _named(dataset, call, script)
    sampler = f"DistributedSampler({name}{_shuffling(shuffle, script)})"
    size = script.text(batch) if isinstance(batch, _SIMPLE) else f"({script.text(batch)})"
    share = f"{size} // {dist}.get_world_size()"
    words = f"{line}: DataLoader(…, batch_size={share}, sampler={sampler}) without shuffle"
    nothing = _always_none(call, script)
    if {"sampler", "batch_sampler"} & given.keys() and nothing is None:
        return Step(words, unclear=f"{line} has a sampler of its own, which each process must draw its share from")
    if hoisted is None:
        return Step(words, unclear=f"{line} makes its data set inside a larger expression")
    edits = [*hoisted, Edit(*script.module.lines.span(batch), share)]
    if nothing is not None:
        edits.append(Edit(*script.module.lines.span(nothing), f"sampler={sampler}"))
        return Step(words, (*edits, *_without(shuffle, call, script)))
    if shuffle is None:
        last = max((*call.args, *call.keywords), key=lambda part: script.module.lines.span(part)[1])
        end = script.module.lines.span(last)[1]
        edits.append(Edit(end, end, f", sampler={sampler}"))
    elif shuffle in call.args:
        if shuffle is not call.args[-1]:
            return Step(words, unclear=f"{line} gives the sampler by position")
        edits.append(Edit(*script.module.lines.span(shuffle), f"sampler={sampler}"))
    else:
        keyword = next(keyword for keyword in call.keywords if keyword.value is shuffle)
        edits.append(Edit(*script.module.lines.span(keyword), f"sampler={sampler}"))
    return Step(words, tuple(edits))


def _arguments(call: ast.Call) -> dict[str, ast.expr] | None:
    """What a DataLoader is given, by parameter; None for ``*args`` and ``**kwargs``."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) > len(_POSITIONS):
        return None
    given = dict(zip(_POSITIONS, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        given[keyword.arg] = keyword.value
    return {name: value for name, value in given.items() if not (_is(value, None) and name != "shuffle")}


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _always_none(call: ast.Call, script: Script) -> ast.keyword | None:
    """``sampler=train_sampler`` after ``train_sampler = None``, as scripts have it that once were distributed."""
    for keyword in call.keywords:
        if keyword.arg == "sampler" and script.context.constants_of(keyword.value) == frozenset({None}):
            return keyword
    return None


def _without(shuffle: ast.expr | None, call: ast.Call, script: Script) -> list[Edit]:
    """The edit that takes ``shuffle=…,`` out of a call in which another argument follows or comes before."""
    parts: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    index = next(
        (i for i, part in enumerate(parts) if part is shuffle or getattr(part, "value", None) is shuffle), None
    )
    if shuffle is None or index is None:
        return []
    spans = [script.module.lines.span(part) for part in parts]
    last = index == len(parts) - 1
    return [Edit(spans[index - 1][1], spans[index][1], "") if last else Edit(spans[index][0], spans[index + 1][0], "")]


def _shuffling(shuffle: ast.expr | None, script: Script) -> str:
    """The argument of the sampler, which shuffles unless told otherwise."""
    if shuffle is None or _is(shuffle, False) or _is(shuffle, None):
        return ", shuffle=False"
    asks_for_sampler = isinstance(shuffle, ast.Compare) and "sampler" in script.text(shuffle)  # sampler is None
    return "" if _is(shuffle, True) or asks_for_sampler else f", shuffle={script.text(shuffle)}"


def _named(dataset: ast.expr, call: ast.Call, script: Script) -> tuple[str, list[Edit] | None]:
    """A name for the data set, which loader and sampler share; made before the loader where it has none."""
    text = script.text(dataset)
    if isinstance(dataset, ast.Name | ast.Attribute):
        return text, []
    name = script.free_name("train_set", "train_dataset", "train_data")
    statement = statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return name, None
    first = script.insert_before(statement, [f"{name} = {text}"])
    return name, [first, Edit(*script.module.lines.span(dataset), name)] if first is not None else None


# -- epochs ----------------------------------------------------------------------------------------------------------


def epoch_steps(loop: TrainingLoop, script: Script) -> Iterator[Step]:
    """``sampler.set_epoch`` at the head of every loop over epochs around a training loop."""
    for around, loader in _epoch_loops(loop.node, loop.batches, script, 4):
        text = script.text(loader) if loader is not None else "loader"
        if not isinstance(around, ast.For) or not _counts(around, script):
            yield Step(
                f"call {text}.sampler.set_epoch(epoch) at the head of each epoch",
                unclear=f"no `for epoch in range(…)` around the training loop of line {loop.node.lineno} is seen",
            )
            continue
        words = f"{text}.sampler.set_epoch({script.text(around.target)})"
        edit = script.insert_before(around.body[0], [words])
        step = Step(f"line {around.body[0].lineno}: {words}", (edit,) if edit else ())
        if loader is None or edit is None or not _only_training(loader, script):
            yield Step(
                step.words, unclear=f"the DataLoader is not at hand in the loop over epochs, line {around.lineno}"
            )
        elif any(inner in ast.walk(around) for inner in _made_by(loader, script)):
            yield Step(step.words, unclear=f"the DataLoader is made anew in each epoch, line {around.lineno}")
        else:
            yield step


def _counts(loop: ast.For, script: Script) -> bool:
    """Whether a loop runs a plain variable over a range, with or without a progress bar."""
    inside = [inner for inner in ast.walk(loop.iter) if isinstance(inner, ast.Call)]
    names = {script.context.name_of(inner.func) or "" for inner in inside}
    return isinstance(loop.target, ast.Name) and any(
        name == "builtins.range" or name.endswith(".trange") for name in names
    )


def _epoch_loops(
    node: ast.AST, loader: ast.expr | None, script: Script, depth: int
) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """The loops around a node, in its function or around the calls of its function, each with the loader's name."""
    function = function_of(node)
    for around in ancestors(node):
        if isinstance(around, ast.For | ast.While):
            yield around, loader
            return
        if around is function:
            break
    if function is None or depth == 0:
        return
    sites = script.call_sites(function)
    for site in sites:
        yield from _epoch_loops(site, _seen_from(site, function, loader, script), script, depth - 1)


def _seen_from(site: ast.Call, function: Function, loader: ast.expr | None, script: Script) -> ast.expr | None:
    """The loader of a function as its caller names it; None where the caller has no name for it."""
    if isinstance(loader, ast.Attribute):
        return loader if class_of(site) is class_of(function) else None
    if not isinstance(loader, ast.Name):
        return None
    bound = script.context.scope(loader).lookup(loader.id)
    if all(binding.kind is BindingKind.PARAMETER and binding.scope.node is function for binding in bound):
        given = script.argument(site, function, loader.id)
        return given if isinstance(given, ast.Name | ast.Attribute) else None
    in_module = all(binding.scope.parent is None for binding in bound)
    return loader if in_module and script.context.scope(site).lookup(loader.id) == bound else None


def _only_training(loader: ast.expr, script: Script) -> bool:
    return isinstance(loader, ast.Name | ast.Attribute) and loader_calls(loader, script) is not None


def _made_by(loader: ast.expr, script: Script) -> list[ast.Call]:
    return loader_calls(loader, script) or []
