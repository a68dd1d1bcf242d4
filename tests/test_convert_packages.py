"""Whole packages: converted ones import as before on a machine without any accelerator."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
convert_packages = pytest.importorskip("convert_packages")

SDISTS = os.environ.get("NPUPORT_SDISTS", "")
SMALL = ("open_clip_torch", "openai_whisper", "accelerate", "mmengine")

TYPES = "import torch\n\nFLOATS = (torch.FloatTensor, torch.cuda.FloatTensor)\nSEED = torch.cuda.manual_seed_all\n"


def package(root: Path, **files: str) -> Path:
    """A source distribution of the package "things" with these modules."""
    folder = root / "things-1.0" / "src" / "things"
    folder.mkdir(parents=True)
    for name, text in {"__init__": "", **files}.items():
        (folder / f"{name}.py").write_text(text)
    return root / "things-1.0"


@pytest.mark.sim
def test_a_converted_package_imports_on_a_cpu(tmp_path: Path) -> None:
    root = package(tmp_path, types=TYPES, broken="import no_such_module\n", plain="A = 1\n")
    result = convert_packages.check_package(root, "agnostic", "cpu", tmp_path / "out")
    assert not result.faults
    assert result.changed == 1
    imports = result.imports
    assert (imports.modules, imports.before, imports.after) == (4, 3, 3)
    assert imports.never == (("things.broken", "ModuleNotFoundError: No module named 'no_such_module'"),)


def test_lost_imports_and_lost_names_are_faults(tmp_path: Path) -> None:
    texts = {
        "dies": "import os\nNAME = 1\n",
        "raises": "NAME = 1\n",
        "loses": "NAME = OTHER = 1\n",
        "stays": "NAME = 1\n",
    }
    before = package(tmp_path / "before", **texts)
    changed = {"dies": "import os\nos._exit(3)\n", "raises": "1 / 0\n", "loses": "NAME = 1\n"}
    after = package(tmp_path / "after", **{**texts, **changed})
    found = convert_packages.compare_imports(before, after, on_sim=False, preload=False)
    assert dict(found.lost) == {
        "things.dies": "the process died",
        "things.raises": "ZeroDivisionError: division by zero",
        "things.loses": "without OTHER",
    }
    assert (found.modules, found.before, found.after) == (5, 5, 3)


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    root = package(tmp_path, types=TYPES, plain="A = 1\n")
    out = tmp_path / "out"
    assert convert_packages.convert_package(root, out, "npu").differing == ()
    (out / "src" / "things" / "plain.py").write_text("A = 2\n")
    tree = convert_packages.read_tree(root)
    conversion = convert_packages.convert_files(tree.files, convert_packages.Settings(), jobs=1)
    assert list(convert_packages.differing(tree, conversion, out)) == ["src/things/plain.py"]


@pytest.mark.sim
@pytest.mark.skipif(not SDISTS, reason="NPUPORT_SDISTS names no folder of unpacked source distributions")
@pytest.mark.parametrize("name", SMALL)
def test_source_distributions(name: str, tmp_path: Path) -> None:
    for root in convert_packages.packages_in(Path(SDISTS), [name]):
        result = convert_packages.check_package(root, "agnostic", "cpu", tmp_path)
        assert not result.faults
        assert result.imports.before > 0
