"""``apex.amp`` at level O1 or O2 in one file, and torch.amp in its place: scaler, autocast, unscaling, steps.

One fix for the whole idiom, for its parts are right together only. Torch's autocast keeps weights in float32, as the
master weights of O2 are; the loss scale starts, grows and falls as Apex's does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.agnostic.device_type import device_type
from npuport.rules.apex.classes import Blocked
from npuport.rules.apex.mentions import Mention, block_of, is_apex
from npuport.rules.apex.places import (
    Function,
    after_last_step,
    calls_one_of,
    first_line,
    function_around,
    is_method,
    makers_of,
    margin_of,
    separator,
    speaks_of,
    stands_before,
    statement_around,
    values_of,
)
from npuport.rules.base import Context
from npuport.rules.grad_scaler import prefers_upstream
from npuport.source.module import ancestors, parent

_AMP = "apex.amp."
PARTS = ("initialize", "scale_loss", "master_params", "state_dict", "load_state_dict")
_MEANINGLESS = {"verbosity", "patch_torch_functions", "keep_batchnorm_fp32", "master_weights"}
_CLIPS = re.compile(r"clip_grad_(?:norm|value)_?$")
_CONTINUED = re.compile(r"\\\r?\n")
_ONE_LINE = re.compile(r"[^\n]*")


@dataclass(frozen=True)
class Start:
    """What ``amp.initialize`` says: the statement that goes, the scaler's arguments, and whether it may be off."""

    assignment: ast.Assign
    replaced: ast.stmt
    models: frozenset[str]
    enabled: str | None
    static_scale: str | None


@dataclass(frozen=True)
class Loss:
    """One ``with amp.scale_loss(loss, optimizer) as scaled``."""

    statement: ast.With
    loss: ast.expr
    optimizer: str
    scaled: str
    function: ast.AST


