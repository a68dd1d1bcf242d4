"""What names and constants mean. Each case marks with ``<<…>>`` the expression that is asked about."""

from __future__ import annotations

import ast
import gc
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuport.source.files import FileKind, SourceFile
from npuport.source.module import Module
from npuport.source.project import Project
from npuport.source.resolver import HOLE
from npuport.source.text import LineIndex


def ask(code: str, others: dict[str, str] | None = None) -> tuple[str | None, frozenset[object] | None]:
    """The name and the constants of the marked expression in main.py; ``others`` are the texts of more files."""
    start = code.index("<<")
    text = code.replace("<<", "", 1).replace(">>", "", 1)
    end = code.index(">>") - 2
    files = {**(others or {}), "main.py": text}
    project = Project(SourceFile(path, FileKind.PYTHON, body) for path, body in files.items())
    module = project.module("main.py")
    assert isinstance(module, Module)
    nodes = module.nodes(range(1, text.count("\n") + 2))
    node = next(node for node in nodes if isinstance(node, ast.expr) and module.lines.span(node) == (start, end))
    return project.resolver.name(node, module.scope), project.resolver.constants(node, module.scope)


NAMES = {
    "plain import": ("import torch\n<<torch.cuda>>.synchronize()", "torch.cuda"),
    "alias": ("import torch as th\n<<th.cuda.synchronize>>()", "torch.cuda.synchronize"),
    "submodule import binds the top": ("import torch.cuda\n<<torch.cuda>>", "torch.cuda"),
    "submodule alias": ("import torch.cuda as tc\n<<tc.Stream>>", "torch.cuda.Stream"),
    "from import": ("from torch import cuda\n<<cuda.amp>>", "torch.cuda.amp"),
    "from import alias": ("from torch.cuda import amp as a\n<<a.autocast>>()", "torch.cuda.amp.autocast"),
    "assigned alias": ("import torch\ncuda = torch.cuda\n<<cuda.Event>>", "torch.cuda.Event"),
    "alias of an alias": ("import torch as th\nmod = th\nc = mod.cuda\n<<c.empty_cache>>", "torch.cuda.empty_cache"),
    "unpacked alias": ("import torch\na, b = torch.cuda, torch.nn\n<<a.Event>>", "torch.cuda.Event"),
    "conditional import": (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n<<torch.cuda>>",
        "torch.cuda",
    ),
    "two meanings": ("try:\n    import cupy as xp\nexcept ImportError:\n    import numpy as xp\n<<xp.zeros>>", None),
    "local import": ("def f():\n    import torch\n    return <<torch.cuda>>", "torch.cuda"),
    "local import elsewhere": ("def f():\n    import torch\ndef g():\n    return <<torch.cuda>>", None),
    "shadowed by a parameter": ("import torch\ndef f(torch):\n    return <<torch.cuda>>", None),
    "shadowed by a lambda": ("import torch\nf = lambda torch: <<torch.cuda>>", None),
    "lambda without shadow": ("import torch\nf = lambda x: <<torch.cuda>>", "torch.cuda"),
    "shadowed by a loop": ("import torch\nfor torch in []:\n    <<torch.cuda>>", None),
    "shadowed by with": ("import torch\nwith open('x') as torch:\n    <<torch.cuda>>", None),
    "shadowed in a comprehension": ("import torch\nx = [<<torch.cuda>> for torch in y]", None),
    "first iterable is outside": ("import torch\nx = [0 for torch in <<torch.cuda>>]", "torch.cuda"),
    "shadowed by except": ("import torch\ntry:\n    pass\nexcept E as torch:\n    <<torch.cuda>>", None),
    "shadowed by match": ("import torch\nmatch x:\n    case {'a': torch}:\n        <<torch.cuda>>", None),
    "class scope is not seen by methods": (
        "import torch\nclass A:\n    torch = None\n    def f(self):\n        return <<torch.cuda>>",
        "torch.cuda",
    ),
    "global in a function": ("def f():\n    global t\n    import torch as t\n<<t.cuda>>", "torch.cuda"),
    "walrus": ("import torch\nif (c := torch.cuda):\n    <<c.Event>>", "torch.cuda.Event"),
    "getattr": ("import torch\nc = getattr(torch, 'cuda')\n<<c.Event>>", "torch.cuda.Event"),
    "getattr with a constant": ("import torch\nN = 'cuda'\nc = getattr(torch, N)\n<<c.Event>>", "torch.cuda.Event"),
    "getattr with an unknown": ("import torch\nc = getattr(torch, n)\n<<c.Event>>", None),
    "import_module": ("import importlib\nt = importlib.import_module('torch')\n<<t.cuda>>", "torch.cuda"),
    "self attribute": (
        "import torch\nclass A:\n    def __init__(self):\n        self.c = torch.cuda\n"
        "    def f(self):\n        <<self.c.Event>>",
        "torch.cuda.Event",
    ),
    "self attribute set twice": (
        "import torch\nclass A:\n    def __init__(self, c):\n        self.c = torch.cuda\n        self.c = c\n"
        "    def f(self):\n        <<self.c.Event>>",
        None,
    ),
    "class attribute": ("import torch\nclass A:\n    c = torch.cuda\n<<A.c.Event>>", "torch.cuda.Event"),
    "cycle": ("a = b\nb = a\n<<a.x>>", None),
    "builtin": ("<<print>>('cuda')", "builtins.print"),
    "unknown": ("<<cfg.CUDA>>", None),
    "either way the same": ("import torch\nc = torch.cuda if x else torch.cuda\n<<c.Event>>", "torch.cuda.Event"),
    "rebound to another": ("import torch\nc = torch.cuda\nc = torch.mps\n<<c.Event>>", None),
}


