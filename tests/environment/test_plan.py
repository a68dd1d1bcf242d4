"""The planner agrees with every row of the table of releases, and refuses what is not in it."""

from __future__ import annotations

import csv
import os
import subprocess
from itertools import product
from pathlib import Path

import pytest
from packaging.version import Version

from environment.machines import trained_on
from environment.shell import shellcheck
from npuport import facts
from npuport.environment.plan.plan import make_plan, nearest
from npuport.environment.plan.request import Request, request_from_machine, request_from_text
from npuport.environment.plan.script import install_script
from npuport.errors import UserError

RELEASES = facts.all_releases()
TORCHES = sorted({one.torch for one in RELEASES})
CANNS = sorted({one.cann for one in RELEASES if one.cann})
PYTHONS = ["3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.torch_npu)
def test_every_release_is_planned_as_the_table_has_it(release: facts.Release) -> None:
    plan = make_plan(request_from_text(f"torch {release.torch}, torch_npu {release.torch_npu}"))
    assert plan.release == release
    if release.cann:
        by_cann = make_plan(request_from_text(f"torch=={release.torch} CANN {release.cann}")).release
        assert (by_cann.torch, by_cann.cann) == (release.torch, release.cann)
    assert not release.python or plan.python in release.python


@pytest.mark.parametrize("torch", TORCHES)
def test_pairs_with_a_cann_that_are_not_in_the_table_are_refused(torch: str) -> None:
    paired = {one.cann for one in RELEASES if one.torch == torch}
    refused = [cann for cann in CANNS if cann not in paired]
    assert refused
    for cann in refused:
        with pytest.raises(UserError, match="Near are: ") as error:
            make_plan(Request(torch=torch, cann=cann))
        near = nearest(Request(torch=torch, cann=cann))
        assert any(one.cann == cann for one in near)
        assert any(one.torch == torch for one in near) == any(one.torch == torch for one in RELEASES)
        assert f"torch {near[0].torch}" in str(error.value)


def test_pairs_with_a_python_that_are_not_in_the_table_are_refused() -> None:
    for torch, python in product(TORCHES, PYTHONS):
        served = [one for one in RELEASES if one.torch == torch and (not one.python or python in one.python)]
        if served:
            assert make_plan(Request(torch=torch, python=python)).release in served
        else:
            with pytest.raises(UserError, match=rf"torch {torch}, Python {python}"):
                make_plan(Request(torch=torch, python=python))


@pytest.mark.parametrize(
    ("torch", "near"), [("2.7.0", "2.7.1"), ("2.5.0", "2.5.1"), ("2.3.0", "2.3.1"), ("1.13.1", "1.11.0")]
)
def test_a_torch_without_torch_npu_is_refused_and_its_neighbour_named(torch: str, near: str) -> None:
    with pytest.raises(UserError, match=rf"no published torch_npu goes with torch {torch}"):
        make_plan(Request(torch=torch))
    assert near in [one.torch for one in nearest(Request(torch=torch))]


def test_torch_and_torch_npu_of_different_versions_are_refused() -> None:
    with pytest.raises(UserError, match="Near are"):
        make_plan(Request(torch="2.8.0", torch_npu="2.7.1"))


def test_a_short_version_takes_the_newest_that_a_cann_is_paired_with() -> None:
    release = make_plan(request_from_text("torch 2.7")).release
    fitting = [one for one in RELEASES if one.torch.startswith("2.7.") and one.cann]
    assert release == max(fitting, key=lambda one: Version(one.torch_npu))


@pytest.mark.parametrize(
    "text",
    [
        "torch 2.7, Ascend910B3, Python 3.11, aarch64, openEuler 22.03",
        "torch==2.7 910b3 python=3.11.4 arm64 openEuler-22.03",
        "openEuler 22.03; arch=aarch64; chip=Ascend910B3; python3.11; pytorch 2.7",
    ],
)
def test_a_wish_in_several_spellings(text: str) -> None:
    assert request_from_text(text) == Request(
        torch="2.7", python="3.11", chip="Ascend910B3", family="A2", arch="aarch64", system="openEuler 22.03"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the plan is empty"),
        ("torch 2.7, Ascend910B9", "does not understand Ascend910B9"),
        ("torch 2.7, torch 2.8", "both 2.7 and 2.8"),
        ("torch two", "two is no version"),
        ("arch=riscv", "aarch64 and x86_64, not riscv"),
        ("chip=H100", "does not know the chip H100"),
    ],
)
def test_a_wish_that_cannot_be_read_says_why(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        request_from_text(text)


def test_a_machine_is_a_wish(tmp_path: Path) -> None:
    request = request_from_machine(trained_on().environment(tmp_path))
    assert request == Request(
        cann="8.2.RC1",
        python="3.10",
        driver="25.2.0",
        chip="Ascend910B3",
        family="A2",
        arch="aarch64",
        system="ubuntu 22.04",
    )
    assert make_plan(request).release.torch_npu == "2.6.0"


def scripts() -> dict[str, str]:
    chips = {"A2": "Ascend910B3", "A3": "Ascend910_9391", "910": "Ascend910A", "310P": "Ascend310P3"}
    found = {}
    for release in RELEASES:
        for family, chip in chips.items():
            plan = make_plan(Request(torch_npu=release.torch_npu, chip=chip, family=family, arch="x86_64"))
            if plan.python:
                found[f"{release.torch_npu}-{family}.sh"] = install_script(plan)
    return found


def test_every_install_script_passes_shellcheck(tmp_path: Path) -> None:
    written = scripts()
    assert len(written) > 4 * 60
    assert shellcheck(written, tmp_path / "scripts") == ""


def test_an_install_script_installs_the_plan_in_order(tmp_path: Path) -> None:
    """Run with stubs for every program it calls, which write down how they were called."""
    plan = make_plan(request_from_text("torch 2.7.1, torch_npu 2.7.1.post2, Ascend910B3, Python 3.11"))
    calls, bin_folder, files = tmp_path / "calls", tmp_path / "bin", tmp_path / "files"
    for folder in (bin_folder, files, tmp_path / "ascend/cann", tmp_path / "ascend/nnal/atb", tmp_path / "env/bin"):
        folder.mkdir(parents=True)
    for name in ("python3.11", "python"):
        (bin_folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{calls}"\n')
        (bin_folder / name).chmod(0o755)
    (bin_folder / "uname").write_text("#!/bin/sh\necho aarch64\n")
    (bin_folder / "uname").chmod(0o755)
    for name in ("ascend/cann/set_env.sh", "ascend/nnal/atb/set_env.sh", "env/bin/activate"):
        (tmp_path / name).write_text(
            f'echo "source {name} $UNSET" >> "{calls}"\n'.replace("env/bin/activate $UNSET", "venv")
        )
    for name in plan.packages:
        file = name.format(arch="aarch64")
        (files / file).write_text(f'echo "{file} $*" >> "{calls}"\n')
    script = tmp_path / "install.sh"
    text = install_script(plan)
    script.write_text(text.replace("[ -f /usr/local/Ascend/driver/version.info ]", "true"))
    environment = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "ASCEND_INSTALL_PATH": str(tmp_path / "ascend"),
    }
    run = subprocess.run(["bash", str(script), str(files), str(tmp_path / "env")], env=environment, capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert run.returncode == 0, run.stderr
    done = calls.read_text().splitlines()
    order = [
        "Ascend-cann-toolkit_8.5.0_linux-aarch64.run --install",
        "source ascend/cann/set_env.sh",
        "Ascend-cann-910b-ops_8.5.0_linux-aarch64.run --install",
        "Ascend-cann-nnal_8.5.0_linux-aarch64.run --install",
        "python3.11 -m venv",
        "python -m pip install attrs numpy==1.26.2",
        "python -m pip install --index-url https://download.pytorch.org/whl/cpu torch==2.7.1 torchvision==0.22.1",
        "python -m pip install torch-npu==2.7.1.post2",
        "source ascend/nnal/atb/set_env.sh",
        "python -c import torch, torch_npu",
    ]
    places = [next(number for number, line in enumerate(done) if line.startswith(start)) for start in order]
    assert places == sorted(places)
    assert (tmp_path / "env/constraints.txt").read_text() == "torch==2.7.1\nnumpy==1.26.2\n"


def test_an_install_script_stops_before_anything_is_installed_where_a_file_is_missing(tmp_path: Path) -> None:
    plan = make_plan(request_from_text("torch 2.7.1, Ascend910B3, Python 3.11"))
    script = tmp_path / "install.sh"
    text = install_script(plan).replace("[ -f /usr/local/Ascend/driver/version.info ]", "true")
    script.write_text(text.replace("command -v python3.11", "true"))
    run = subprocess.run(["bash", str(script), str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "is missing; download it first" in run.stderr


def test_a_script_needs_a_chip() -> None:
    with pytest.raises(UserError, match="needs the chip"):
        install_script(make_plan(request_from_text("torch 2.7")))


def test_the_table_is_the_one_that_was_collected() -> None:
    """NPUPORT_VERSION_MATRIX: a table with the columns torch, torch_npu_wheel, CANN, python."""
    table = os.environ.get("NPUPORT_VERSION_MATRIX")
    if table is None:
        pytest.skip("set NPUPORT_VERSION_MATRIX to a table of versions")
    with Path(table).open(encoding="utf-8", newline="") as lines:
        listed = list(csv.DictReader(lines))
    # A name that is listed twice, once with stray white space, is the row that knows its CANN.
    rows = {
        row["torch_npu_wheel"].strip().removesuffix("（beta）"): row
        for row in sorted(listed, key=lambda row: row["CANN"])
    }
    assert len(rows) == len(RELEASES)
    for wheel, row in rows.items():
        # The one row that contradicts the rule of its own document: a wheel's version begins with its torch.
        torch = "1.5.0" if wheel == "1.5.0.post3" else row["torch"]
        release = make_plan(Request(torch=torch, torch_npu=wheel)).release
        assert (release.torch, release.torch_npu) == (torch, wheel)
        python = row["python"].replace("(>= 3.7.5)", "")
        assert (release.cann or "", " ".join(release.python)) == (row["CANN"], python)
