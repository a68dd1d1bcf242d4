"""Files that only one process may write: the checkpoints, and what is done with them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Edit
from npuport.rules.parallel.entry import Entry
from npuport.rules.parallel.script import Function, Script, block_of, function_of, statement_of
from npuport.rules.parallel.steps import Step
from npuport.rules.parallel.wrapping import is_main_test
from npuport.source.module import ancestors, parent

_WRITES = ("torch.save", "shutil.", "os.remove", "os.rename", "os.replace", "os.makedirs", "os.mkdir", "builtins.print")
_TEXT_CALLS = {
    "json.dump",
    "json.dumps",
    "yaml.dump",
    "pickle.dump",
    "builtins.print",
    "builtins.str",
    "torch.save",
    "csv.writer",
}
_OTHER_WRITERS = ("SummaryWriter", "wandb.init", "savefig", "to_csv")


def saving_steps(entry: Entry, dist: str, script: Script) -> Iterator[Step]:
    """Each ``torch.save`` on rank 0, with the statements about the same file after it; then all wait."""
    done: set[ast.stmt] = set()
    waiting: dict[Edit, None] = {}
    for call in script.calls:
        statement = statement_of(call)
        writes_text = isinstance(statement, ast.With) and _only_writes(statement, script)
        saves = script.name_of_call(call) == "torch.save" or _saves_in_other_file(call, script)
        if statement in done or not (writes_text or saves):
            continue
        line = f"line {statement.lineno}"
        words = f"{line}: if {dist}.get_rank() == 0: before what writes a file, and {dist}.barrier() after it"
        if not (writes_text or (isinstance(statement, ast.Expr) and statement.value is call)):
            yield Step(words, unclear=f"{line} saves inside a larger statement")
            continue
        run = _about_files(statement, script)
        done.update(run)
        edits = _guarded(run, f"if {dist}.get_rank() == 0:", script)
        places = _common_places(run[-1], entry, script)
        barriers = [script.insert_after(place, [f"{dist}.barrier()"]) for place in places]
        if edits is None or None in barriers:
            yield Step(words, unclear=f"{line} shares its line with another statement")
            continue
        yield Step(words, (*edits, *(edit for edit in barriers if edit is not None and edit not in waiting)))
        waiting.update(dict.fromkeys(edit for edit in barriers if edit is not None))


def _saves_in_other_file(call: ast.Call, script: Script) -> bool:
    """Whether a call runs a function of another file of the project that saves, and does not train."""
    found = script.context.definition_of(call.func)
    if found is None or found.module is script.module or not isinstance(found.node, Function):
        return False
    text = found.module.segment(found.node)
    return "torch.save(" in text and "backward" not in text


def _about_files(save: ast.stmt, script: Script) -> list[ast.stmt]:
    """A save and the statements right before and after it that deal with files only."""
    block = block_of(save, script)
    run = [save]
    for statement in reversed(block[: block.index(save)]):
        if not _deals_with_files(statement, script) or _prints(statement, script):
            break
        run.insert(0, statement)
    for statement in block[block.index(save) + 1 :]:
        if not _deals_with_files(statement, script):
            break
        run.append(statement)
    return run


def _deals_with_files(statement: ast.stmt, script: Script) -> bool:
    if isinstance(statement, ast.With):
        return _only_writes(statement, script)
    if isinstance(statement, ast.If):
        return all(_deals_with_files(one, script) for one in (*statement.body, *statement.orelse))
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and script.name_of_call(call).startswith(_WRITES)


def _only_writes(statement: ast.With, script: Script) -> bool:
    """``with open(path, "w") as file:`` around writing only: no model runs there, which all must join."""
    opened = statement.items[0].context_expr
    handle = statement.items[0].optional_vars
    if len(statement.items) != 1 or not isinstance(opened, ast.Call) or not isinstance(handle, ast.Name):
        return False
    if not _opens_to_write(opened, script):
        return False
    inside = [node for one in statement.body for node in ast.walk(one)]
    made = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return all(_is_text_call(node, {handle.id, *made}, script) for node in inside if isinstance(node, ast.Call))


def _opens_to_write(call: ast.Call, script: Script) -> bool:
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    known = [script.context.constants_of(mode) or frozenset() for mode in modes]
    return script.name_of_call(call) == "builtins.open" and any(
        isinstance(mode, str) and mode[:1] in ("w", "a", "x") for values in known for mode in values
    )


def _is_text_call(call: ast.Call, handles: set[str], script: Script) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id in handles:
        return True
    return script.name_of_call(call) in _TEXT_CALLS or (
        isinstance(owner, ast.Constant) and isinstance(owner.value, str)
    )


def _prints(statement: ast.stmt, script: Script) -> bool:
    return isinstance(statement, ast.Expr) and script.text(statement).startswith("print(")


def _guarded(run: list[ast.stmt], condition: str, script: Script) -> list[Edit] | None:
    """``condition`` before the statements, which move in by one step; lines inside strings stay."""
    head = script.insert_before(run[0], [condition])
    step = "\t" if "\t" in (script.indent_of(run[0]) or "") else "    "
    if head is None or any(script.insert_after(one, []) is None for one in run):
        return None
    inside = {line for one in run for line in _string_lines(one)}
    first, last = run[0].lineno, run[-1].end_lineno or run[-1].lineno
    starts, text = script.module.lines.starts, script.module.text
    lines = [line for line in range(first, last + 1) if line not in inside]
    filled = [line for line in lines if text[starts[line - 1] :].partition("\n")[0].strip()]
    return [head, *(Edit(starts[line - 1], starts[line - 1], step) for line in filled)]


def _string_lines(statement: ast.stmt) -> set[int]:
    texts = [node for node in ast.walk(statement) if isinstance(node, ast.Constant | ast.JoinedStr)]
    return {line for node in texts for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)}


def _common_places(statement: ast.stmt, entry: Entry, script: Script, depth: int = 3) -> list[ast.stmt]:
    """The statements after which all processes come by: outside the conditions that may differ between them."""
    place = statement
    for around in ancestors(statement):
        if isinstance(around, Function | ast.For | ast.While) or (
            isinstance(around, ast.If) and is_main_test(around.test)
        ):
            break
        if isinstance(around, ast.stmt):
            place = around
    function = function_of(place)
    in_loop = isinstance(parent(place), ast.For | ast.While)
    if in_loop or function is None or function is entry.function or depth == 0:
        return [place]
    sites = [statement_of(site) for site in script.call_sites(function)]
    return [found for site in sites for found in _common_places(site, entry, script, depth - 1)] or [place]


def folder_steps(script: Script) -> Iterator[Step]:
    """``os.mkdir`` where another process may have made the folder a moment before."""
    for call in script.calls:
        name, attribute = script.name_of_call(call), call.func
        makes = name in ("os.mkdir", "os.makedirs")
        if not makes or not isinstance(attribute, ast.Attribute) or any(k.arg == "exist_ok" for k in call.keywords):
            continue
        end, name_end = script.module.lines.span(call)[1] - 1, script.module.lines.span(attribute)[1]
        edits = [Edit(end, end, ", exist_ok=True")] if script.module.text[:end].rstrip()[-1] != "," else []
        if name == "os.mkdir":
            edits.append(Edit(name_end - len("mkdir"), name_end, "makedirs"))
        yield Step(f"line {call.lineno}: os.makedirs(…, exist_ok=True)", tuple(edits) if len(call.args) == 1 else ())


def other_writers(script: Script) -> list[int]:
    """The lines that write other files, such as logs, which npuport leaves to the user."""
    opened = {
        call.lineno
        for call in script.calls
        if _opens_to_write(call, script)
        and not (isinstance(statement := statement_of(call), ast.With) and _only_writes(statement, script))
    }
    return sorted(opened | {call.lineno for call in script.calls if script.text(call.func).endswith(_OTHER_WRITERS)})
