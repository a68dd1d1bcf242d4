"""What changed in torch and NumPy since the code was written, and shows at the first run of a port."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import RemovedName, all_removed_names, removed_name
from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors, parent

_SIX = "torch._six"


def _markers() -> tuple[tuple[str, str], ...]:
    """One marker for all that stood in one module."""
    names = [one.name for one in all_removed_names() if not one.name.startswith(_SIX)]
    ends = {name.rpartition(".")[2] for name in names}
    return (("_six", r"\b_six\b"), *((end, rf"(?:\btorch\b.*|\bdist\.)\b{end}\b") for end in sorted(ends)))


class RemovedTorchName(Rule):
    """A name of torch that the torch of the port no longer has."""

    code = "NP751"
    name = "removed-torch-name"
    severity = Severity.ERROR
    agnostic = True
    markers = _markers()
    nodes = (ast.Attribute, ast.ImportFrom)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if _is_guarded(node):
            return
        if isinstance(node, ast.ImportFrom):
            yield from self._imported(node, context)
            return
        assert isinstance(node, ast.Attribute)
        if not isinstance(node.ctx, ast.Load) or isinstance(parent(node), ast.Attribute):
            return
        known = _gone(context.name_of(node), context)
        if known is None or known.name.startswith(_SIX):
            return  # of torch._six the import is what fails
        renamed = known.replacement if known.replacement and " " not in known.replacement else None
        word = renamed and context.replace_word(
            node, node.attr, renamed.rpartition(".")[2], Applicability.UNSAFE, "use the new name"
        )
        yield self._finding(node, known, word or None, context)

    def _imported(self, node: ast.ImportFrom, context: Context) -> Iterator[Finding]:
        if node.level:
            return
        found = [(alias, _gone(f"{node.module}.{alias.name}", context)) for alias in node.names]
        if any(known is None for _, known in found) and node.module != _SIX:
            return
        for alias, known in found:
            known = known or _gone(node.module, context)  # noqa: PLW2901 - its module has gone
            if known is not None:
                yield self._finding(alias, known, _import_fix(node, context), context)

    def _finding(self, at: ast.AST, known: RemovedName, fix: Fix | None, context: Context) -> Finding:
        short = known.replacement and f"write `{known.replacement}`"
        return context.finding(
            self,
            at,
            f"torch {context.settings.torch_version} has no {known.name} that works: {known.note or short}",
            fix=fix,
            basis=known.basis,
            symbol=known.name,
        )


def _gone(name: str | None, context: Context) -> RemovedName | None:
    known = removed_name(name) if name else None
    return known if known is not None and context.settings.torch_at_least(known.since) else None


def _is_guarded(node: ast.AST) -> bool:
    """Whether the program tries the name, or asks for the version first."""
    return any(isinstance(around, ast.Try | ast.If | ast.IfExp) and not _is_main(around) for around in ancestors(node))


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def _import_fix(node: ast.ImportFrom, context: Context) -> Fix | None:
    """The import replaced by what binds the same names; None unless each of them has a replacement."""
    statements = []
    for alias in node.names:
        known = removed_name(f"{node.module}.{alias.name}")
        if known is None or known.replacement is None or " " not in known.replacement or alias.asname:
            return None
        statements.append(known.replacement)
    return context.replace_node(node, "; ".join(statements), Applicability.UNSAFE, "bind the same names")


_SINCE_LOAD = "2.6"
_LOAD = Basis("release notes of torch 2.6: torch.load loads weights only by default", "documented", "2.6.0")
_MODULE_METHODS = {
    "eval", "train", "state_dict", "parameters", "cuda", "half", "float", "modules", "named_parameters", "forward",
    "load_state_dict",
}  # fmt: skip
_NAMESPACES = {"args", "opt", "cfg", "hparams"}


class ObjectsFromTorchLoad(Rule):
    """``torch.load`` of a file that holds whole objects, where torch reads tensors and plain values only."""

    code = "NP752"
    name = "objects-from-torch-load"
    severity = Severity.WARNING
    agnostic = True
    markers = (r"torch\.load\(",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if not context.settings.torch_at_least(_SINCE_LOAD) or context.name_of(node.func) != "torch.load":
            return
        if any(keyword.arg in {"weights_only", "pickle_module", None} for keyword in node.keywords) or not node.args:
            return
        what = _object_taken(node, context)
        if what is None:
            return
        last = node.keywords[-1].value if node.keywords else node.args[-1]
        end = context.module.lines.span(last)[1]
        yield context.finding(
            self,
            node.func,
            f"from torch 2.6 on this loads tensors and plain values only, and {what} is an object: say"
            " weights_only=False for a file that is trusted",
            fix=context.fix(
                [Edit(end, end, ", weights_only=False")], Applicability.UNSAFE, "load whole objects of a trusted file"
            ),
            basis=_LOAD,
        )


def _object_taken(call: ast.Call, context: Context) -> str | None:
    """What of the loaded value the code uses as a module or a namespace: "the value itself" or "its 'args'"."""
    around = parent(call)
    uses: list[ast.expr] = [call]
    if isinstance(around, ast.Assign) and around.value is call and isinstance(around.targets[0], ast.Name):
        name = around.targets[0].id
        scope = context.scope(call)
        if [binding.value for binding in scope.bindings.get(name, [])] != [call]:
            return None
        uses = [use for use in context.module.uses(name) if context.scope(use) is scope]
    for use in uses:
        place = parent(use)
        if isinstance(place, ast.Attribute) and place.attr in _MODULE_METHODS and _is_called(place):
            return "the value itself"
        if not (isinstance(place, ast.Subscript) and place.value is use and isinstance(place.slice, ast.Constant)):
            continue
        key, taken = place.slice.value, parent(place)
        if isinstance(taken, ast.Attribute) and (
            (taken.attr in _MODULE_METHODS and _is_called(taken) and taken.attr != "state_dict")
            or (key in _NAMESPACES and taken.attr not in dir(dict))
        ):
            return f"its {key!r}"
    return None


def _is_called(node: ast.Attribute) -> bool:
    call = parent(node)
    return isinstance(call, ast.Call) and call.func is node


class LocalRankUnderscore(Rule):
    """The option ``--local_rank`` alone, which torch's launchers of today do not pass."""

    code = "NP753"
    name = "local-rank-underscore"
    severity = Severity.WARNING
    agnostic = True
    markers = (r"[\"']--local_rank[\"']",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        texts = [argument for argument in node.args if isinstance(argument, ast.Constant)]
        flags = [argument.value for argument in texts]
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "add_argument" or "--local_rank" not in flags:
            return
        if "--local-rank" in flags or "LOCAL_RANK" in context.module.text or "deepspeed" in context.module.text:
            return
        if not context.settings.torch_at_least("2.0"):
            return
        flag = texts[flags.index("--local_rank")]
        yield context.finding(
            self,
            flag,
            "torchrun passes no such option but sets the variable LOCAL_RANK, and torch.distributed.launch passes"
            " --local-rank: take both, with the variable as default",
            fix=self._fix(node, flag, context),
            basis=Basis("torch.distributed.launch", "documented", "2.0.0"),
        )

    @staticmethod
    def _fix(call: ast.Call, flag: ast.Constant, context: Context) -> Fix:
        start, end = context.module.lines.span(flag)
        text = context.module.text[start:end]
        edits = [Edit(end, end, f", {text.replace('_', '-')}")]
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        default = given.get("default")
        as_number = context.name_of(given["type"]) == "builtins.int" if "type" in given else False
        if as_number and isinstance(default, ast.Constant | ast.UnaryOp) and _is_integer(default):
            at, stop = context.module.lines.span(default)
            read = f'int(os.environ.get("LOCAL_RANK", {context.module.text[at:stop]}))'
            return context.fix([*edits, Edit(at, stop, read)], Applicability.UNSAFE, "read LOCAL_RANK", needs="os")
        return context.fix(edits, Applicability.UNSAFE, "take --local-rank too")


def _is_integer(node: ast.expr) -> bool:
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(value, ast.Constant) and type(value.value) is int


# Names of NumPy by what takes their places; the first group went with NumPy 1.24, the second with 2.0.
_NUMPY = {
    "numpy.float": "float",
    "numpy.int": "int",
    "numpy.complex": "complex",
    "numpy.object": "object",
    "numpy.str": "str",
    "numpy.float_": "float64",
    "numpy.complex_": "complex128",
    "numpy.string_": "bytes_",
    "numpy.unicode_": "str_",
    "numpy.Inf": "inf",
    "numpy.infty": "inf",
    "numpy.NaN": "nan",
}
_BUILTINS = {"float", "int", "complex", "object", "str"}


class RemovedNumpyName(Rule):
    """A name that NumPy no longer has."""

    code = "NP754"
    name = "removed-numpy-name"
    severity = Severity.WARNING
    agnostic = True
    markers = tuple(
        (spelled, rf"\b{spelled}\b") for name in _NUMPY for spelled in (name, name.replace("numpy", "np", 1))
    )
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        name = context.name_of(node)
        new = _NUMPY.get(name or "")
        if name is None or new is None or not isinstance(node.ctx, ast.Load) or isinstance(parent(node), ast.Attribute):
            return
        builtin = new in _BUILTINS
        spelled = new if builtin else f"{context.module.segment(node.value)}.{new}"
        shadowed = builtin and context.scope(node).lookup(new)
        yield context.finding(
            self,
            node,
            f"NumPy {'1.24' if builtin else '2.0'} and later have no {name}: write {spelled}",
            fix=None if shadowed else context.replace_node(node, spelled, Applicability.UNSAFE, f"write {spelled}"),
            basis=Basis("numpy namespace", "measured", "2.4.6"),
            symbol=name,
        )


class OldLauncher(Rule):
    """A program starts others with ``python -m torch.distributed.launch``."""

    code = "NP755"
    name = "old-launcher"
    severity = Severity.INFO
    markers = (r"torch\.distributed\.launch\b",)
    nodes = (ast.Constant,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Constant)
        around = parent(node)
        if node.value != "torch.distributed.launch" or not isinstance(around, ast.List | ast.Tuple | ast.Call):
            return
        parts = around.args if isinstance(around, ast.Call) else around.elts
        if any(isinstance(part, ast.Constant) and part.value == "-m" for part in parts):
            yield context.finding(self, node, LAUNCHER, basis=LAUNCHER_BASIS)


LAUNCHER = (
    "this launcher is deprecated: torchrun takes its options, sets LOCAL_RANK and passes no --local-rank; torch_npu_run"
    " is its counterpart for large clusters"
)
LAUNCHER_BASIS = Basis("torch.distributed.launch", "documented", "2.13.0")

RULES: tuple[type[Rule], ...] = (
    RemovedTorchName,
    ObjectsFromTorchLoad,
    LocalRankUnderscore,
    RemovedNumpyName,
    OldLauncher,
)
