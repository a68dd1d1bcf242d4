"""Recorded steps and dumps that are not whole, damaged or of different kinds: compared as far as they go, and that is
said, or refused in one sentence that names the file."""

from __future__ import annotations

import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

torch = pytest.importorskip("torch")

from msprobe_dumps import forward, tensor, write_dump  # noqa: E402

from npuport.cli.precision_compare import compare_folders  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision import record  # noqa: E402
from npuport.precision.msprobe.reading import find_dumps  # noqa: E402


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Two recorded runs of two steps, in folders with a space and Chinese in their names."""
    for name in ("a 甲", "b 乙"):
        torch.manual_seed(0)
        layer = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        with record(tmp_path / name, steps="0-1"):
            for _ in range(2):
                layer(torch.ones(4, 8)).square().mean().backward()
                optimizer.step()
    return tmp_path / "a 甲", tmp_path / "b 乙"


@pytest.fixture
def dumps(tmp_path: Path) -> tuple[Path, Path]:
    """Two dumps of msprobe with the tensors of one call."""
    for name in ("a 甲", "b 乙"):
        folder = tmp_path / name / "step0" / "rank0"
        (folder / "dump_tensor_data").mkdir(parents=True)
        parts = []
        for number in range(2):
            value, file = torch.full((64,), number + 1.0), f"Torch.exp.0.forward.output.{number}.pt"
            torch.save(value, folder / "dump_tensor_data" / file)
            parts.append(tensor(64, norm=float(value.norm()), data_name=file))
        write_dump(folder, {"Torch.exp.0.forward": forward([], parts)}, task="tensor")
    return tmp_path / "a 甲", tmp_path / "b 乙"


@pytest.mark.parametrize("size", [0, 2, 100, 3000])
def test_a_step_that_was_cut_off_is_refused(runs: tuple[Path, Path], size: int) -> None:
    file = runs[1] / "step0" / "rank0.pt"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(UserError, match=r"乙/step0/rank0\.pt is not whole.*Record it again"):
        compare_folders(*runs, as_json=False)


def test_a_damaged_step_is_refused(runs: tuple[Path, Path]) -> None:
    file = runs[1] / "step0" / "rank0.pt"
    with ZipFile(file) as archive:
        start = next(one.header_offset for one in archive.infolist() if one.filename.endswith("data.pkl"))
    content = bytearray(file.read_bytes())
    content[start + 500 : start + 560] = b"\xff" * 60
    file.write_bytes(content)
    with pytest.raises(UserError, match="is no recorded step: it is damaged"):
        compare_folders(*runs, as_json=False)


def test_a_file_without_calls_is_refused(runs: tuple[Path, Path]) -> None:
    torch.save({"npuport": 2, "calls": [(1,)]}, runs[1] / "step0" / "rank0.pt")
    with pytest.raises(UserError, match="is no recorded step: it is damaged"):
        compare_folders(*runs, as_json=False)


def test_a_step_that_one_side_lacks_is_named(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    (runs[1] / "step0" / "rank0.pt").rename(runs[1] / "step0" / "rank0.new")
    assert compare_folders(*runs, as_json=False) == 0
    assert f"step 0, rank 0 is in {runs[0]} only: not compared" in capsys.readouterr().err
    assert compare_folders(runs[0], runs[0], as_json=False) == 0
    assert capsys.readouterr().err == ""


def test_a_file_against_a_folder_is_refused(runs: tuple[Path, Path]) -> None:
    with pytest.raises(UserError, match=r"rank0\.pt is a file"):
        compare_folders(runs[0] / "step0" / "rank0.pt", runs[1], as_json=False)


def test_steps_of_two_tools_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    write_dump(tmp_path / "msprobe", {"Torch.exp.0.forward": forward([], [tensor(4)])})
    with pytest.raises(UserError, match=r"dump\.json is a dump of msprobe and .*rank0\.pt is a step"):
        compare_folders(runs[0], tmp_path / "msprobe", as_json=False)
    with pytest.raises(UserError, match=r"dump\.json is a dump of msprobe and .*rank0\.pt is a step"):
        compare_folders(tmp_path / "msprobe", runs[0], as_json=False)


def test_dumps_that_have_nothing_in_common_are_refused(tmp_path: Path) -> None:
    x, checksum = tensor(4), {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "md5": "adbb5ccb"}
    write_dump(tmp_path / "apis", {"Torch.exp.0.forward": forward([x], [x])})
    write_dump(tmp_path / "modules", {"Module.act.GELU.forward.0": forward([x], [x])}, level="L0")
    write_dump(tmp_path / "checksums", {"Torch.exp.0.forward": forward([checksum], [checksum])})
    for other in ("modules", "checksums"):
        with pytest.raises(UserError, match="have nothing in common that can be compared"):
            compare_folders(tmp_path / "apis", tmp_path / other, as_json=False)
    for both in ("apis", "modules", "checksums"):
        assert compare_folders(tmp_path / both, tmp_path / both, as_json=False) == 0


@pytest.mark.parametrize("table", [False, True])
def test_a_tensor_that_is_cut_off_or_something_else_is_refused(dumps: tuple[Path, Path], table: bool) -> None:
    file = dumps[1] / "step0" / "rank0" / "dump_tensor_data" / "Torch.exp.0.forward.output.1.pt"
    columns = dumps[1] / "table.csv" if table else None
    whole = file.read_bytes()
    for content, reason in ((whole[:300], "is not whole"), (b"text", "is no tensor of msprobe")):
        file.write_bytes(content)
        with pytest.raises(UserError, match=rf"output\.1\.pt {reason}"):
            compare_folders(*dumps, as_json=False, columns=columns)
    torch.save({"not": "a tensor"}, file)
    with pytest.raises(UserError, match=r"output\.1\.pt is no tensor of msprobe"):
        compare_folders(*dumps, as_json=False, columns=columns)


def test_a_tensor_of_another_size_is_refused(dumps: tuple[Path, Path]) -> None:
    folder = dumps[1] / "step0" / "rank0" / "dump_tensor_data"
    torch.save(torch.ones(3), folder / "Torch.exp.0.forward.output.1.pt")
    with pytest.raises(UserError, match=r"output\.1\.pt holds 3 values, and dump\.json says \[64\]"):
        compare_folders(*dumps, as_json=False)


def test_tensors_that_are_not_there_are_counted(dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(dumps[1] / "step0" / "rank0" / "dump_tensor_data")
    assert compare_folders(*dumps, as_json=False) == 0
    (file,) = find_dumps(dumps[1]).values()
    assert f"{file}: 2 tensors that it names are not there" in capsys.readouterr().err
