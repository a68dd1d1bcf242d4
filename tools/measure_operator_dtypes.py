"""Measure which dtypes each aten operator's own kernel hands to CANN, look up what CANN refuses of them, and write
src/npuport/facts/data/operator_dtypes.json.

    python tools/measure_operator_dtypes.py OUT.json CHECKOUT...      # "-" prints the table

CHECKOUTs are CANN's operator repositories (ops-math, ops-nn, ops-cv, ops-transformer). The arguments are samples of
PyTorch's operator database, traced on the CPU and replayed in each dtype on the npu device, whose CANN only notes what
it is asked for (replayed_operators). An operator refuses a dtype where CANN's document on the function says so, and no
list in the function's source names the dtype. Takes ten minutes.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import aclnn_documents
import recording_cann
import replayed_operators
from aclnn_documents import Function

TABLE = Path(__file__).resolve().parents[1] / "src/npuport/facts/data/operator_dtypes.json"
# What the chips of a family are called in CANN's documents, and a chip whose name makes torch_npu choose its way.
FAMILIES = {
    "A2": ("910b", "Ascend910B3"),
    "A3": ("A3", "Ascend910_9391"),
    "950": ("950", "Ascend950"),
    "310P": ("310p", "Ascend310P3"),
    "910": ("910", "Ascend910A"),
}
WITHOUT_BFLOAT16 = ("910", "310P")  # measured: torch_npu's is_bf16_supported
# Operators that only move or fill memory: a dtype of the same width may do, though no document says so.
MOVES = frozenset(
    [
        "cat", "chunk_cat", "clone", "constant_pad_nd", "copy", "expand", "fill", "flip", "gather", "index",
        "index_put", "index_select", "masked_fill", "masked_select", "repeat", "reshape", "roll", "slice",
        "split", "stack", "take", "where", "zero", "zeros_like", "ones_like", "full_like", "unfold", "tril",
        "triu", "embedding", "scatter", "nonzero", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
        "replication_pad1d", "replication_pad2d", "replication_pad3d", "repeat_interleave", "select_backward",
        "slice_backward", "new_full", "full", "ones", "zeros",
    ]
)  # fmt: skip
# CANN's sources refuse these, torch_npu's own documents (native APIs of 2.13) list them as verified: not certain.
VERIFIED = frozenset([("cumsum", "bool"), ("expm1", "float64"), ("tanh", "float64"), ("_foreach_sqrt", "float64")])
OWN_REFUSAL = re.compile(r"dtype|data type|must be half|only support|not support|not implemented for", re.IGNORECASE)
SOURCE = (
    "what torch_npu hands to CANN, measured on a simulated CANN; which dtypes CANN takes, from the documents and "
    "sources of its operators (ops-math, ops-nn, ops-cv, ops-transformer)"
)


def source_lists(checkouts: list[Path]) -> dict[str, set[str]]:
    """Function -> every dtype that a list in its source file names, whatever the list is for."""
    words = {f"DT_{word}": dtype for word, dtype in aclnn_documents.DTYPES.items()}
    found: dict[str, set[str]] = {}
    for path in itertools.chain.from_iterable(checkout.rglob("aclnn_*.cpp") for checkout in checkouts):
        if {"tests", "examples", "experimental"} & set(path.parts):
            continue
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8", errors="replace"), flags=re.DOTALL)
        named = {
            words[word]
            for braces in re.findall(r"\{[^{}();]*\}", text)
            for word in re.findall(r"\bDT_\w+", braces)
            if word in words
        }
        for name in re.findall(r"\baclnnStatus\s+(aclnn\w+?)GetWorkspaceSize\s*\(", text):
            found[name] = found.get(name, set()) | named
    return found


@dataclass(frozen=True)
class Verdict:
    """What becomes of one call. ``by`` and ``parameter`` name CANN's part in it, ``error`` is torch_npu's refusal."""

    kind: Literal["runs", "stated", "unlisted", "unknown"]
    by: str = ""
    parameter: str = ""
    accepts: tuple[str, ...] = ()
    error: str = ""


def verdict(
    answer: dict[str, Any], functions: dict[str, Function], sources: dict[str, set[str]], product: str
) -> Verdict:
    """Judge one call on a chip that torch_npu gives CANN's aclnn functions."""
    dtype, known = answer["dtype"], True
    for name, kinds in answer["calls"]:
        function = functions.get(name)
        if function is None:
            known = False
            continue
        tensors = [p for p in function.parameters if p.type in ("aclTensor*", "aclTensorList*")]
        for parameter, kind in zip(tensors, kinds, strict=True):
            if kind != dtype:
                continue
            if parameter.accepts is None:
                known = False
                continue
            accepts = tuple(a for a in parameter.accepts if a not in function.without.get(product, set()))
            if dtype not in accepts:
                stated = function.refuses and name in sources and dtype not in sources[name]
                verified = (answer["name"].removeprefix("aten::").partition(".")[0], dtype) in VERIFIED
                return Verdict("stated" if stated and not verified else "unlisted", name, parameter.name, accepts)
    first_line = answer["error"].partition("\n")[0].strip()
    if not answer["calls"] and OWN_REFUSAL.search(first_line):
        return Verdict("stated", error=first_line)
    return Verdict("runs" if known and answer["calls"] and not first_line else "unknown")


