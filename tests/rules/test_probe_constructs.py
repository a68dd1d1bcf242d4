"""Whole constructs, as people write them: the result or the report of each, and rewrites that would break a program.

The harmful ones were all seen in ports made by spelling alone: a star lost, an argument moved, an enumeration with two
equal members, an expression evaluated twice.
"""

from __future__ import annotations

import ast
import codecs
import textwrap
from pathlib import Path

import pytest

from npuport.conversion.residue import occurrences
from npuport.conversion.rounds import Conversion, convert_files
from npuport.findings import Finding
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile, decode, read_tree
from npuport.source.project import Project

PROBE = Path(__file__).parents[3] / "shared" / "data" / "cases" / "probe_constructs"


def source(text: str, path: str = "case.py", kind: FileKind = FileKind.PYTHON) -> SourceFile:
    return SourceFile(path, kind, textwrap.dedent(text).lstrip("\n"))


def convert(*files: SourceFile, unsafe: bool = False) -> Conversion:
    done = convert_files(files, Settings(), unsafe, jobs=1)
    assert not done.failures
    return done


def converted(text: str, unsafe: bool = False) -> str:
    return convert(source(text), unsafe=unsafe).files[0].text


def findings(text: str) -> list[Finding]:
    file = source(text)
    return check_file(file, Project([file]), Settings())


def codes(text: str) -> set[str]:
    return {finding.code for finding in findings(text)}


def assert_untouched(text: str) -> None:
    for unsafe in (False, True):
        assert converted(text, unsafe) == source(text).text


# Each pair: a line, and what it becomes below `import torch, os, argparse, torch.nn as nn, torch.distributed as dist`.
HEADER = "import argparse\nimport os\nimport torch\nimport torch.distributed as dist\nimport torch.nn as nn\n"
CONVERTED = [
    ("d = torch.device('cuda')", "d = torch.device('npu')"),
    ('d = torch.device(f"cuda:{os.getpid()}")', 'd = torch.device(f"npu:{os.getpid()}")'),
    ("d = torch.device('cuda:' + str(1))", "d = torch.device('npu:' + str(1))"),
    ("d = torch.device('cuda:%d' % 1)", "d = torch.device('npu:%d' % 1)"),
    ("d = torch.device('cuda:{}'.format(1))", "d = torch.device('npu:{}'.format(1))"),
    ("d = torch.device(r'cuda')", "d = torch.device(r'npu')"),
    ("d = torch.device('cu' 'da')", 'd = torch.device("npu")'),
    ('d = torch.device("""cuda""")', 'd = torch.device("""npu""")'),
    (
        "d = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        "d = torch.device('npu' if torch.npu.is_available() else 'cpu')",
    ),
    ("x = nn.Linear(1, 1).to_empty(device='cuda')", "x = nn.Linear(1, 1).to_empty(device='npu')"),
    ("x = torch.zeros(1).cuda(device=0, non_blocking=True)", "x = torch.zeros(1).npu(device=0, non_blocking=True)"),
    ("h = getattr(torch, 'cuda')", "h = getattr(torch, 'npu')"),
    ("torch.load('a.pt', map_location='cuda:0')", "torch.load('a.pt', map_location='npu:0')"),
    ("torch.load('a', map_location=lambda s, l: s.cuda(0))", "torch.load('a', map_location=lambda s, l: s.npu(0))"),
    ("torch.set_default_device('cuda')", "torch.set_default_device('npu')"),
    ("g = torch.Generator(device='cuda')", "g = torch.Generator(device='npu')"),
    ("dist.init_process_group(backend='cpu:gloo,cuda:nccl')", "dist.init_process_group(backend='cpu:gloo,npu:hccl')"),
    ("same = dist.get_backend() == dist.Backend.NCCL", "same = dist.get_backend() == dist.Backend.HCCL"),
    ("ready = dist.is_nccl_available()", "ready = dist.is_hccl_available()"),
    ("torch.backends.cudnn.allow_tf32 = True", "torch.npu.conv.allow_hf32 = True"),
    ("os.environ['CUDA_LAUNCH_BLOCKING'] = '1'", "os.environ['ASCEND_LAUNCH_BLOCKING'] = '1'"),
    ("os.system('CUDA_VISIBLE_DEVICES=0 python a.py')", "os.system('ASCEND_RT_VISIBLE_DEVICES=0 python a.py')"),
    ("torch.cuda.synchronize()", "torch.npu.synchronize()"),
    ("fn = torch.cuda.empty_cache", "fn = torch.npu.empty_cache"),
    ("loader = torch.utils.data.DataLoader([], pin_memory_device='cuda')",
     "loader = torch.utils.data.DataLoader([], pin_memory_device='npu')"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "wanted"), CONVERTED, ids=[line for line, _ in CONVERTED])
