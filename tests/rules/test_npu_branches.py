from __future__ import annotations

import pytest

from npuport.findings import Severity
from npuport.rules.engine import check_file
from npuport.rules.npu_branches import tells_npus_apart
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project


@pytest.mark.parametrize(
    "text",
    [
        "import torch_npu",
        "if is_npu_available(): pass",
        "x = torch.npu.current_device()",
        "device = 'npu:0'",
        "class D(Enum):\n    NPU = 1",
        "find_spec('torch_npu')",
        "# about NPUs\nd = {'npu': 1}",
        "f'npu:{i}'",
    ],
)
def test_code_that_tells_npus_apart(text: str) -> None:
    assert tells_npus_apart(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = input()",
        "# on an NPU this is slow",
        '''"""Runs on GPU, NPU and TPU."""''',
        "print('no npu support yet')",
        "unpunished = 1",
    ],
)
def test_code_that_does_not(text: str) -> None:
    assert not tells_npus_apart(text)


def _severities(text: str) -> set[Severity]:
    source = SourceFile("case.py", FileKind.PYTHON, text)
    return {one.severity for one in check_file(source, Project([source]), Settings()) if one.code == "NP101"}


def test_a_branch_for_cuda_beside_one_for_npus() -> None:
    first = "import torch\nif is_npu():\n    d = torch.device('npu')\nelse:\n    d = torch.device('cuda')\n"
    second = "import torch\nif has_cuda():\n    d = torch.device('cuda')\nelif is_npu():\n    d = torch.device('npu')\n"
    assert _severities(first) == _severities(second) == {Severity.INFO}


def test_a_branch_for_a_launcher_is_none_for_cuda() -> None:
    text = "import torch\nif launched():\n    d = torch.device('cuda')\nelif is_npu():\n    d = torch.device('npu')\n"
    assert Severity.INFO not in _severities(text)
    assert Severity.INFO not in _severities(text.replace("if launched()", "if tpu():\n    d = 1\nelif launched()"))


def _found(path: str, text: str, code: str, *others: str) -> list[Severity]:
    texts = {path: text, **dict.fromkeys(others, "")}
    files = [SourceFile(name, FileKind.PYTHON, content) for name, content in texts.items()]
    return [one.severity for one in check_file(files[0], Project(files), Settings()) if one.code == code]


def test_a_branch_for_another_backend_beside_one_for_hccl() -> None:
    text = (
        "import torch\nimport torch.distributed as dist\n"
        "def device_of(backend):\n"
        "    if backend == 'hccl':\n        return torch.device('npu')\n"
        "    elif backend == dist.Backend.NCCL:\n        return 1\n"
    )
    assert _found("case.py", text, "NP302") == [Severity.INFO]
    assert _found("case.py", text.replace("'hccl'", "'gloo'"), "NP302") == [Severity.WARNING]


def test_what_a_table_by_device_gives_where_npus_have_an_entry() -> None:
    text = (
        "import torch.distributed as dist\n"
        "dist.init_process_group({'npu': 'hccl'}.get(kind, 'nccl' if dist.is_nccl_available() else 'gloo'))\n"
    )
    assert _found("case.py", text, "NP302") == [Severity.INFO]
    assert _found("case.py", text.replace("'npu': 'hccl'", "'xpu': 'ccl', 'npus': 1"), "NP302") != [Severity.INFO]


@pytest.mark.parametrize("code", ["NP501", "NP504"])
def test_variables_in_a_module_that_has_one_for_npus_beside_it(code: str) -> None:
    text = (
        "import os\n\ndef export_envs():\n    return ['NCCL']\n\n"
        "def visible():\n    return os.environ['CUDA_VISIBLE_DEVICES']\n"
    )
    assert _found("cuda_accelerator.py", text, code, "npu_accelerator.py") == [Severity.INFO]
    assert Severity.INFO not in _found("cuda_accelerator.py", text, code, "mps_accelerator.py")
