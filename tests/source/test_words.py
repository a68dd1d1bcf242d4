from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuport.source.module import Module
from npuport.source.outline import may_bind, outline
from npuport.source.words import WordSearch

LIBRARY = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))


@given(st.lists(st.text("abc.é", min_size=1, max_size=3), min_size=1, max_size=5), st.text("abc.é\ud800", max_size=30))
def test_every_place_of_every_word_is_found(words: list[str], text: str) -> None:
    expected = {
        word: starts
        for word in words
        if (starts := [start for start in range(len(text)) if text.startswith(word, start)])
    }
    assert WordSearch(words).places(text) == expected


@pytest.mark.parametrize(
    "code",
    [
        "name = 1",
        "name: int = 1",
        "name, other = 1, 2",
        "(other, name) = 1, 2",
        "[other, *name] = 1, 2",
        "name += 1",
        "import os.path, name",
        "import other as name",
        "from m import name",
        "from m import (other,\n    name\n)",
        "from m import other, \\\n    name",
        "from m import \\\n    name",
        "for name in (): pass",
        "for other, name in (): pass",
        "with m() as name: pass",
        "try: pass\nexcept E as name: pass",
        "if (name := 1): pass",
        "def f():\n    global other, name\n    name = 1",
        "def name(): pass",
        "async def name(): pass",
        "class name: pass",
        "@d\nclass name(A): pass",
        "match x:\n    case name: pass",
        "match x:\n    case [1, name]: pass",
        "match x:\n    case {'k': 1, **name}: pass",
        "match x:\n    case name if y: pass",
        "match x:\n    case A() as name: pass",
        "match x:\n    case A(k=name): pass",
    ],
)
def test_what_binds_a_name_is_seen_in_the_text(code: str) -> None:
    module = Module("m.py", code)
    assert "name" in outline(module.scope).exports
    assert may_bind(code, "name")


def test_uses_of_a_name_bind_nothing() -> None:
    assert not may_bind("x = name(1)\ny = name.attribute\nz = ['name', \"name\"]\nw = name[0]\nrename = 1\n", "name")


def test_no_name_of_the_standard_library_is_missed() -> None:
    missed = []
    for path in LIBRARY:
        module = Module(path.name, path.read_text("utf-8", "replace"))
        missed += [(path.name, name) for name in outline(module.scope).exports if not may_bind(module.text, name)]
    assert len(LIBRARY) > 100
    assert not missed


def test_a_definition_is_found_again_by_its_place() -> None:
    code = "class A:\n if True:\n  def f(self):\n   class B: pass\n @property\n def g(self): pass\n"
    module = Module("m.py", code)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            assert module.definition(node.lineno, node.col_offset)[0] is node
    assert module.definition(4, 3)[1].node.name == "f"  # type: ignore[union-attr]
    with pytest.raises(KeyError):
        module.definition(3, 0)
