"""The user's own modules are met by whichever finder Python reaches them: editable installs, namespace packages."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import npuport

editable_wheel = pytest.importorskip("setuptools.command.editable_wheel")

ACTIVE = "from npuport.runtime.activation import activate\nactivate()\n"


def run(folder: Path, program: str) -> str:
    """What a program prints; modules of the project are on a path of their own."""
    env = {**os.environ, "NPUPORT_DEVICE": "npu"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def write(path: Path, text: str = 'DEVICE = "cuda"\n') -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_project_that_setuptools_installed_in_editable_mode(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project / "lib/__init__.py", 'from . import inner\nDEVICE = "cuda"\n')
    write(project / "lib/inner.py")
    write(project / "parts/space/deep.py")
    mapping = {"lib": str(project / "lib"), "space": str(project / "parts/space")}
    namespaces = {"space": [str(project / "parts/space")]}
    write(tmp_path / "finder.py", editable_wheel._finder_template("project", mapping, namespaces))
    program = f"import finder\nfinder.install()\n{ACTIVE}import lib, space.deep\n"
    printed = run(tmp_path, program + "print(lib.DEVICE, lib.inner.DEVICE, space.deep.DEVICE, lib.__file__)")
    assert printed == f"npu npu npu {project / 'lib/__init__.py'}\n"


def test_a_namespace_package_over_two_folders(tmp_path: Path) -> None:
    write(tmp_path / "one/space/first.py")
    write(tmp_path / "two/space/second.py")
    program = f"import sys\nsys.path[:0] = ['one', 'two']\n{ACTIVE}import space.first, space.second\n"
    assert run(tmp_path, program + "print(space.first.DEVICE, space.second.DEVICE)") == "npu npu\n"


def test_what_another_finder_finds_is_taken_and_asked_for_once(tmp_path: Path) -> None:
    write(tmp_path / "place.py")
    program = """
import sys, types
from importlib.machinery import ModuleSpec
asked = []
class Made:
    def create_module(self, spec): return None
    def exec_module(self, module): module.DEVICE = "cuda"
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        asked.append(name)
        return ModuleSpec(name, Made()) if name == "made" else None
class Older:  # has what importlib asked for before Python 3.4
    def find_module(self, name, path=None): return None
sys.meta_path += [Finder, Older()]
"""
    program += f"{ACTIVE}import made, place\n"
    printed = run(tmp_path, program + "print(made.DEVICE, place.DEVICE, asked.count('made'))")
    assert printed == "cuda npu 1\n"


def test_a_module_in_a_zip_file_is_left_as_it_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed.py", 'DEVICE = "cuda"\n')
    program = f"import sys\nsys.path.insert(0, 'packed.zip')\n{ACTIVE}import packed\nprint(packed.DEVICE)"
    assert run(tmp_path, program) == "cuda\n"


def test_inspect_is_met_whenever_it_is_loaded(tmp_path: Path) -> None:
    write(tmp_path / "place.py", 'def where(device="cuda"):\n    return device\n')
    asking = "import inspect\nprint(inspect.getsource(place.where), end='')\n"
    first = f"{ACTIVE}import place\n{asking}"
    assert (
        run(tmp_path, first)
        == run(tmp_path, f"import inspect\n{first}")
        == 'def where(device="npu"):\n    return device\n'
    )
    back = "from npuport.runtime.activation import deactivate\ndeactivate()\n"
    assert run(tmp_path, f"{ACTIVE}import place\n{back}{asking}") == 'def where(device="cuda"):\n    return device\n'


HOME = str(Path(npuport.__file__).parents[1])


def test_the_start_of_a_process_loads_little(tmp_path: Path) -> None:
    program = "import sys; before = set(sys.modules); import npuport.runtime.startup\n"
    program += "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    env = {**os.environ, "NPUPORT_DEVICE": "npu"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({HOME!r})\n{program}"],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert "npuport" in loaded, done.stderr
    assert not loaded & {"typing", "re", "inspect", "pathlib", "dataclasses", "importlib.util", "functools", "ctypes"}
