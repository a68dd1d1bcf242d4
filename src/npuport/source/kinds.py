"""What kind of file a path is, by its name and, for names that say nothing, by its first line."""

from __future__ import annotations

import enum
import re
from pathlib import PurePosixPath


class FileKind(enum.Enum):
    """The languages npuport reads, each in its own way."""

    PYTHON = "python"
    NOTEBOOK = "notebook"
    SHELL = "shell"
    YAML = "yaml"
    JSON = "json"
    TOML = "toml"
    INI = "ini"
    REQUIREMENTS = "requirements"
    DOCKERFILE = "dockerfile"
    CPP = "cpp"
    CUDA = "cuda"
    MAKEFILE = "makefile"
    TEXT = "text"
    BINARY = "binary"


_BY_SUFFIX = {
    suffix: kind
    for kind, suffixes in {
        FileKind.PYTHON: ".py .pyi .pyw",
        FileKind.NOTEBOOK: ".ipynb",
        FileKind.SHELL: ".sh .bash .zsh .ksh .sbatch .slurm .pbs .env",
        FileKind.YAML: ".yaml .yml",
        FileKind.JSON: ".json",
        FileKind.TOML: ".toml",
        FileKind.INI: ".ini .cfg",
        FileKind.DOCKERFILE: ".dockerfile .containerfile",
        FileKind.CPP: ".c .cc .cpp .cxx .h .hh .hpp .hxx",
        FileKind.CUDA: ".cu .cuh",
        FileKind.MAKEFILE: ".mk .make",
        FileKind.TEXT: ".txt .md .rst .csv .tsv .jsonl .html .xml .cmake .in .pyx .pxd .conf .j2 .template",
        FileKind.BINARY: (
            ".7z .a .arrow .avi .bin .bmp .bz2 .ckpt .class .dll .dylib .egg .eot .exe .flac .gif .gz .h5 "
            ".hdf5 .ico .jar .jpeg .jpg .lmdb .mdb .mkv .model .mov .mp3 .mp4 .npy .npz .o .obj .onnx .om "
            ".parquet .pdf .pickle .pkl .png .pt .pth .pyc .pyd .pyo .safetensors .so .tar .tflite .tgz .tif "
            ".tiff .tfrecord .ttf .wav .webm .webp .whl .woff .woff2 .xls .xlsx .xz .zip .zst"
        ),
    }.items()
    for suffix in suffixes.split()
}

_BY_NAME = {
    "dockerfile": FileKind.DOCKERFILE,
    "containerfile": FileKind.DOCKERFILE,
    "makefile": FileKind.MAKEFILE,
    "gnumakefile": FileKind.MAKEFILE,
    "pipfile": FileKind.TOML,
    "pipfile.lock": FileKind.JSON,
    ".env": FileKind.SHELL,
    ".envrc": FileKind.SHELL,
    ".bashrc": FileKind.SHELL,
}

_REQUIREMENTS = re.compile(r"([\w.-]*[-_.])?(requirements?|constraints?)([-_.][\w.-]*)?\.(txt|in)", re.IGNORECASE)
_SHEBANG_PYTHON = re.compile(rb"#!.*\bpython[\d.]*\b")
_SHEBANG_SHELL = re.compile(rb"#!.*\b(ba|da|k|z)?sh\b")


def kind_by_name(path: str) -> FileKind | None:
    """The kind of a relative POSIX path; None when the name does not tell."""
    pure = PurePosixPath(path)
    name = pure.name.lower()
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    if _REQUIREMENTS.fullmatch(name) or (pure.suffix == ".txt" and pure.parent.name == "requirements"):
        return FileKind.REQUIREMENTS
    if name.startswith(("dockerfile.", "containerfile.")):
        return FileKind.DOCKERFILE
    return _BY_SUFFIX.get(pure.suffix.lower())


def kind_by_content(head: bytes) -> FileKind:
    """The kind of a file whose name does not tell, from its first bytes."""
    if b"\0" in head:
        return FileKind.BINARY
    first_line = head.partition(b"\n")[0]
    if _SHEBANG_PYTHON.match(first_line):
        return FileKind.PYTHON
    if _SHEBANG_SHELL.match(first_line):
        return FileKind.SHELL
    return FileKind.TEXT