@pytest.mark.parametrize(("code", "name"), NAMES.values(), ids=NAMES)
def test_name(code: str, name: str | None) -> None:
    assert ask(code)[0] == name


REEXPORTS = {
    "name from a module": ("from compat import th\n<<th.cuda>>", {"compat.py": "import torch as th"}, "torch.cuda"),
    "through the package": (
        "from pkg import th\n<<th.cuda>>",
        {"pkg/__init__.py": "from .inner import th", "pkg/inner.py": "import torch as th"},
        "torch.cuda",
    ),
    "module attribute": ("import compat\n<<compat.th.cuda>>", {"compat.py": "import torch as th"}, "torch.cuda"),
    "submodule attribute": (
        "import pkg.inner\n<<pkg.inner.th.cuda>>",
        {"pkg/__init__.py": "", "pkg/inner.py": "import torch as th"},
        "torch.cuda",
    ),
    "star": ("from compat import *\n<<torch.cuda>>", {"compat.py": "import torch"}, "torch.cuda"),
    "star brings no such name": ("from compat import *\n<<torch.cuda>>", {"compat.py": "x = 1"}, None),
    "import cycle": ("from a import x\n<<x.y>>", {"a.py": "from b import x", "b.py": "from a import x"}, None),
    "project module hides an installed one": ("import cupy\n<<cupy.zeros>>", {"cupy.py": "def zeros(): ..."}, None),
    "src layout": ("from pkg.a import th\n<<th.cuda>>", {"src/pkg/a.py": "import torch as th"}, "torch.cuda"),
    "broken module": ("from compat import th\n<<th.cuda>>", {"compat.py": "import torch as th\nprint 'x'"}, None),
}


@pytest.mark.parametrize(("code", "others", "name"), REEXPORTS.values(), ids=REEXPORTS)
def test_name_through_the_project(code: str, others: dict[str, str], name: str | None) -> None:
    assert ask(code, others)[0] == name


def test_relative_imports_start_at_the_importing_package() -> None:
    files = {"p/q/use.py": "from ..base import th\nth.cuda", "p/base.py": "import torch as th", "base.py": "th = 1"}
    project = Project(SourceFile(path, FileKind.PYTHON, text) for path, text in files.items())
    assert project.locate("..base.th", "p/q/use.py") == ("p/base.py", "th")
    assert project.locate(".base.th", "p/use.py") == ("p/base.py", "th")
    assert project.locate("base.th", "p/q/use.py") == ("p/base.py", "th")
    assert project.locate("torch", "p/q/use.py") is None


