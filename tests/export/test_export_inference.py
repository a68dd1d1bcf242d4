"""The outputs of an .om, as ais_bench lays them out, are compared with those of onnxruntime."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from npuport.export.compare_om import measures  # noqa: E402

Command = Callable[..., int]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Scores and the place of the largest, of two inputs."""
    make = onnx.helper
    nodes = [
        make.make_node("Add", ["x", "bias"], ["scores"]),
        make.make_node("ArgMax", ["scores"], ["place"], axis=1, keepdims=0),
    ]
    inputs = [make.make_tensor_value_info("x", 1, ["batch", 4]), make.make_tensor_value_info("bias", 1, [1, 4])]
    outputs = [
        make.make_tensor_value_info("scores", 1, ["batch", 4]),
        make.make_tensor_value_info("place", 7, ["batch"]),
    ]
    graph = make.make_graph(nodes, "g", inputs, outputs)
    path = tmp_path / "net.onnx"
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8), str(path))
    return path


@pytest.fixture
def folder(npuport: Command, model: Path, tmp_path: Path) -> Path:
    """What the command writes, for a batch of two."""
    folder = tmp_path / "inference"
    argv = ["--om", "net.om", "--dynamic", "batch", "--size", "batch=2", "--number", "3"]
    assert npuport("export", "inference", model, *argv, "-o", folder) == 0
    return folder


def run_om(model: Path, folder: Path, change: Callable[[np.ndarray], np.ndarray], form: str) -> None:
    """Write the outputs that ais_bench would write, changed."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    outputs = folder / "om_outputs" / "om"
    outputs.mkdir(parents=True)
    for path in sorted((folder / "inputs" / "x").glob("*.npy")):
        fed = {name: np.load(folder / "inputs" / name / path.name) for name in ("x", "bias")}
        for index, output in enumerate(session.run(None, fed)):
            array = change(output) if index == 0 else output.astype(np.int32)  # .om files often give int32
            place = outputs / f"{path.stem}_{index}.{form}"
            if form == "npy":
                np.save(place, array)
            elif form == "bin":
                array.tofile(place)
            else:
                np.savetxt(place, array)


def compared(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """compare.sh, with this Python."""
    command = shlex.split((folder / "compare.sh").read_text().splitlines()[-1].replace('"$@"', ""))
    argv = [sys.executable, *command[1:], *more]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ["npy", "bin", "txt"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_outputs_that_differ_by_rounding_agree(model: Path, folder: Path, form: str, dtype: str) -> None:
    run_om(model, folder, lambda output: output.astype(dtype), form)
    run = compared(folder)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "6 of 6 outputs agree" in run.stdout


def test_outputs_that_are_wrong_are_named(model: Path, folder: Path) -> None:
    run_om(model, folder, lambda output: output[:, ::-1].copy(), "npy")
    run = compared(folder)
    assert run.returncode == 1
    lines = run.stdout.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("FAR")] == [
        ["FAR", f"sample_000{index}", "scores"] for index in range(3)
    ]
    assert lines[-1].startswith("3 of 6")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda _: None, "was ais_bench run"),
        (lambda folder: np.save(folder / "sample_0000_0.npy", np.zeros(3)), "3 values"),
        (lambda folder: (folder / "sample_0000_0.bin").write_bytes(b"abc"), "3 bytes"),
    ],
)
def test_outputs_that_are_missing_or_of_another_size_are_named(
    folder: Path, damage: Callable[[Path], None], said: str
) -> None:
    outputs = folder / "om_outputs" / "om"
    outputs.mkdir(parents=True)
    damage(outputs)
    run = compared(folder)
    assert run.returncode == 2
    assert said in run.stderr and "Traceback" not in run.stderr


def test_the_comparison_without_onnxruntime_says_what_to_install(folder: Path) -> None:
    (folder / "onnxruntime.py").write_text("raise ImportError")
    run = compared(folder)
    assert run.returncode == 2
    assert "pip install onnxruntime" in run.stderr and "Traceback" not in run.stderr


def test_measures_are_what_their_formulas_say() -> None:
    found = measures(np.array([3.0, 4.0]), np.array([4.0, 3.0]))
    assert found == {"cosine": pytest.approx(24 / 25), "largest": 1.0, "relative": 0.25}
    assert measures(np.zeros(2), np.zeros(2))["cosine"] == 1.0
    assert measures(np.zeros(2), np.ones(2))["cosine"] == 0.0
    assert measures(np.array([1.0, np.nan]), np.array([1.0, np.nan]))["relative"] == 0.0
    assert measures(np.array([1.0, 2.0]), np.array([1.0, np.nan]))["relative"] == float("inf")


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("", ""),
        ("batch", "--dymBatch 2"),
        ("dims", "--dymDims 'x:2,4;bias:1,4'"),
        ("shape", "--outputSize 64,64"),
    ],
)
def test_the_command_of_ais_bench_fits_how_the_om_was_compiled(
    npuport: Command, model: Path, tmp_path: Path, kind: str, line: str
) -> None:
    folder = tmp_path / "inference"
    dynamic = ["--dynamic", kind] if kind else []
    assert npuport("export", "inference", model, "--om", "net.om", *dynamic, "--size", "batch=2", "-o", folder) == 0
    script = (folder / "run_om.sh").read_text()
    assert "python3 -m ais_bench" in script and "--input inputs/x,inputs/bias" in script
    assert line in script
    assert ("--dym" in script) == bool(kind)


def test_inputs_of_ones_own_are_taken(npuport: Command, model: Path, tmp_path: Path) -> None:
    own = tmp_path / "images"
    own.mkdir()
    for index in range(2):
        np.save(own / f"{index}.npy", np.full((1, 4), index, np.float32))
    folder = tmp_path / "inference"
    assert npuport("export", "inference", model, "--om", "net.om", "--input", f"x={own}", "-o", folder) == 0
    written = sorted((folder / "inputs" / "x").glob("*.npy"))
    assert [np.load(path)[0, 0] for path in written] == [0, 1]
    assert len(list((folder / "inputs" / "bias").glob("*.npy"))) == 2


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "--size batch=8"),
        (["--size", "batch=2", "--dynamic", "all"], "batch, image, dims or shape"),
        (["--size", "batch=2", "--input", "y=a.npy"], "no input y"),
        (["--size", "batch=2", "--input", "x"], "NAME=FILE.npy"),
        (["--size", "batch=2", "--input", "x=none.npy"], "neither an .npy file"),
    ],
)
def test_wrong_input_for_inference_gives_one_sentence(
    npuport: Command, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    folder = tmp_path / "inference"
    assert npuport("export", "inference", model, "--om", "net.om", *argv, "-o", folder) == 2
    assert said in capsys.readouterr().err
    assert not folder.exists()


def test_the_next_command_can_be_pasted(
    npuport: Command, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a check"
    argv = ["--om", "net.om", "--dynamic", "batch", "--size", "batch=2"]
    assert npuport("export", "inference", model, *argv, "-o", folder) == 0
    assert f"bash '{folder}'/run_om.sh" in capsys.readouterr().out
