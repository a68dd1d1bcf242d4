"""Compiled extensions are held against the torch_npu and ATB that are installed; nothing is loaded for that."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from environment.machines import NNAL, SITE, Faked, trained_on
from environment.variants import with_package
from npuport.environment.checks.registry import diagnose

COMPILER = shutil.which("cc") or shutil.which("gcc")
Compile = Callable[..., bytes]

CUR_MODE = "_ZN7c10_npu10NpuRunMode8cur_modeE"
PEEK = "_ZN6c10_npu3acl20AclrtPeekAtLastErrorEi"
CREATE = "_ZN3atb15CreateOperationINS_5infer14GroupTopkParamEEEiRKT_PPNS_9OperationE"


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """``compiled(source, libraries…)`` is the content of a shared object; a library is a name and its source."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path / "compiled"
    folder.mkdir()

    def build(source: str, name: str = "it", links: dict[str, str] | None = None) -> bytes:
        assert COMPILER is not None
        for library, text in (links or {}).items():
            build(text, library)
        (folder / f"{name}.c").write_text(source)
        flags = [f"-l{library}" for library in links or {}]
        command = [
            COMPILER,
            "-shared",
            "-fPIC",
            "-Wl,--hash-style=gnu",
            "-o",
            f"lib{name}.so",
            f"{name}.c",
            "-L.",
            *flags,
        ]
        subprocess.run(command, cwd=folder, check=True)
        return (folder / f"lib{name}.so").read_bytes()

    return build


def said(machine: Faked, root: Path, *codes: str) -> list[str]:
    found = [one for one in diagnose(machine.environment(root)) if one.code in codes]
    return [" ".join([str(one.seen), str(one.fix), *one.commands]) for one in found]


def with_mmcv(extension: bytes, torch_npu: bytes) -> Faked:
    files = {f"{SITE}/mmcv/_ext.cpython-310.so": extension, f"{SITE}/torch_npu/lib/libtorch_npu.so": torch_npu}
    return with_package("mmcv", "2.2.0").having(files)


def test_an_extension_that_wants_what_torch_npu_lacks(compiled: Compile, tmp_path: Path) -> None:
    has = f"int {PEEK}(int x) {{ return x; }}"
    wants = f"extern int {CUR_MODE}; int f(void) {{ return {CUR_MODE}; }}"
    machine = with_mmcv(compiled(wants, links={"torch_npu": has}), compiled(has, "torch_npu"))
    (text,) = said(machine, tmp_path / "root", "ND312")
    assert f"mmcv: {SITE}/mmcv/_ext.cpython-310.so wants {CUR_MODE}" in text
    assert "FORCE_NPU=1" in text


def test_an_extension_that_fits(compiled: Compile, tmp_path: Path) -> None:
    has = f"int {PEEK}(int x) {{ return x; }}"
    wants = f"int {PEEK}(int); int f(void) {{ return {PEEK}(1); }}"
    machine = with_mmcv(compiled(wants, links={"torch_npu": has}), compiled(has, "torch_npu"))
    assert said(machine, tmp_path / "root", "ND312", "ND313") == []


def test_mmcv_that_was_built_without_npu_kernels(compiled: Compile, tmp_path: Path) -> None:
    machine = with_mmcv(compiled("int f(void) { return 1; }"), compiled("int g;", "torch_npu"))
    (text,) = said(machine, tmp_path / "root", "ND313")
    assert "is not linked with torch_npu" in text and "MMCV_WITH_OPS=1 FORCE_NPU=1" in text


def test_atb_that_lacks_what_torch_npu_calls(compiled: Compile, tmp_path: Path) -> None:
    wants = f"int {CREATE}(void); int f(void) {{ return {CREATE}(); }}"
    files = {
        f"{SITE}/torch_npu/lib/libop_plugin_atb.so": compiled(wants),
        f"{NNAL}/atb/cxx_abi_0/lib/libatb.so": compiled("int older(void) { return 1; }", "atb"),
    }
    (text,) = said(trained_on().having(files), tmp_path / "root", "ND209")
    assert f"libatb.so lacks what torch_npu calls: {CREATE}" in text


def test_what_is_no_shared_object_is_no_error(tmp_path: Path) -> None:
    machine = with_mmcv(b"\x7fELF broken", b"")
    assert said(machine, tmp_path, "ND312") == []