CONSTANTS: dict[str, tuple[str, set[object] | None]] = {
    "literal": ("<<'cuda'>>", {"cuda"}),
    "variable": ("D = 'cuda'\n<<D>>", {"cuda"}),
    "two values": ("D = 'cuda' if x else 'cpu'\n<<D>>", {"cuda", "cpu"}),
    "assigned twice": ("D = 'cuda'\nD = 'cpu'\n<<D>>", {"cuda", "cpu"}),
    "one value unknown": ("D = 'cuda'\nD = f()\n<<D>>", None),
    "f-string": ("<<f'cuda:{i}'>>", {f"cuda:{HOLE}"}),
    "f-string of a constant": ("i = 3\n<<f'cuda:{i}'>>", {"cuda:3"}),
    "percent": ("<<'cuda:%d' % i>>", {f"cuda:{HOLE}"}),
    "format": ("<<'cuda:{}'.format(i)>>", {f"cuda:{HOLE}"}),
    "named format": ("<<'cuda:{rank}'.format(rank=i)>>", {f"cuda:{HOLE}"}),
    "plus": ("<<'cuda:' + str(i)>>", {f"cuda:{HOLE}"}),
    "plus a constant": ("i = 1\n<<'cuda:' + str(i)>>", {"cuda:1"}),
    "or": ("D = None or 'cuda'\n<<D>>", {None, "cuda"}),
    "dict entry": ("C = {'device': 'cuda'}\n<<C['device']>>", {"cuda"}),
    "list entry": ("C = ['cpu', 'cuda']\n<<C[1]>>", {"cuda"}),
    "list entry out of range": ("C = ['cpu']\n<<C[1]>>", None),
    "environment": ("import os\nD = os.environ.get('DEVICE', 'cuda')\n<<D>>", {"cuda", HOLE}),
    "argparse": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--my-device', default='cuda')\n"
        "args = p.parse_args()\n<<args.my_device>>",
        {"cuda", HOLE},
    ),
    "argparse dest": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('-d', dest='dev', default='cuda')\n"
        "args = p.parse_args()\n<<args.dev>>",
        {"cuda", HOLE},
    ),
    "argparse in a function": (
        "import argparse\ndef main():\n    p = argparse.ArgumentParser()\n    p.add_argument('--gpu', default=0)\n"
        "    args = p.parse_args()\n    return <<args.gpu>>",
        {0, HOLE},
    ),
    "dataclass": ("class C:\n    device: str = 'cuda'\nc = C()\n<<c.device>>", {"cuda"}),
    "annotated parameter": ("class C:\n    device: str = 'cuda'\ndef f(c: C):\n    return <<c.device>>", {"cuda"}),
    "self": (
        "class A:\n    def __init__(self):\n        self.d = 'cuda'\n    def f(self):\n        return <<self.d>>",
        {"cuda"},
    ),
    "parameter": ("def f(d='cuda'):\n    return <<d>>", None),
    "number": ("i = -1\n<<i>>", {-1}),
}


@pytest.mark.parametrize(("code", "values"), CONSTANTS.values(), ids=CONSTANTS)
def test_constants(code: str, values: set[object] | None) -> None:
    assert ask(code)[1] == values


def test_constant_of_another_module() -> None:
    assert ask("from settings import D\n<<D>>", {"settings.py": "D = 'cuda'"})[1] == {"cuda"}
    assert ask("import settings\n<<settings.D>>", {"settings.py": "D = 'cuda'"})[1] == {"cuda"}
    assert ask("from pkg import D\n<<D>>", {"pkg/__init__.py": "from .s import D", "pkg/s.py": "D = 'cuda:0'"})[1] == {
        "cuda:0"
    }


@given(st.lists(st.sampled_from(["x = 'ä'", "y = 1", "", "s = '漢字'; z = 2", "\tpass", "# é"]), max_size=8), st.data())
def test_offsets_and_positions_are_inverse(lines: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines)
    index = LineIndex(text)
    offset = data.draw(st.integers(0, len(text)))
    line, column = index.position(offset)
    start = index.starts[line - 1]
    assert start + column - 1 == offset
    byte_column = len(text[start:offset].encode())
    assert index.offset(line, byte_column) == offset


@given(st.text("aé_.1 \n", max_size=30), st.sampled_from(["a", "é", "aa", "a_"]))
def test_a_name_is_found_where_it_is_a_whole_word(text: str, name: str) -> None:
    index = LineIndex(text)
    expected = [index.position(match.start()) for match in re.finditer(rf"(?<!\w){name}(?!\w)", text)]
    assert index.places_naming(name) == expected
    assert index.lines_naming(name) == {line for line, _ in expected}
    assert [index.line(number) for number in range(1, len(index.starts) + 1)] == text.split("\n")


@given(st.sampled_from(["\n", "\r\n", "\r"]), st.text("aé漢 ", max_size=6))
def test_a_node_spans_its_own_text(newline: str, pad: str) -> None:
    text = newline.join([f"a = '{pad}'", "if a:", f"    b = ('{pad}', torch.cuda)", ""])
    module = Module("m.py", text)
    found = [node for node in module.nodes({3}) if isinstance(node, ast.Attribute)]
    assert [module.segment(node) for node in found] == ["torch.cuda"]


def test_modules_are_let_go_once_they_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of a class elsewhere must not keep the syntax tree of its module in memory."""

    def trees() -> int:
        return sum(type(one) is ast.Module for one in gc.get_objects())

    texts = {f"m{n}.py": f"class C{n}:\n    x = 1\n    def f(self): self.y = C{n}\n" for n in range(40)}
    texts["main.py"] = "".join(f"from m{n} import C{n}\n" for n in range(40))
    monkeypatch.setattr("npuport.source.project._KEPT", 8 * len(texts["m10.py"]))
    project = Project(texts=texts)
    main = project.take_up("main.py", texts["main.py"])
    assert main is not None
    gc.collect()
    gc.disable()
    try:
        before = trees()
        for number in range(40):
            name = ast.parse(f"C{number}.x", mode="eval").body
            assert project.resolver.constants(name, main.scope) == {1}
        assert trees() - before <= 16
    finally:
        gc.enable()