def test_construct_is_converted(line: str, wanted: str) -> None:
    assert converted(f"{HEADER}{line}\n") == f"{HEADER}{wanted}\n"


REPORTED = [
    ("torch.backends.cudnn.version()", "NP402"),
    ("torch.version.cuda.split('.')", "NP503"),
    ("model = nn.DataParallel(nn.Linear(1, 1))", "NP303"),
    ("options = dist.ProcessGroupNCCL.Options()", "NP302"),
    ("os.environ['NCCL_DEBUG'] = 'INFO'", "NP501"),
    ("os.environ['CUDA_VISIBLE_DEVICES'] = ','.join(os.sys.argv)", "NP501"),
    ("import subprocess; subprocess.run('nvidia-smi')", "NP502"),
    ("from torch.utils.cpp_extension import load; load(name='x', sources=['a.cu'])", "NP703"),
    ("import flash_attn", "NP701"),
    ("from apex import amp", "NP221"),
    ("x = torch.zeros(1).cuda", "NP902"),
]


@pytest.mark.parametrize(("line", "code"), REPORTED, ids=[line for line, _ in REPORTED])
def test_construct_is_reported_and_left(line: str, code: str) -> None:
    text = f"{HEADER}{line}\n"
    assert code in codes(text)
    assert converted(text) == text


LEFT = [
    "p = argparse.ArgumentParser(); p.add_argument('--no-cuda', action='store_true', help='disables CUDA')",
    "message = 'cuda:0 is the device; torch.cuda.synchronize is needed'",
    "image = 'nvidia/cuda:11.8-devel'",
    "table = {'cuda': 1}",
    "b = b'cuda'",
    "f = lambda torch: torch.cuda.current_device()",
]


@pytest.mark.parametrize("line", LEFT)
def test_construct_is_left_alone(line: str) -> None:
    assert_untouched(f"{HEADER}{line}\n")


# -- rewrites that would break a program -----------------------------------------------------------------------------


def test_a_star_is_never_lost() -> None:
    """``x.to(*args)`` keeps its star, whatever the arguments are."""
    assert_untouched("""
        import torch

        class Boxes:
            def to(self, *args, **kwargs):
                return Boxes(self.tensor.to(*args, **kwargs))
    """)


def test_keyword_only_arguments_stay_keywords() -> None:
    assert_untouched("""
        import torch

        def empty(module, device):
            return module.to_empty(device=device), module.to(non_blocking=True, device=device)
    """)


def test_members_of_an_enumeration_stay_distinct() -> None:
    text = """
        import enum

        @enum.unique
        class Device(str, enum.Enum):
            CPU = "cpu"
            CUDA = "cuda"
            NPU = "npu"
    """
    for unsafe in (False, True):
        namespace: dict[str, object] = {}
        exec(converted(text, unsafe), namespace)  # @unique raises for two equal members
    assert_untouched(text)


def test_members_are_not_renamed() -> None:
    assert_untouched("""
        from devices import DeviceType

        def kernel(kind):
            if kind in (DeviceType.CUDA, DeviceType.NPU):
                return 1
            return 2 if kind is DeviceType.CUDA else 3
    """)


def test_nvidia_checks_do_not_become_true_on_an_npu() -> None:
    text = """
        import torch

        def platform(get_platform):
            is_nvidia = get_platform() == "cuda"
            return is_nvidia
    """
    assert converted(text) == source(text).text
    assert "NP102" in codes(text)


def test_the_cuda_branch_of_a_project_for_both_stays() -> None:
    text = """
        import torch

        def clear(is_npu, is_cuda, x):
            if is_npu():
                torch.npu.empty_cache()
                device = "npu"
            elif is_cuda():
                torch.cuda.empty_cache()
                device = "cuda"
            else:
                device = "cpu"
            return x.to(device)

        def runs_on(kinds=("cuda", "npu")):
            return kinds
    """
    assert converted(text) == source(text).text
    assert all(finding.severity.value != "error" for finding in findings(text))


def test_modules_that_do_not_exist_are_not_imported() -> None:
    text = """
        import torch.cuda.nccl as nccl
        import torch

        def bf16():
            return torch.version.cuda and nccl.version() >= (2, 10)
    """
    after = converted(text)
    assert "torch.npu.nccl" not in after
    assert "NP503" in codes(text)
    assert any(finding.location.line == 1 for finding in findings(text))


def test_a_capability_is_not_taken_apart_on_an_npu_in_silence() -> None:
    text = """
        import torch

        def capability(k):
            return ".".join(str(part) for part in torch.cuda.get_device_capability(k))
    """
    assert "torch.npu.get_device_capability" not in converted(text)
    assert "NP209" in codes(text)


