"""Trees and files are read completely, deterministically, and without losing a byte."""

from __future__ import annotations

import os
import pickle
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuport.source import files
from npuport.source.files import FileKind, InputError, SourceFile, UndecodableError, decode, read_tree
from npuport.source.kinds import kind_by_content, kind_by_name


def write(root: Path, path: str, data: bytes = b"x = 1\n") -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def paths(tree: files.Tree) -> list[str]:
    return [file.path for file in tree.files]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.py", FileKind.PYTHON),
        ("stubs/a.pyi", FileKind.PYTHON),
        ("A.PY", FileKind.PYTHON),
        ("n.ipynb", FileKind.NOTEBOOK),
        ("run.sh", FileKind.SHELL),
        ("job.sbatch", FileKind.SHELL),
        ("c.yaml", FileKind.YAML),
        (".github/workflows/ci.yml", FileKind.YAML),
        ("ds_config.json", FileKind.JSON),
        ("pyproject.toml", FileKind.TOML),
        ("setup.cfg", FileKind.INI),
        ("requirements.txt", FileKind.REQUIREMENTS),
        ("requirements-dev.txt", FileKind.REQUIREMENTS),
        ("gpu_requirements.in", FileKind.REQUIREMENTS),
        ("requirements/base.txt", FileKind.REQUIREMENTS),
        ("constraints.txt", FileKind.REQUIREMENTS),
        ("Dockerfile", FileKind.DOCKERFILE),
        ("docker/Dockerfile.gpu", FileKind.DOCKERFILE),
        ("a.dockerfile", FileKind.DOCKERFILE),
        ("k.cu", FileKind.CUDA),
        ("k.cuh", FileKind.CUDA),
        ("k.cpp", FileKind.CPP),
        ("k.h", FileKind.CPP),
        ("Makefile", FileKind.MAKEFILE),
        ("rules.mk", FileKind.MAKEFILE),
        ("README.md", FileKind.TEXT),
        ("notes.txt", FileKind.TEXT),
        ("w.safetensors", FileKind.BINARY),
        ("nothing", None),
        ("my_requirements_notes.md", FileKind.TEXT),
        (".py", None),  # a hidden file called "py" rather than a Python file
    ],
)
def test_kind_by_name(path: str, kind: FileKind | None) -> None:
    assert kind_by_name(path) is kind


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"#!/usr/bin/env python3\nimport torch\n", FileKind.PYTHON),
        (b"#!/usr/bin/python -u\n", FileKind.PYTHON),
        (b"#!/bin/bash\n", FileKind.SHELL),
        (b"#!/usr/bin/env sh\n", FileKind.SHELL),
        (b"#!/usr/bin/perl\n", FileKind.TEXT),
        (b"echo #!/bin/sh\n", FileKind.TEXT),
        (b"\x7fELF\x00\x00", FileKind.BINARY),
        (b"", FileKind.TEXT),
    ],
)
def test_kind_by_content(head: bytes, kind: FileKind) -> None:
    assert kind_by_content(head) is kind


ROUND_TRIPS = {
    "plain": b"x = 1\n",
    "empty": b"",
    "no newline at the end": b"x = 1",
    "CRLF": b"x = 1\r\ny = 2\r\n",
    "mixed line ends": b"x = 1\r\ny = 2\nz = 3\r",
    "form feed": b"x = 1\n\x0cy = 2\n",
    "UTF-8 with BOM": b"\xef\xbb\xbfx = '\xe6\x98\x87'\n",
    "BOM and cookie": b"\xef\xbb\xbf# -*- coding: utf-8 -*-\nx = 1\n",
    "latin-1 cookie": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
    "gbk cookie": "# coding: gbk\nx = '昇腾'\n".encode("gbk"),
    "cookie in line 2": b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
    "only a BOM": b"\xef\xbb\xbf",
}


@pytest.mark.parametrize("data", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_python_files_survive_byte_for_byte(data: bytes) -> None:
    source = decode("a.py", data, FileKind.PYTHON)
    assert source.encode(source.text) == data
    assert not source.text.startswith("\ufeff")


def test_a_cookie_decides_how_text_is_read_and_written() -> None:
    source = decode("a.py", b"# coding: latin-1\nx = '\xe9'\n", FileKind.PYTHON)
    assert source.text == "# coding: latin-1\nx = 'é'\n"
    assert source.encode(source.text.replace("é", "è")) == b"# coding: latin-1\nx = '\xe8'\n"
    with pytest.raises(UnicodeEncodeError):
        source.encode("昇腾")


@given(st.binary())
def test_files_of_other_kinds_survive_whatever_their_bytes(data: bytes) -> None:
    source = decode("a.txt", data, FileKind.TEXT)
    assert source.encode(source.text) == data


@given(st.binary())
def test_a_python_file_either_survives_or_is_refused(data: bytes) -> None:
    try:
        source = decode("a.py", data, FileKind.PYTHON)
    except UndecodableError:
        return
    assert source.encode(source.text) == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"x = 1\ny = '\xe9'\n", "line 2 is not utf-8"),
        (b"# coding: klingon\nx = 1\n", "unknown encoding"),
        (b"# coding: ascii\n\n\nx = '\xe9'\n", "line 4 is not ascii"),
        (b"# coding: hex\n00\n", "hex is no encoding for source files"),
        (b"# coding: utf-7\nx = 1 # +AGE-\n", "does not survive"),
    ],
)
def test_undecodable_python_says_why(data: bytes, words: str) -> None:
    with pytest.raises(UndecodableError, match=words):
        decode("a.py", data, FileKind.PYTHON)


