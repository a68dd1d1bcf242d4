"""The list of what the stand-in defines comes from the installed torch_npu."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuport.sim import SimulationUnavailable, cann, requirements

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def installation() -> requirements.Installation:
    try:
        return requirements.check()
    except SimulationUnavailable as missing:
        pytest.skip(str(missing))


def test_imported_functions(installation: requirements.Installation) -> None:
    names = cann.imported_functions(installation.torch_npu_directory)
    assert {"aclInit", "aclrtMalloc", "aclopCompileAndExecute", "rtKernelLaunch", "MsprofReportApi"} <= names
    assert not any(name.startswith(("Py", "_Z", "dl", "pthread")) for name in names)


def test_operator_names(installation: requirements.Installation) -> None:
    names = cann.operator_names(installation.torch_npu_directory)
    assert len(names) > 500 and {"aclnnAdd", "aclnnSwiGlu", "aclnnConstantPadNd"} <= names
    assert not any(name.endswith("GetWorkspaceSize") for name in names)


def test_every_import_is_defined(installation: requirements.Installation) -> None:
    defined = cann._defined(cann.ensure(installation) / "libascendcl.so")
    assert cann.imported_functions(installation.torch_npu_directory) <= defined


def test_every_library_is_there(installation: requirements.Installation) -> None:
    directory = cann.ensure(installation)
    names = cann.library_names(installation)
    assert names[0] == "libascendcl.so" and {"libhccl.so", "libopapi.so"} <= set(names)
    assert all((directory / name).is_file() for name in names)


def test_a_second_call_compiles_nothing(
    installation: requirements.Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    cann.ensure(installation)
    monkeypatch.setattr(cann, "_build", lambda *_: pytest.fail("compiled again"))
    assert isinstance(cann.ensure(installation), Path) and cann.is_built(installation)
