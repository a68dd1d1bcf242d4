"""The scan finds every CUDA-world word in any kind of file, and asks a finding for each."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from npuport.conversion import residue
from npuport.conversion.residue import occurrences, unexplained
from npuport.findings import Finding, Location, Severity
from npuport.source.files import FileKind, SourceFile


def text(content: str, kind: FileKind = FileKind.TEXT) -> SourceFile:
    return SourceFile("f", kind, content)


def at(line: int, end: int | None = None, cell: int | None = None, name: str = "a-word") -> Finding:
    return Finding("NP101", name, Severity.INFO, Location("f", line, 1, end or line, 1, cell), "m")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x.cuda()", ["x.cuda"]),
        ("torch.cuda.amp", ["torch.cuda.amp"]),
        ("useCUDAGraph is_cuda cudaMalloc", ["useCUDAGraph", "is_cuda", "cudaMalloc"]),
        ("export NCCL_DEBUG=INFO CUDA_VISIBLE_DEVICES=0", ["NCCL_DEBUG", "CUDA_VISIBLE_DEVICES"]),
        ("FROM nvidia/cuda:12.1", ["nvidia", "cuda"]),
        ("nvidia-smi; nvcc -V", ["nvidia-smi", "nvcc"]),
        ("cupy-cuda12x>=1", ["cupy-cuda12x"]),
        ("import pynvml", ["pynvml"]),
        ("torch.backends.cudnn.benchmark", ["torch.backends.cudnn.benchmark"]),
        ("nsys profile", ["nsys"]),
        ("cublasLt cuFFT CuSparse", ["cublasLt", "cuFFT", "CuSparse"]),
        ("İİİ x.cuda İ", ["x.cuda"]),
        ("barracuda insight unsysted", []),
        ("npu hccl ascend", []),
        ("", []),
    ],
)
def test_words(content: str, words: list[str]) -> None:
    assert [one.word for one in occurrences(text(content))] == words


def test_places_count_from_one() -> None:
    (word,) = occurrences(text("a\r\n  b = torch.cuda\r\n"))
    assert (word.line, word.column, str(word)) == (2, 7, "f:2:7")


def test_a_finding_covers_its_lines() -> None:
    source = text("cuda\nx\ncuda\ncuda\n")
    assert [word.line for word in unexplained(source, [at(1)])] == [3, 4]
    assert unexplained(source, [at(1), at(2, end=4)]) == []
    assert len(unexplained(source, [])) == 3


def test_findings_of_other_files_explain_nothing() -> None:
    other = Finding("NP101", "a-word", Severity.INFO, Location("other", 1, 1, 1, 1), "m")
    assert len(unexplained(text("cuda\n"), [other])) == 1


def test_a_suppression_is_an_explanation() -> None:
    assert unexplained(text("cuda  # npuport: ignore[NP101] by choice\n"), []) == []


def test_a_file_that_does_not_parse_is_explained_as_a_whole() -> None:
    assert unexplained(text("print 'cuda'\n\ncuda\n"), [at(1, name="unparsable-python")]) == []


def test_a_notebook_is_read_by_cells_and_without_its_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": "on CUDA\n"},
        {"cell_type": "code", "source": ["a\n", "cuda"], "outputs": [{"text": "cuda"}]},
    ]
    source = text(json.dumps({"cells": cells}), FileKind.NOTEBOOK)
    assert [(word.cell, word.line) for word in unexplained(source, [])] == [(0, 1), (1, 2)]
    assert [(word.cell, word.line) for word in unexplained(source, [at(2, cell=1)])] == [(0, 1)]
    assert unexplained(source, [at(1, cell=0), at(2, cell=1)]) == []


def test_findings_by_line_of_the_json_explain_a_notebook_too() -> None:
    source = text(json.dumps({"cells": [{"cell_type": "code", "source": "cuda"}]}, indent=0), FileKind.NOTEBOOK)
    line = source.text[: source.text.index("cuda")].count("\n") + 1
    assert unexplained(source, [at(line)]) == []
    assert len(unexplained(source, [at(1)])) == 1


def test_the_scan_is_independent_of_the_rules() -> None:
    tree = ast.parse(Path(residue.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(module and module.startswith("npuport.rules") for module in modules)


def test_long_lines_take_time_in_proportion() -> None:
    # A notebook keeps an image on one line; a scan that starts over at each character would never end.
    line = "cuda" + "A" * 3_000_000 + "cuda"
    (word,) = occurrences(text(line))
    assert (word.column, len(word.word)) == (1, len(line))
    assert len(list(occurrences(text("x cuda " * 100_000)))) == 100_000
