"""Notebooks are read and converted cell by cell; outputs, metadata and layout stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuport.conversion.rounds import Conversion, convert_files
from npuport.findings import Edit
from npuport.rules.settings import Settings
from npuport.source.edit import apply
from npuport.source.files import FileKind, SourceFile
from npuport.source.notebook import cells_of

FIRST = [
    "%matplotlib inline\n",
    "!nvidia-smi\n",
    "import torch\n",
    "device = \"cuda\" if torch.cuda.is_available() else 'cpu'\n",
    "text = 'ü\\n\"'; x = torch.ones(1).cuda()",
]
SECOND = "y = x.to(device)\nz = torch.cuda.current_device()\nfiles = !ls cuda\n"


def cell(kind: str, source: object, **more: object) -> dict[str, object]:
    return {"cell_type": kind, "metadata": {"source": "cuda"}, "source": source, **more}


NOTEBOOK: dict[str, Any] = {
    "cells": [
        cell("markdown", ["# Needs CUDA\n", "text"]),
        cell("code", FIRST, outputs=[{"text": ["cuda\n"], "source": ["cuda"]}]),
        cell("code", "%%bash\necho cuda\n", outputs=[]),
        cell("code", "def broken(:\n    cuda", outputs=[]),
        cell("code", SECOND, outputs=[]),
    ],
    "metadata": {"cells": []},
    "nbformat": 4,
}


def convert(text: str, target: str = "npu") -> Conversion:
    return convert_files([SourceFile("a.ipynb", FileKind.NOTEBOOK, text)], Settings(target=target), jobs=1)


def source(notebook: dict[str, Any], index: int) -> str:
    return "".join(notebook["cells"][index]["source"])


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_code_is_converted_and_the_rest_stays(indent: int | None, ascii_only: bool) -> None:
    done = convert(json.dumps(NOTEBOOK, indent=indent, ensure_ascii=ascii_only))
    assert not done.failures
    after = json.loads(done.files[0].text)
    expected = "".join(FIRST).replace('"cuda"', '"npu"').replace("torch.cuda", "torch.npu").replace(".cuda()", ".npu()")
    assert source(after, 1) == expected
    assert source(after, 4) == SECOND.replace("torch.cuda", "torch.npu")
    for before_cell, after_cell in zip(NOTEBOOK["cells"], after["cells"], strict=True):
        assert {**before_cell, "source": ""} == {**after_cell, "source": ""}
    assert [source(after, place) for place in (0, 2, 3)] == [source(NOTEBOOK, place) for place in (0, 2, 3)]


def test_what_is_left_is_named_with_its_cell() -> None:
    done = convert(json.dumps(NOTEBOOK, indent=1))
    assert not done.unexplained
    left = {(one.location.cell, one.location.line) for one in done.left}
    assert left >= {(0, 1), (1, 2), (2, 2), (3, 2), (4, 3)}


def test_a_name_of_one_cell_is_known_in_another() -> None:
    cells = [cell("code", ["from torch.cuda import synchronize as wait\n"]), cell("code", ["wait()\n"])]
    after = json.loads(convert(json.dumps({**NOTEBOOK, "cells": cells})).files[0].text)
    assert source(after, 0) == "from torch.npu import synchronize as wait\n"


def test_target_agnostic_defines_its_constant_after_the_imports() -> None:
    after = json.loads(convert(json.dumps(NOTEBOOK, indent=1), "agnostic").files[0].text)
    lines = source(after, 1).splitlines()
    assert lines[2:6:2] == ["import torch", lines[4]] and lines[4].startswith("DEVICE_TYPE = torch.accelerator")
    assert "x = torch.ones(1).to(DEVICE_TYPE)" in lines[-1]


def test_what_is_no_notebook_is_read_as_text() -> None:
    done = convert('{"cells": 3, "device": "cuda"}')
    assert done.files[0].text == '{"cells": 3, "device": "cuda"}' and done.left and not done.unexplained


@given(st.lists(st.lists(st.text(max_size=12), max_size=4), min_size=1, max_size=3), st.booleans(), st.data())
def test_an_edit_of_a_cell_is_that_edit_of_the_file(
    sources: list[list[str]], ascii_only: bool, data: st.DataObject
) -> None:
    text = json.dumps({"cells": [cell("code", one, outputs=[]) for one in sources]}, ensure_ascii=ascii_only)
    cells = cells_of(text)
    assert cells is not None
    assert [one.text for one in cells] == ["".join(one) for one in sources]
    chosen = data.draw(st.sampled_from(cells))
    start = data.draw(st.integers(0, len(chosen.text)))
    end = data.draw(st.integers(start, len(chosen.text)))
    edit = Edit(start, end, data.draw(st.text(max_size=5)))
    moved = chosen.edit(edit)
    if moved is None:
        return
    after = cells_of(apply(text, [moved]))
    assert after is not None
    assert after[chosen.index].text == apply(chosen.text, [edit])
