"""Recorded steps written in msprobe's layout: read again, and taken by msprobe itself."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from faults import FAULTS, step_of  # noqa: E402

from npuport.cli.precision_convert_dump import convert_dump  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision.msprobe.steps import read_step_of_msprobe  # noqa: E402
from npuport.precision.msprobe.writing import write_dump  # noqa: E402
from npuport.precision.operators.calls import Step  # noqa: E402
from npuport.precision.operators.calls import write_step as write_ours  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.operators.summing import statistics_of  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402

PEER = os.environ.get("NPUPORT_MSPROBE_PYTHON", "")


def recorded(fault: str | None = None) -> Step:
    found = next((one for one in FAULTS if one.name == fault), None)
    return step_of("gpt", 1e-6, 1 if fault is None else 2, found)


def of_statistics(step: Step) -> Step:
    refs = {ref for call in step.calls for ref in (*call.inputs, *call.outputs)}
    refs |= {ref for module in step.modules for ref in (*module.inputs, *module.outputs)}
    return replace(step, storages={}, statistics={ref: statistics_of(step.tensor(ref)) for ref in refs})


@pytest.fixture(scope="module", name="dumps")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    folder = tmp_path_factory.mktemp("written")
    good, bad = recorded(), recorded("linear 0.3 % too large")
    yield {
        "good": write_dump(good, folder / "good"),
        "bad": write_dump(bad, folder / "bad"),
        "good statistics": write_dump(of_statistics(good), folder / "good_statistics"),
        "bad statistics": write_dump(of_statistics(bad), folder / "bad_statistics"),
    }


def test_entries_have_msprobe_s_names_and_modules_their_parameters(dumps: dict[str, Path]) -> None:
    document = json.loads(dumps["good"].read_text(encoding="utf-8"))
    assert (document["task"], document["level"], document["framework"]) == ("tensor", "mix", "pytorch")
    names = list(document["data"])
    assert names[0] == "Aten.embedding.0.forward"
    linear = document["data"]["Module.blocks.1.up.Linear.forward.0"]
    assert set(linear["parameters"]) == {"weight", "bias"}
    assert linear["output"][0]["shape"] == [4, 24, 256]
    assert names.index("Module.blocks.1.up.Linear.forward.0") < names.index("Module.blocks.1.Block.forward.0")
    gradients = document["data"]["Module.blocks.1.up.Linear.parameters_grad"]
    assert gradients["weight"][0]["shape"] == [256, 64]
    parents = json.loads(dumps["good"].with_name("construct.json").read_text(encoding="utf-8"))
    assert parents["Module.blocks.1.up.Linear.forward.0"] == "Module.blocks.1.Block.forward.0"
    assert parents["Module.blocks.1.Block.forward.0"] is None
    assert "Module.blocks.1.up.Linear.forward.0" in parents.values()


def test_numbers_and_tensors_are_those_of_the_step(dumps: dict[str, Path]) -> None:
    step = recorded()
    call = next(call for call in step.calls if call.operator == "aten.gelu.default")
    document = json.loads(dumps["good"].read_text(encoding="utf-8"))
    output = document["data"]["Aten.gelu.0.forward"]["output"][0]
    tensor = step.tensor(call.outputs[0])
    assert output["Max"] == float(tensor.max()) and output["Norm"] == float(torch.linalg.vector_norm(tensor))
    assert torch.equal(torch.load(dumps["good"].parent / "dump_tensor_data" / output["data_name"]), tensor)
    tokens = document["data"]["Aten.embedding.0.forward"]["input_args"][1]
    assert (tokens["dtype"], tokens["Mean"], type(tokens["Max"])) == ("torch.int64", None, int)
    of_statistics = json.loads(dumps["good statistics"].read_text(encoding="utf-8"))
    assert of_statistics["task"] == "statistics" and of_statistics["dump_data_dir"] is None
    again = of_statistics["data"]["Aten.gelu.0.forward"]["output"][0]
    assert again["Norm"] == pytest.approx(output["Norm"], rel=1e-6) and "data_name" not in again


@pytest.mark.parametrize("kind", ["", " statistics"])
def test_what_is_written_is_read_again_and_compared(dumps: dict[str, Path], kind: str) -> None:
    good, bad = (read_step_of_msprobe(dumps[name + kind]) for name in ("good", "bad"))
    first = compare(good, bad).suspects[0]
    assert (first.call.operator, first.call.module) == ("Aten.addmm.4", "blocks.1.qkv")
    assert compare(good, good).suspects == ()


def test_odd_tensors_are_written(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder:
        torch.zeros(0, 3).sum()
        torch.ones(2, dtype=torch.complex64) * 2
        torch.gt(torch.ones(3), 0)
        torch.ones(3) / torch.zeros(3)
    file = write_dump(recorder.take(3, 1), tmp_path / "中 文")
    assert file.parent == tmp_path / "中 文" / "step3" / "rank1"
    assert "Infinity" in file.read_text(encoding="utf-8")
    assert (read_step_of_msprobe(file).step, read_step_of_msprobe(file).rank) == (3, 1)
    assert [path.name for path in file.parent.parent.iterdir()] == ["rank1"]


def test_the_command_writes_every_step(tmp_path: Path) -> None:
    step = of_statistics(recorded())
    for number in (0, 1):
        write_ours(tmp_path / "ours", replace(step, step=number))
    convert_dump(tmp_path / "ours", tmp_path / "theirs")
    assert sorted(path.parent.parent.name for path in tmp_path.glob("theirs/*/*/dump.json")) == ["step0", "step1"]
    with pytest.raises(UserError, match="holds files already"):
        convert_dump(tmp_path / "ours", tmp_path / "theirs")


@pytest.mark.skipif(not PEER, reason="needs NPUPORT_MSPROBE_PYTHON, the python of an environment with mindstudio-probe")
@pytest.mark.parametrize("kind", ["", " statistics"])
def test_msprobe_takes_them(dumps: dict[str, Path], kind: str, tmp_path: Path) -> None:
    command = [str(Path(PEER).with_name("msprobe")), "compare"]
    command += ["-tp", str(dumps[f"bad{kind}"]), "-gp", str(dumps[f"good{kind}"]), "-o", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with next(tmp_path.glob("*.csv")).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [row["NPU Name"] for row in rows]
    assert len(names) > 2000 and "Aten.addmm.4.forward.output.0" in names
    assert all(row["NPU Name"] == row["Bench Name"] for row in rows)