def test_source_files_can_be_sent_to_other_processes() -> None:
    source = SourceFile("a.py", FileKind.PYTHON, "x", "latin-1", True)
    assert pickle.loads(pickle.dumps(source)) == source


def test_a_tree_in_order_of_paths(tmp_path: Path) -> None:
    for path in ("b.py", "a/z.py", "a.py", "a/b/c.sh", "tool"):
        write(tmp_path, path, b"#!/usr/bin/env python\n")
    tree = read_tree(tmp_path)
    assert paths(tree) == ["a.py", "a/b/c.sh", "a/z.py", "b.py", "tool"]
    assert tree.files[-1].kind is FileKind.PYTHON
    assert tree.directories == ("a", "a/b")
    assert tree.base == tmp_path


def test_a_single_file(tmp_path: Path) -> None:
    file = write(tmp_path, "dir/train.py")
    write(tmp_path, "dir/other.py")
    tree = read_tree(file)
    assert paths(tree) == ["train.py"]
    assert tree.base == tmp_path / "dir"


def test_tools_own_directories_are_neither_read_nor_copied(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    for path in (".git/config.py", "__pycache__/a.py", "venv/lib/b.py", "node_modules/c/d.py", "envs/x/lib/e.py"):
        write(tmp_path, path)
    write(tmp_path, "envs/x/pyvenv.cfg")
    write(tmp_path, "submodule/.git", b"gitdir: ../.git/modules/submodule\n")
    write(tmp_path, "npuport-changes.md")
    write(tmp_path, "npuport-undo-2.patch")
    write(tmp_path, ".github/ci.yml")
    tree = read_tree(tmp_path)
    assert paths(tree) == [".github/ci.yml", "a.py"]
    assert tree.pruned == (
        ".git/", "__pycache__/", "envs/x/", "node_modules/", "npuport-changes.md", "npuport-undo-2.patch",
        "submodule/.git", "venv/",
    )  # fmt: skip


def test_links_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    write(root, "a/real.py")
    outside = write(tmp_path, "outside.py")
    (root / "a" / "loop").symlink_to(root)
    (root / "link.py").symlink_to("a/real.py")
    (root / "broken.py").symlink_to("nowhere.py")
    (root / "out.py").symlink_to(outside)
    tree = read_tree(root)
    assert paths(tree) == ["a/real.py"]
    assert tree.links == ("a/loop", "broken.py", "link.py", "out.py")
    assert [(one.path, one.unreadable) for one in tree.skipped] == [("out.py", False)]


def test_binary_files_are_told_by_name_or_content(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    write(tmp_path, "w.pt", b"not looked at")
    write(tmp_path, "data", b"\x00\x01")
    write(tmp_path, "notes.txt", b"u\x00t\x00f\x00")
    assert read_tree(tmp_path).others == ("data", "notes.txt", "w.pt")


def test_python_with_null_bytes_is_named(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "x = 1\n".encode("utf-16"))
    (skipped,) = read_tree(tmp_path).skipped
    assert skipped.path == "a.py"
    assert skipped.unreadable
    assert "UTF-16" in skipped.reason


def test_a_large_file_is_named_but_not_held_against_the_run(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    write(tmp_path, "big.json", b" " * 20_000_000)
    tree = read_tree(tmp_path)
    (skipped,) = tree.skipped
    assert (skipped.path, skipped.unreadable) == ("big.json", False)
    assert "20.0 MB" in skipped.reason
    assert paths(tree) == ["a.py"]


def test_undecodable_python_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    write(tmp_path, "a.py", b"x = '\xe9'\n")
    write(tmp_path, "b.py")
    tree = read_tree(tmp_path)
    assert paths(tree) == ["b.py"]
    assert [(one.path, one.unreadable) for one in tree.skipped] == [("a.py", True)]


def test_permission_denied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Simulated, because permission bits do not bind when tests run as root.
    secret = write(tmp_path, "secret.py")
    write(tmp_path, "b.py")
    opened = Path.open

    def guarded(self: Path, *args: object, **options: object) -> object:
        if self == secret:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "open", guarded)
    tree = read_tree(tmp_path)
    assert [(one.path, one.reason, one.unreadable) for one in tree.skipped] == [
        ("secret.py", "permission denied", True)
    ]
    assert paths(tree) == ["b.py"]


def test_an_unreadable_directory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "sub/a.py")
    write(tmp_path, "b.py")
    scan = os.scandir

    def guarded(path: Path) -> object:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert [one.path for one in read_tree(tmp_path).skipped] == ["sub/"]


def test_sockets_and_pipes_are_named_and_never_opened(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "sock.py"))  # relative: the name of a socket is short
        assert [one.path for one in read_tree(tmp_path).skipped] == ["pipe.py", "sock.py"]


def test_the_output_directory_inside_the_tree_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    write(tmp_path, "out/a.py")
    assert paths(read_tree(tmp_path, without=tmp_path / "out")) == ["a.py"]


def test_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_tree(tmp_path / "nowhere")
    with pytest.raises(InputError, match="does not exist"):
        read_tree(write(tmp_path, "file.py") / "below")


def test_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="holds no source files"):
        read_tree(tmp_path)


def test_a_pipe_is_no_tree(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a directory"):
        read_tree(tmp_path / "pipe")