class Conversion:
    """The conversion of one file.

    Raises:
        Blocked: the idiom is not whole, or holds something that torch.amp has not.
    """

    def __init__(self, mentions: Sequence[Mention], context: Context) -> None:
        self.context, self.module = context, context.module
        self.of = {part: [each for each in mentions if each.name == _AMP + part] for part in PARTS}
        for mention in mentions:
            if mention.name not in {_AMP + part for part in PARTS} or mention.call is None:
                raise Blocked(f"{mention.name} has no counterpart in torch.amp")
        if len(self.of["initialize"]) != 1:
            many = "is called more than once" if self.of["initialize"] else "stands in another file"
            raise Blocked(f"amp.initialize {many}, and torch.amp's scaler has to be handed over")
        if not self.of["scale_loss"]:
            raise Blocked("the losses are scaled in another file, and torch.amp's scaler has to be handed over")
        self.start = _start(self._call("initialize"), context)
        self.losses = [_loss(mention, context) for mention in self.of["scale_loss"]]
        for loss in self.losses:
            if len({other.optimizer for other in self.losses if other.function is loss.function}) > 1:
                raise Blocked("there are several optimizers, and torch.amp's scale is updated once after all of them")
        self.steps = [step for loss in self.losses for step in self._steps(loss)]
        self.scaler, self.is_global = self._scaler_name()

    def _call(self, part: str) -> ast.Call:
        call = self.of[part][0].call
        assert call is not None
        return call

    def edits(self) -> Iterator[Edit]:
        """All edits but those of the imports."""
        yield from self._start_edits()
        for loss in self.losses:
            yield from self._loss_edits(loss)
            yield from self._autocast_edits(loss)
        for step, optimizer in self.steps:
            indent = separator(step, self.module.text, self.context)
            text = f"{self.scaler}.step({optimizer})"
            yield Edit(*self.module.lines.span(step), f"{text}{indent}{self.scaler}.update()")
        for part in ("state_dict", "load_state_dict"):
            for mention in self.of[part]:
                yield Edit(*self.module.lines.span(mention.node), f"{self.scaler}.{part}")
        yield from self._gradient_edits()

    # -- the scaler ----------------------------------------------------------------------------------------------------

    def _scaler_name(self) -> tuple[str, bool]:
        """What the scaler is called, and whether it must be declared global."""
        home = function_around(self.start.assignment)
        users = [mention.node for part in PARTS[1:] for mention in self.of[part]] + [step for step, _ in self.steps]
        homes = {function_around(node) for node in users}
        method = isinstance(parent(home), ast.ClassDef) if home is not None else False
        if method and homes != {home}:
            assert isinstance(home, Function)
            classes = {parent(each) if each is not None else None for each in homes}
            if classes != {parent(home)} or not all(is_method(each) for each in homes):
                raise Blocked("amp.initialize stands in a method, and its users in other places")
            prefix = "self."
        else:
            prefix = ""
        name = next((prefix + word for word in ("scaler", "grad_scaler") if not self._is_bound(prefix + word)), None)
        if name is None:
            raise Blocked("the names scaler and grad_scaler are taken")
        return name, home is not None and homes != {home} and not prefix

    def _is_bound(self, word: str) -> bool:
        return re.search(rf"(?<![\w.]){re.escape(word)}\b", self.module.text) is not None

    def _device(self, at: ast.AST) -> tuple[str, list[Edit]]:
        """The device's type as an expression, and what defines it."""
        if not self.context.agnostic:
            return '"npu"', []
        found = device_type(at, self.context)
        if found is None:
            raise Blocked("the device type cannot be named here")
        return found.name, list(found.edits)

    def _start_edits(self) -> Iterator[Edit]:
        start = self.start
        enabled = [f"enabled={start.enabled}"] if start.enabled is not None else []
        edits: list[Edit] = []
        if start.static_scale is not None:
            if self.context.agnostic:
                raise Blocked("torch.amp.GradScaler has no scale that stays")
            arguments = [f"init_scale={start.static_scale}", "dynamic=False", *enabled]
            made = f"torch.npu.amp.GradScaler({', '.join(arguments)})"
        elif self.context.agnostic or prefers_upstream(self.context.settings):
            if not self.context.settings.torch_at_least("2.3"):
                raise Blocked("torch.amp.GradScaler takes a device from torch 2.3 on")
            device, edits = self._device(start.assignment)
            made = f"torch.amp.GradScaler({', '.join([device, *enabled])})"
        else:
            made = f"torch.npu.amp.GradScaler({', '.join(enabled)})"
        yield from edits
        lines = [f"global {self.scaler}"] if self.is_global else []
        lines.append(f"{self.scaler} = {made}")
        target, value = start.assignment.targets[0], start.assignment.value
        assert isinstance(target, ast.Tuple) and isinstance(value, ast.Call)
        names = [self.module.segment(part) for part in target.elts]
        given = [self.module.segment(part) for part in _models_and_optimizers(value)]
        if names != given:
            lines.append(f"{', '.join(names)} = {', '.join(given)}")
        indent = separator(start.replaced, self.module.text, self.context)
        yield Edit(*self.module.lines.span(start.replaced), indent.join(lines))

    # -- losses --------------------------------------------------------------------------------------------------------

    def _loss_edits(self, loss: Loss) -> Iterator[Edit]:
        """``scaled = scaler.scale(loss)`` for the header of ``with``, and its body one step to the left."""
        text, statement = self.module.text, loss.statement
        start = self.module.lines.span(statement)[0]
        first = self.module.lines.span(statement.body[0])[0]
        head = f"{loss.scaled} = {self.scaler}.scale({self.module.segment(loss.loss)})"
        if statement.body[0].lineno == statement.lineno:
            yield Edit(start, first, head + separator(statement, text, self.context))
            return
        unit = self._unit(statement)
        header_end = text.rfind("\n", 0, first)
        comment = text.find("#", self.module.lines.span(statement.items[0].context_expr)[1], header_end)
        yield Edit(start, comment if comment >= 0 else header_end, head + ("  " if comment >= 0 else ""))
        for line in self._body_lines(statement):
            if text.startswith(margin_of(statement, text) + unit, line):
                yield Edit(line, line + len(unit), "")

    def _unit(self, statement: ast.With) -> str:
        """What one level of indentation is made of."""
        margin, inner = margin_of(statement, self.module.text), margin_of(statement.body[0], self.module.text)
        return inner[len(margin) :] if inner.startswith(margin) and len(inner) > len(margin) else "    "

    def _body_lines(self, statement: ast.With) -> list[int]:
        """The offsets of the lines of a body. Raises Blocked for texts over several lines, which must stay."""
        last = statement.body[-1].end_lineno or statement.lineno
        return self._lines(statement.body[0].lineno, last)

    def _lines(self, first: int, last: int) -> list[int]:
        lines = self.module.lines
        start, end = lines.starts[first - 1], lines.starts[last] if last < len(lines.starts) else len(self.module.text)
        if '"""' in self.module.text[start:end] or "'''" in self.module.text[start:end]:
            raise Blocked("a text over several lines stands where the indentation changes")
        if _CONTINUED.search(self.module.text, start, end):
            raise Blocked("a line is continued by a backslash where the indentation changes")
        return [lines.starts[number - 1] for number in range(first, last + 1)]

    def _autocast_edits(self, loss: Loss) -> Iterator[Edit]:
        """``with torch.autocast`` around the statements from the model's call to the loss."""
        first, last = self._region(loss)
        text, lines = self.module.text, self.module.lines
        device, edits = self._device(first)
        yield from edits
        enabled = f", enabled={self.scaler}.is_enabled()" if self.start.enabled is not None else ""
        margin, unit = margin_of(first, text), self._unit(loss.statement)
        head = f"with torch.autocast({device}, dtype=torch.float16{enabled}):"
        offsets = self._lines(first_line(first), last.end_lineno or last.lineno)
        if text[offsets[0] : lines.span(first)[0]].strip() and not getattr(first, "decorator_list", ()):
            raise Blocked("several statements share a line")
        yield Edit(offsets[0], offsets[0], f"{margin}{head}{self.context.newline}{unit}")
        for offset in offsets[1:]:
            line = _ONE_LINE.match(text, offset)
            if line is not None and line[0].strip():
                yield Edit(offset, offset, unit)

    def _region(self, loss: Loss) -> tuple[ast.stmt, ast.stmt]:
        """The first and the last statement that autocast is for."""
        words = {part.id for part in ast.walk(loss.loss) if isinstance(part, ast.Name)}
        inner: ast.stmt = loss.statement
        while True:
            block = block_of(inner, self.context)
            before = block[: block.index(inner)] if inner in block else []
            tail = before[after_last_step(before) :]
            begins = [each for each in tail if calls_one_of(each, self.start.models)] or makers_of(tail, words)
            if begins:
                ends = [each for each in tail[tail.index(begins[0]) :] if speaks_of(each, words)]
                return begins[0], (ends or begins)[-1]
            around = parent(inner)
            if not isinstance(around, ast.If):
                raise Blocked("the loss is computed somewhere else, and autocast has to go around that")
            inner = around

    # -- steps and gradients -------------------------------------------------------------------------------------------

    def _steps(self, loss: Loss) -> list[tuple[ast.Call, str]]:
        found = []
        for node in ast.walk(loss.function):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"):
                continue
            if self.module.segment(node.func.value) == loss.optimizer:
                if node.args or node.keywords or not isinstance(parent(node), ast.Expr):
                    raise Blocked("the optimizer's step takes a closure, or its result is used")
                found.append((node, loss.optimizer))
        if not found:
            raise Blocked(f"{loss.optimizer}.step() stands in another function, and torch.amp's scaler must take it")
        return found

    def _gradient_edits(self) -> Iterator[Edit]:
        """``unscale_`` before the first look at gradients, and torch's words for the master parameters."""
        places: dict[ast.stmt, str] = {}
        for mention in self.of["master_params"]:
            call = mention.call
            assert call is not None
            optimizer = self.module.segment(call.args[0])
            places[statement_around(call)] = optimizer
            parameters = f'[p for group in {optimizer}.param_groups for p in group["params"]]'
            yield Edit(*self.module.lines.span(call), parameters)
        for loss in self.losses:
            for node in ast.walk(loss.function):
                if isinstance(node, ast.Attribute) and node.attr == "grad":
                    raise Blocked("gradients are read or changed by hand, which needs scaler.unscale_ before it")
                if isinstance(node, ast.Call) and _CLIPS.search(self.module.segment(node.func)):
                    places.setdefault(statement_around(node), loss.optimizer)
        for part in (*places, *(statement_around(step) for step, _ in self.steps)):
            if any(loss.statement in ancestors(part) for loss in self.losses):
                raise Blocked("more than the backward pass stands under amp.scale_loss")
        blocks = [id(block_of(place, self.context)) for place in places]
        if len(set(blocks)) < len(blocks):
            raise Blocked("gradients are looked at more than once in a step, and may be unscaled once only")
        for place, optimizer in places.items():
            if not any(stands_before(place, step, self.context) for step, of in self.steps if of == optimizer):
                raise Blocked("gradients are clipped where no step follows, and may be unscaled once a step only")
            start = self.module.lines.span(place)[0]
            indent = separator(place, self.module.text, self.context)
            yield Edit(start, start, f"{self.scaler}.unscale_({optimizer}){indent}")


