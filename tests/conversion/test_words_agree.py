"""The rules' catch-all and the residue check have lists of their own: what the check finds, the catch-all must say."""

from __future__ import annotations

import pytest

from npuport.conversion.residue import occurrences
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project

WORDS = [
    "cuda",
    "CUDA",
    "Cuda",
    "is_cuda",
    "cudaMalloc",
    "pycuda",
    "nccl",
    "NCCL_DEBUG",
    "cudnn",
    "cuBLAS",
    "cufft",
    "curand",
    "cusolver",
    "cusparse",
    "cutlass",
    "cupti",
    "nvidia",
    "NVIDIA-SMI",
    "nvtx",
    "nvcc",
    "nvrtc",
    "pynvml",
    "NVLink",
    "nvjpeg",
    "nvshmem",
    "cupy",
    "TensorRT",
    "nsys",
    "nsight",
]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (FileKind.PYTHON, "x = 1  # {}\n"),
        (FileKind.PYTHON, "x = '{}'\n"),
        (FileKind.SHELL, "echo {}\n"),
        (FileKind.YAML, "{}: 1\n"),
        (FileKind.TEXT, "about {}\n"),
    ],
)
def test_what_the_residue_check_finds_has_a_finding(word: str, kind: FileKind, text: str) -> None:
    source = SourceFile("file", kind, text.format(word))
    if list(occurrences(source)):
        assert check_file(source, Project([source]), Settings())


def test_the_words_are_looked_for() -> None:
    missed = [word for word in WORDS if not list(occurrences(SourceFile("f", FileKind.TEXT, f"about {word}\n")))]
    assert missed == []
