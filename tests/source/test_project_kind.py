"""A library is told from a repository of scripts by what it declares and holds."""

from __future__ import annotations

import pytest

from npuport.source.files import SourceFile
from npuport.source.kinds import kind_by_name
from npuport.source.project_kind import ProjectKind, project_kind

PYPROJECT = '[build-system]\nrequires = ["hatchling"]\n\n[project]\nname = "things"\nversion = "1"\n'
SETUP = 'from setuptools import setup, find_packages\nsetup(name="things", packages=find_packages())\n'
TRAINS = "loss.backward()\n"


def kind(**files: str) -> ProjectKind:
    """Of files whose names stand with __ for a slash and the suffix after a last _."""
    paths = {name.replace("__", "/").rpartition("_")[::2]: text for name, text in files.items()}
    read = []
    for (stem, suffix), text in paths.items():
        path = f"{stem}.{suffix}".replace("INIT", "__init__").replace("DASH", "-")
        found = kind_by_name(path)
        assert found is not None
        read.append(SourceFile(path, found, text))
    return project_kind(read)


@pytest.mark.parametrize(
    ("files", "declared"),
    [
        ({"pyproject_toml": PYPROJECT}, "pyproject.toml"),
        ({"pyproject_toml": '[tool.poetry]\nname = "things"\n'}, "pyproject.toml"),
        ({"setup_cfg": "[metadata]\nname = things\n"}, "setup.cfg"),
        ({"setup_py": SETUP}, "setup.py"),
        ({"setup_py": SETUP.replace('"things"', '"things" if full else "things-lite"')}, "setup.py"),
        ({"pyproject_toml": "[tool.ruff]\nline-length = 100\n", "setup_py": SETUP}, "setup.py"),
    ],
)
@pytest.mark.parametrize("package", ["things__INIT_py", "src__things__INIT_py", "space__things__INIT_py"])
def test_libraries(files: dict[str, str], declared: str, package: str) -> None:
    found = kind(**files, **{package: ""})
    assert found == ProjectKind("things", declared)
    assert found.is_library


@pytest.mark.parametrize("path", ["things__train_py", "tests__test_training_py", "examples__train_py", "docs__conf_py"])
def test_what_trains_inside_a_package_or_in_its_examples_does_not_count(path: str) -> None:
    assert kind(pyproject_toml=PYPROJECT, things__INIT_py="", **{path: TRAINS}).is_library


@pytest.mark.parametrize(
    ("path", "text"),
    [("train_py", ""), ("tools__finetune_lora_py", ""), ("main_py", TRAINS), ("a__b_py", "Trainer(model)")],
)
def test_a_script_that_trains_decides(path: str, text: str) -> None:
    found = kind(pyproject_toml=PYPROJECT, things__INIT_py="", **{path: text})
    assert found.package == "things"
    assert found.script.endswith(".py")
    assert not found.is_library


@pytest.mark.parametrize("path", ["download_py", "retrained_py", "convert_py"])
def test_other_scripts_do_not(path: str) -> None:
    assert kind(pyproject_toml=PYPROJECT, things__INIT_py="", **{path: "print(1)\n"}).is_library


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"things__INIT_py": ""},  # nothing declares it
        {"pyproject_toml": PYPROJECT},  # nothing is there
        {"pyproject_toml": PYPROJECT, "tests__INIT_py": ""},
        {"pyproject_toml": PYPROJECT, "a__b__c__INIT_py": ""},
        {"pyproject_toml": "[tool.black]\nname = 'x'\n", "things__INIT_py": ""},
        {"setup_py": "setup(name='things'\n", "things__INIT_py": ""},  # no Python
        {"setup_py": "from setuptools import setup\nsetup()\n", "things__INIT_py": ""},
        {"setup_py": "run(name='things', packages=[])\n", "things__INIT_py": ""},
    ],
)
def test_no_libraries(files: dict[str, str]) -> None:
    assert kind(**files) == ProjectKind()
