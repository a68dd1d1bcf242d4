"""What source does not show is met in the syntax tree. No torch is needed to see how."""

from __future__ import annotations

import ast

import pytest

from npuport.rules.settings import Settings
from npuport.runtime.leftovers import HELPERS, meet
from npuport.source.module import Module
from npuport.source.project import Project


def met(text: str) -> str:
    """The statements after the import of torch, as they run."""
    module = Module("train.py", f"import torch\nimport torch.distributed as dist\n{text}")
    tree, _ = meet(module, Project(texts={"train.py": module.text}), Settings(keep_lines=True))
    compile(tree, "train.py", "exec")
    statements = [line for line in ast.unparse(tree).splitlines() if not line.startswith("import ")]
    return "\n".join(statements).replace(f"{HELPERS}.", "_.")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.to(args.device)", "x.to(_.device(args.device))"),
        ("x.to(device, non_blocking=True)", "x.to(_.device(device), non_blocking=True)"),
        ("torch.zeros(2, device=place)", "torch.zeros(2, device=_.device(place))"),
        ("torch.device(name, 0)", "torch.device(_.device(name), 0)"),
        ("torch.autocast(kind)", "torch.autocast(_.device(kind))"),
        ("torch.load(file, place)", "torch.load(file, _.device(place))"),
        ("torch.load(file, map_location=place)", "torch.load(file, map_location=_.device(place))"),
        ("x.pin_memory('cuda')", "x.pin_memory(_.device('cuda'))"),
        ("dist.init_process_group(args.backend)", "dist.init_process_group(_.backend(args.backend))"),
        ("dist.new_group(ranks, backend=name)", "dist.new_group(ranks, backend=_.backend(name))"),
        ("args.device == 'cuda'", "_.word(args.device) == _.word('cuda')"),
        ("args.device in ('cuda', 'cpu')", "_.word(args.device) in (_.word('cuda'), 'cpu')"),
        ("'cuda' in args.device", "_.holds('cuda', args.device)"),
        ("'cuda' not in args.device", "not _.holds('cuda', args.device)"),
        ("name.startswith('cuda')", "_.starts(name, 'cuda')"),
        ("getattr(torch.cuda, name)()", "getattr(_.cuda, name)()"),
        ("torch.cuda.get_device_capability()", "_.cuda.get_device_capability()"),
        ("torch.version.cuda", "_.cuda.VERSION"),
        ("torch.backends.cudnn.version()", "_.cuda.cudnn.version()"),
        ("torch.backends.cudnn.benchmark = True", "_.cuda.cudnn.benchmark = True"),
        ("x.double()", "_.double(x)"),
        ("x.to(torch.float64)", "_.double(x)"),
        ("x.to(memory_format=torch.channels_last)", "x.to(memory_format=_.memory_format(torch.channels_last))"),
        ("torch.set_default_tensor_type(kind)", "_.set_default_tensor_type(kind)"),
        ("x.to(device).to(dtype)", "x.to(_.device(device)).to(_.device(dtype))"),
    ],
)  # fmt: skip
def test_met(before: str, after: str) -> None:
    assert met(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "x.to('npu')",
        "x.to('cpu')",
        "torch.zeros(2, device='npu:0')",
        "x.device.type == 'npu'",
        "open(path, 'rb')",
        "name == 'adam'",
        "name.startswith('conv')",
        "torch.npu.synchronize()",
        "json.load(file, place)",
    ],
)
def test_left_alone(text: str) -> None:
    assert met(text) == text


def test_branches_for_npus_are_the_authors() -> None:
    text = "if kind == 'cuda':\n    a()\nelif kind == 'npu':\n    b()"
    assert met(text) == text


def test_names_that_were_imported() -> None:
    text = "from torch.cuda import get_device_capability as ask, nvtx\nask()\nnvtx.mark('x')"
    assert met(text).splitlines()[1:] == ["_.cuda.get_device_capability()", "_.cuda.nvtx.mark('x')"]


def test_a_device_that_is_one_already_costs_nothing() -> None:
    assert met("place = torch.device(name)\nx.to(place)").splitlines()[1] == "x.to(place)"


def test_lines_stay() -> None:
    module = Module("m.py", '"""Doc."""\nfrom __future__ import annotations\nimport torch\n\nx.to(place)\n')
    tree, _ = meet(module, Project(texts={"m.py": module.text}), Settings(keep_lines=True))
    assert [statement.lineno for statement in tree.body] == [1, 2, 2, 3, 5]
    assert isinstance(tree.body[1], ast.ImportFrom)


def test_what_needs_nothing_imports_nothing() -> None:
    assert met("x = torch.zeros(2, device='npu')") == "x = torch.zeros(2, device='npu')"