def test_attributes_of_other_libraries_are_not_renamed() -> None:
    assert_untouched("""
        from caffe2.proto import caffe2_pb2

        def place(core, cfg):
            cfg.MODEL.CUDA = True
            return core.DeviceOption(caffe2_pb2.CUDA, 0)
    """)


def test_running_out_of_memory_is_still_recognised() -> None:
    after = converted("""
        def is_oom(error):
            return isinstance(error, RuntimeError) and "CUDA out of memory. " in str(error)
    """)
    namespace: dict[str, object] = {}
    exec(after, namespace)
    is_oom = namespace["is_oom"]
    assert callable(is_oom)
    assert is_oom(RuntimeError("NPU out of memory. Tried to allocate 2.00 GiB"))
    assert not is_oom(RuntimeError("NPU function error"))


def test_docstrings_and_messages_stay_true() -> None:
    assert_untouched('''
        import torch

        def check(logger):
            """Calls nothing of torch.cuda; torch.cuda operations would fail on 'cuda' devices."""
            logger.warning("torch.cuda is not used here, nor is cuda:0")
            raise RuntimeError("CUDA out of memory. ")
    ''')


def test_expressions_are_evaluated_once() -> None:
    text = """
        import torch
        import torch.distributed as dist

        def move(x, batches):
            return x.to(dist.get_rank()), x.to(next(batches)), x.to(getattr(x, "other").device)
    """
    assert_untouched(text)


def test_torch_npu_is_imported_only_where_it_is_needed() -> None:
    for text in ("import torch\n\nx = torch.zeros(3)\n", 'import torch\n\nx = torch.zeros(3, device="cuda")\n'):
        assert "import torch_npu" not in converted(text)


def test_imports_under_type_checking_get_no_company() -> None:
    text = """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import torch

        def count():
            import torch
            return torch.cuda.device_count()
    """
    assert converted(text) == source(text).text.replace("torch.cuda.device_count", "torch.npu.device_count")


# -- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        "# -*- coding: latin-1 -*-\nimport torch\nname = 'é'\nx = torch.zeros(1).cuda()\n".encode("latin-1"),
        codecs.BOM_UTF8 + "import torch\nname = 'é'\nx = torch.zeros(1).cuda()\n".encode(),
        b"import torch\r\nx = torch.zeros(1).cuda()\r\nif x is not None:\r\n    pass\r\n",
        b"import torch\nclass A:\n\tdef f(self):\n\t\treturn torch.zeros(1).cuda()\n",
        b"import torch\n\x0c\nx = torch.zeros(1).cuda()  \n\n\n",
        b"import torch\nx = torch.zeros(1).cuda()",
    ],
    ids=["latin-1", "byte order mark", "CRLF", "tabs", "form feed and trailing blanks", "no final line end"],
)
def test_bytes_around_an_edit_survive(data: bytes) -> None:
    file = decode("case.py", data, FileKind.PYTHON)
    (after,) = convert(file).files
    assert after.encoded() == data.replace(b".cuda()", b".npu()")


# -- a collection of constructs, where there is one --------------------------------------------------------------------


@pytest.mark.skipif(not PROBE.is_dir(), reason="the collection of constructs is not here")
def test_every_line_of_the_collection_is_edited_or_named() -> None:
    files = [file for file in read_tree(PROBE).files if not file.path.endswith("p15_py2.py")]
    settings = Settings(keep_lines=True)
    done = convert_files(files, settings, jobs=1)
    assert not done.failures
    assert not done.unexplained
    project = Project(files)
    for before, after in zip(files, done.files, strict=True):
        old, new = before.text.splitlines(), after.text.splitlines()
        assert len(old) == len(new), f"{before.path}: the number of lines changed"
        found = check_file(before, project, settings)
        if {finding.code for finding in found} == {"NP900"}:  # its syntax is newer than this Python
            assert after.text == before.text
            continue
        named = {line for finding in found for line in range(finding.location.line, finding.location.end_line + 1)}
        changed = {number for number, pair in enumerate(zip(old, new, strict=True), 1) if pair[0] != pair[1]}
        silent = {word.line for word in occurrences(before) if word.cell is None} - named - changed
        assert not silent, f"{before.path}: nothing is said of lines {sorted(silent)}"
        if before.kind is FileKind.PYTHON:
            ast.parse(after.text, before.path)


@pytest.mark.skipif(not PROBE.is_dir(), reason="the collection of constructs is not here")
def test_a_file_of_python_2_is_named_and_left() -> None:
    (file,) = [file for file in read_tree(PROBE).files if file.path.endswith("p15_py2.py")]
    (after,) = convert(file).files
    assert after.text == file.text
    assert [finding.code for finding in check_file(file, Project([file]), Settings())] == ["NP900"]