def _start(call: ast.Call, context: Context) -> Start:
    assignment = parent(call)
    target = assignment.targets[0] if isinstance(assignment, ast.Assign) else None
    if not isinstance(assignment, ast.Assign) or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        raise Blocked("what amp.initialize returns is not one model and one optimizer")
    parts = _models_and_optimizers(call)
    if not all(isinstance(part, ast.Name | ast.Attribute) for part in (*parts, *target.elts)):
        raise Blocked("there are several models or optimizers, or they are made in the call")
    options = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg not in {"models", "optimizers"}}
    enabled = [_enabled(options.pop("enabled", None), context), _level(options.pop("opt_level", None), context)]
    scale = _static_scale(options.pop("loss_scale", None), context)
    for name in list(options):
        one_loss = name == "num_losses" and values_of(options[name], context) == {1}
        if name in _MEANINGLESS or one_loss:
            del options[name]
    if options:
        raise Blocked(f"torch.amp has nothing like {', '.join(name or '**' for name in options)}")
    replaced, condition = _guard(assignment, context)
    conditions = [each for each in (condition, *enabled) if each is not None]
    models = {context.module.segment(parts[0]), context.module.segment(target.elts[0])}
    joined = " and ".join(conditions) if conditions else None
    return Start(assignment, replaced, frozenset(models), joined, scale)