def verdict_without_bfloat16(answer: dict[str, Any], functions: dict[str, Function]) -> Verdict:
    """Judge a call on a chip without bfloat16: whatever computes with it is refused; copying it about may work."""
    moves = answer["name"].removeprefix("aten::").partition(".")[0].strip("_") in MOVES
    kind: Literal["unlisted", "stated"] = "unlisted" if moves else "stated"
    for name, kinds in answer["calls"]:
        parameters = functions[name].parameters if name in functions else []
        tensors = [p for p in parameters if p.type in ("aclTensor*", "aclTensorList*")]
        for parameter, dtype in zip(tensors, kinds, strict=False):
            if dtype == "bfloat16":
                return Verdict(kind, name, parameter.name, tuple(a for a in parameter.accepts or () if a != dtype))
    compiled = re.search(r"OPS function error: (\w+), error code", answer["error"])
    return Verdict(kind, compiled[1]) if compiled and not answer["calls"] else Verdict("unknown")


def entries(
    answers: list[dict[str, Any]], judge: Callable[[dict[str, Any]], Verdict]
) -> Iterator[tuple[str, str, list[int], Verdict]]:
    """(operator, dtype, arguments that had it, verdict) wherever all samples were refused in one way."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for answer in answers:
        groups[answer["name"], answer["dtype"]].append(answer)
    for (name, dtype), group in groups.items():
        told = [judge(answer) for answer in group if answer["calls"] or answer["error"]]
        if told and {one.kind for one in told} <= {"stated", "unlisted"}:
            least = [one for one in told if one.kind == "unlisted"] or told
            first = Counter(least).most_common(1)[0][0]  # samples may take different ways
            yield name, dtype, sorted({position for answer in group for position in answer["varies"]}), first


def table(folder: Path, checkouts: list[Path]) -> dict[str, Any]:
    """The whole table."""
    from npuport.sim import cann
    from npuport.sim.requirements import check

    installation = check()
    functions = aclnn_documents.read(checkouts)
    sources = source_lists(checkouts)
    recording_cann.build(folder, functions, cann.operator_names(installation.torch_npu_directory))
    replayed_operators.trace_composed(folder)
    found: dict[str, dict[Any, tuple[list[str], list[str]]]] = defaultdict(dict)

    def note(family: str, answers: list[dict[str, Any]], judge: Callable[[dict[str, Any]], Verdict]) -> None:
        per_entry: dict[tuple[str, Any], list[str]] = defaultdict(list)
        for name, dtype, arguments, told in entries(answers, judge):
            per_entry[name, (tuple(arguments), told)].append(dtype)
        for (name, key), dtypes in per_entry.items():
            found[name].setdefault((key, tuple(dtypes)), (dtypes, []))[1].append(family)

    for family, (product, chip) in FAMILIES.items():

        def judge(answer: dict[str, Any], family: str = family, product: str = product) -> Verdict:
            if answer["dtype"] == "bfloat16" and family in WITHOUT_BFLOAT16:
                return verdict_without_bfloat16(answer, functions)
            return verdict(answer, functions, sources, product)

        note(family, replayed_operators.measured(folder, chip), judge)

    def entry(key: tuple[tuple[int, ...], Verdict], dtypes: list[str], families: list[str]) -> dict[str, Any]:
        arguments, told = key
        fields = {"by": told.by, "parameter": told.parameter, "accepts": list(told.accepts), "error": told.error}
        return {
            "dtypes": dtypes, "families": families, "certainty": told.kind, "arguments": list(arguments),
            **{name: value for name, value in fields.items() if value},
        }  # fmt: skip

    operators = {
        name: [entry(key, dtypes, families) for (key, _), (dtypes, families) in entries_of.items()]
        for name, entries_of in sorted(found.items())
    }
    return {"version": installation.torch_npu, "source": SOURCE, "operators": operators}


def write(found: dict[str, Any]) -> str:
    """One operator a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(entries)}" for name, entries in found["operators"].items()]
    head = "".join(f"{json.dumps(key)}: {json.dumps(found[key])},\n" for key in ("version", "source"))
    return "{\n" + head + '"operators": {\n' + ",\n".join(lines) + "\n}\n}\n"


def main(target: str, checkouts: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = table(Path(folder), checkouts)
    if target == "-":
        print(write(found), end="")
    else:
        Path(target).write_text(write(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(TABLE), [Path(argument) for argument in sys.argv[2:]])
