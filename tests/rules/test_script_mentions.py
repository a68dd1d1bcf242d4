"""Which nodes of a script stand for a name, found by their spelling."""

from __future__ import annotations

import pytest

from npuport.rules.base import Context
from npuport.rules.parallel.names import DATA_PARALLEL
from npuport.rules.parallel.script import Script
from npuport.rules.settings import Settings
from npuport.source.module import Module
from npuport.source.project import Project


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\n\nx = isinstance(m, nn.DataParallel)",
        "from torch.nn import DataParallel as DP\n\nx = isinstance(m, DP)",
        "from torch import nn as layers\nDP = layers.DataParallel\nx = isinstance(m, DP)",
        "from torch import nn\nA, B = nn.DataParallel, 1; C = A\nx = isinstance(m, C)",
        "from torch import nn\nDP = nn.DataParallel if c else None\nx = isinstance(m, DP)",
        'from torch import nn\nDP = getattr(nn, "DataParallel")\nx = isinstance(m, DP)',
        "from torch import nn\nif (DP := nn.DataParallel) and c: pass\nx = isinstance(m, DP)",
        "from torch import nn\nclass C: kind = nn.DataParallel\nx = isinstance(m, C.kind)",
    ],
)
def test_uses_are_found_however_the_file_spells_them(text: str) -> None:
    assert 3 in _lines(text)


def test_what_only_looks_like_it_is_left_out() -> None:
    text = "from mine import DataParallel\nfrom torch import nn\nx = isinstance(m, (DataParallel, m.data_parallel))"
    assert _lines(text) == []


def test_calls_are_those_of_the_name_itself() -> None:
    text = "from torch.nn import DataParallel as DP\nmodel = DP(model)\nother = wrap(DP)\n"
    assert [call.lineno for call in _script(text).calls_of(DATA_PARALLEL)] == [2]


def _lines(text: str) -> list[int]:
    return [node.lineno for node in _script(text).mentions(DATA_PARALLEL)]


def _script(text: str) -> Script:
    module = Module("train.py", text)
    return Script(Context(module, Project(texts={"train.py": text}), Settings()))