def _models_and_optimizers(call: ast.Call) -> list[ast.expr]:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    found = [*call.args, *(named[name] for name in ("models", "optimizers") if name in named)]
    if len(found) != 2 or any(isinstance(part, ast.Starred) for part in found):
        raise Blocked("amp.initialize is not given one model and one optimizer")
    return found


def _enabled(value: ast.expr | None, context: Context) -> str | None:
    if value is None or values_of(value, context) == {True}:
        return None
    return _plain(value, context, "enabled")


def _level(value: ast.expr | None, context: Context) -> str | None:
    """The condition under which anything is cast, for a level that the source does not settle."""
    if value is None:
        return None
    levels = values_of(value, context)
    if levels and levels <= {"O1", "O2"}:
        return None
    if levels == {"O0"}:
        return "False"
    if levels == {"O3"}:
        raise Blocked("level O3 keeps no float32 weights, which torch.amp always does")
    return f'{_plain(value, context, "opt_level")} != "O0"'


def _plain(value: ast.expr, context: Context, what: str) -> str:
    """The text of a name or an attribute."""
    if isinstance(value, ast.Name | ast.Attribute):
        return context.module.segment(value)
    raise Blocked(f"{what} is not a plain name")


def _static_scale(value: ast.expr | None, context: Context) -> str | None:
    if value is None:
        return None
    scales = values_of(value, context)
    if len(scales) != 1:
        raise Blocked("loss_scale is not known here, and a number asks for another scaler than 'dynamic'")
    (scale,) = scales
    if scale in (None, "dynamic"):
        return None
    try:
        return str(float(str(scale)))
    except ValueError:
        raise Blocked(f"loss_scale is {scale!r}") from None


def _guard(assignment: ast.Assign, context: Context) -> tuple[ast.stmt, str | None]:
    """The statement that the scaler takes the place of, and its condition: ``if args.fp16:`` around ``initialize``."""
    around = parent(assignment)
    if not isinstance(around, ast.If):
        return assignment, None
    others = [each for each in around.body if each is not assignment and not _only_imports(each)]
    if others or around.orelse or assignment not in around.body:
        raise Blocked("amp.initialize stands in a condition together with other statements")
    return around, _plain(around.test, context, "the condition around amp.initialize")


def _only_imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Try):
        raising = all(isinstance(part, ast.Raise | ast.Pass) for handler in statement.handlers for part in handler.body)
        return raising and all(map(is_apex, statement.body)) and not statement.orelse and not statement.finalbody
    return is_apex(statement)


def _loss(mention: Mention, context: Context) -> Loss:
    call = mention.call
    assert call is not None
    item = parent(call)
    statement = parent(item) if item is not None else None
    if not isinstance(item, ast.withitem) or not isinstance(statement, ast.With) or len(statement.items) != 1:
        raise Blocked("amp.scale_loss is not the only context of a with statement")
    if not isinstance(item.optional_vars, ast.Name):
        raise Blocked("the scaled loss has no plain name")
    others = [keyword for keyword in call.keywords if values_of(keyword.value, context) != {0}]
    if len(call.args) != 2 or isinstance(call.args[1], ast.List | ast.Tuple | ast.Starred) or others:
        raise Blocked("amp.scale_loss has more than a loss and an optimizer")
    return Loss(
        statement,
        call.args[0],
        context.module.segment(call.args[1]),
        item.optional_vars.id,
        function_around(statement) or context.module.tree,
    )
