"""ONNX files agree with PyTorch for sizes that were not exported with, or there is no file."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import exported_networks  # noqa: E402

NETWORKS = {
    "cnn": (["image=float32[batch,3,height,width]"], ["height=16,24", "width=16,40"]),
    "Encoder": (["ids=int64[batch,sequence]:0..99", "mask=int64[batch,sequence]:1..1"], []),
    "Tagger": (["frames=float32[batch,time,8]"], []),
    "Decoder": (
        [
            "ids=int64[batch,new]:0..49",
            "mask=int64[batch,past+new]:1..1",
            "past_key=float32[batch,2,past,8]",
            "past_value=float32[batch,2,past,8]",
        ],
        [],
    ),
    "Detector": (["image=float32[batch,3,height,width]"], ["height=32,64", "width=48,40"]),
}
# Sizes that the command itself did not try.
OTHERS = {
    "cnn": [{"image": (5, 3, 33, 18)}],
    "Encoder": [{"ids": (3, 11), "mask": (3, 11)}],
    "Tagger": [{"frames": (3, 13, 8)}],
    "Decoder": [
        {"ids": (2, 9), "mask": (2, 9), "past_key": (2, 2, 0, 8), "past_value": (2, 2, 0, 8)},
        {"ids": (1, 1), "mask": (1, 21), "past_key": (1, 2, 20, 8), "past_value": (1, 2, 20, 8)},
    ],
    "Detector": [{"image": (1, 3, 96, 72)}],
}
Command = Callable[..., int]


def options(name: str) -> list[str]:
    inputs, sizes = NETWORKS[name]
    return [text for one in inputs for text in ("--input", one)] + [text for one in sizes for text in ("--size", one)]


def model_of(name: str) -> torch.nn.Module:
    from npuport.export.cpu_only import OnCpu

    with OnCpu():
        return getattr(exported_networks, name)().eval()


def flat(returned: Any) -> list[torch.Tensor]:
    if isinstance(returned, torch.Tensor):
        return [returned]
    values = returned.values() if isinstance(returned, dict) else returned
    return [tensor for value in values for tensor in flat(value)]


@pytest.mark.parametrize("name", NETWORKS)
def test_five_kinds_of_networks_compute_the_same_in_onnxruntime_for_sizes_that_were_not_exported_with(
    npuport: Command, networks: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "model.onnx"
    assert npuport("export", "onnx", f"{networks}:{name}", *options(name), "-o", path) == 0
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    model = model_of(name)
    for shapes in OTHERS[name]:
        torch.manual_seed(1)
        tensors = {
            key: torch.randint(1, 50, shape) if key in ("ids", "mask") else torch.randn(shape)
            for key, shape in shapes.items()
        }
        from npuport.export.cpu_only import OnCpu

        with OnCpu(), torch.no_grad():
            wanted = flat(model(**tensors) if name in ("Encoder", "Decoder") else model(*tensors.values()))
        computed = session.run(None, {key: tensor.numpy() for key, tensor in tensors.items()})
        for one, other in zip(wanted, computed, strict=True):
            np.testing.assert_allclose(other, one.numpy(), rtol=1e-4, atol=1e-5)
        # What the file declares holds: torch 2.13 gives an LSTM's output the exported length as a fixed one.
        for declared, one in zip(session.get_outputs(), computed, strict=True):
            assert all(
                isinstance(axis, str) or axis == size for axis, size in zip(declared.shape, one.shape, strict=True)
            )


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_older_operator_sets_are_written_as_asked(npuport: Command, networks: Path, tmp_path: Path, opset: int) -> None:
    path = tmp_path / "model.onnx"
    assert npuport("export", "onnx", f"{networks}:cnn", *options("cnn"), "--opset", opset, "-o", path) == 0
    assert [one.version for one in onnx.load(str(path)).opset_import if not one.domain] == [opset]


@pytest.mark.parametrize(
    ("name", "opset", "said"),
    [
        ("Random", 18, "differs from PyTorch's"),
        ("Loop", 17, "differs from PyTorch's for batch=4"),  # the older exporter takes the batch for a constant
        ("Loop", 18, "axis batch of image became fixed"),
        ("OnNpu", 18, "npu_rms_norm"),
        ("Encoder", 17, "where PyTorch does not"),  # a reshape to the exported length
    ],
)
def test_what_does_not_compute_the_same_is_not_written_and_what_was_there_stays(
    npuport: Command,
    networks: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    opset: int,
    said: str,
) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("before")
    inputs = (
        options(name)
        if name in NETWORKS
        else ["--input", f"{'hidden' if name == 'OnNpu' else 'image'}=float32[batch,4]"]
    )
    if name == "Loop":
        inputs = ["--input", "image=float32[batch,3]"]
    assert npuport("export", "onnx", f"{networks}:{name}", *inputs, "--opset", opset, "-o", path) == 2
    error = capfd.readouterr().err
    assert said in error
    assert len(error.splitlines()) <= 2  # and nothing of what exporters print
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_code_that_names_devices_computes_on_the_cpu_and_other_devices_are_left_alone() -> None:
    from npuport.export.cpu_only import OnCpu

    with OnCpu():
        for device in ("cuda", "cuda:1", "npu:0", torch.device("cuda", 1), torch.device(type="cuda")):
            assert torch.zeros(1, device=device).device.type == "cpu"
            assert torch.zeros(1).to(device).device.type == "cpu"
        assert torch.zeros(1).cuda().device.type == "cpu"
        assert torch.nn.Linear(2, 2).cuda().weight.device.type == "cpu"
        # transformers builds models there before it loads their weights.
        with torch.device("meta"):
            assert torch.zeros(1).device.type == "meta"
        assert torch.zeros(1, device="meta").device.type == "meta"


def test_differences_are_over_the_largest_value_and_whole_numbers_are_exact() -> None:
    from npuport.export.checking import difference

    assert difference(np.array([1.0, -4.0]), np.array([1.0, -3.0])) == 0.25
    assert difference(np.array([1.0, np.inf]), np.array([1.0, np.inf])) == 0.0
    assert difference(np.array([1.0, np.nan]), np.array([1.0, 2.0])) == float("inf")
    assert difference(np.array([1.0, 2.0]), np.array([1.0, np.nan])) == float("inf")
    assert difference(np.array([2**53 + 1]), np.array([2**53 + 1])) == 0.0
    assert difference(np.array([2**53 + 1]), np.array([2**53])) > 0.0
    assert difference(np.zeros(2), np.zeros(2)) == 0.0


def test_axes_that_only_one_size_could_be_tried_of_are_not_called_dynamic(
    npuport: Command, networks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    sizes = ["--size", "channels=3,4,5"]
    run = npuport("export", "onnx", f"{networks}:cnn", "--input", "image=float32[2,channels,16,16]", *sizes, "-o", path)
    assert run == 2
    assert "untested" in capsys.readouterr().err
    assert not path.exists()


def test_weights_come_from_a_checkpoint_whatever_wraps_them(npuport: Command, networks: Path, tmp_path: Path) -> None:
    model = exported_networks.cnn()
    with torch.no_grad():
        model[-1].bias.fill_(100.0)
    weights = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
    checkpoint = tmp_path / "epoch3.pth.tar"
    torch.save(
        {"epoch": 3, "state_dict": weights, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}}, checkpoint
    )
    path = tmp_path / "model.onnx"
    run = npuport("export", "onnx", f"{networks}:cnn", *options("cnn"), "--checkpoint", checkpoint, "-o", path)
    assert run == 0
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"image": np.zeros((1, 3, 16, 16), np.float32)})
    assert (output > 90).all()


class Evil:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemError('was run')",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"weights": Evil()}, "Nothing else in it is run"),
        ({"9.weight": torch.zeros(10, 16)}, "another model"),
        ({"a": {"x": torch.zeros(1)}, "b": {"x": torch.zeros(1)}}, "--checkpoint-key"),
        ([torch.zeros(1)], "no weights by name"),
    ],
)
def test_checkpoints_that_are_no_weights_are_refused_in_one_sentence(
    npuport: Command,
    networks: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: object,
    said: str,
) -> None:
    checkpoint = tmp_path / "weights.pt"
    torch.save(content, checkpoint)
    path = tmp_path / "model.onnx"
    run = npuport("export", "onnx", f"{networks}:cnn", *options("cnn"), "--checkpoint", checkpoint, "-o", path)
    assert run == 2
    error = capsys.readouterr().err
    assert said in error
    assert "was run" not in error
    assert str(checkpoint) in error


def test_an_empty_checkpoint_is_refused_with_a_reason(
    npuport: Command, networks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "weights.pt"
    checkpoint.touch()
    path = tmp_path / "model.onnx"
    assert npuport("export", "onnx", f"{networks}:cnn", *options("cnn"), "--checkpoint", checkpoint, "-o", path) == 2
    assert "as weights alone (EOFError)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nowhere:net", "--input", "x=float32[2]"], "cannot be imported"),
        (["net", "--input", "x=float32[2]"], "is no model"),
        (["{networks}:missing", "--input", "x=float32[2]"], "has no missing"),
        (["{networks}:torch.ones", "--input", "x=float32[2]"], "--arguments"),
        (["{networks}:cnn", "--input", "x=float32(2)"], "is not understood"),
        (["{networks}:cnn", "--input", "x=bfloat16[2]"], "no dtype"),
        (["{networks}:cnn", "--input", "x=float32[batch,-1]"], "no axis"),
        (["{networks}:cnn", "--input", "x=float32[2]", "--input", "x=float32[2]"], "twice"),
        (["{networks}:cnn", "--input", "x=float32[2]", "--size", "batch=2"], "no input has an axis"),
        (["{networks}:cnn", "--input", "x=float32[2]", "--size", "batch"], "is not understood"),
        (["{networks}:cnn"], "give each input"),
        (["{networks}:Coarse", "--input", "x=float32[2,4]"], "bfloat16"),
        (["{networks}:Encoder", "--input", "ids=int64[2,3]", "--input", "msk=int64[2,3]"], "msk: forward has no"),
        (["{networks}:cnn", "--cache"], "Hugging Face folder"),
        (["{networks}:cnn", "--input", "x=float32[2]", "--arguments", "[1]"], "JSON object"),
        (["{networks}:cnn", "--input", "x=float32[2]", "--arguments", "{"], "no JSON"),
        (["{networks}:cnn", "--input", "x=float32[2,4,16,16]"], "the model itself fails"),
        (["{networks}:cnn", "--input", "x=float32[2,3,16,16]", "--output-names", "a,b"], "--output-names"),
    ],
)
def test_wrong_input_gives_one_sentence(
    npuport: Command,
    networks: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    said: str,
) -> None:
    arguments = [one.replace("{networks}", str(networks)) for one in argv]
    assert npuport("export", "onnx", *arguments, "-o", tmp_path / "model.onnx") == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_files_may_be_called_as_modules_of_python_and_scripts_that_end_are_named(
    npuport: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import types

    (tmp_path / "types.py").write_text("import torch\nnet = torch.nn.Linear(4, 2)\n")
    path = tmp_path / "model.onnx"
    argv = ["--input", "hidden=float32[batch,4]", "--opset", 17, "-o", path]
    assert npuport("export", "onnx", f"{tmp_path / 'types.py'}:net", *argv) == 0
    assert sys.modules["types"] is types
    (tmp_path / "train.py").write_text("import argparse\nargparse.ArgumentParser().parse_args(['--unknown'])\n")
    assert npuport("export", "onnx", f"{tmp_path / 'train.py'}:net", *argv) == 2
    assert "ends the program when it is imported" in capsys.readouterr().err


@pytest.mark.sim
def test_a_hugging_face_folder_and_a_ported_module_are_exported_on_the_simulated_npu(tmp_path: Path) -> None:
    if not all(map(importlib.util.find_spec, ("torch_npu", "transformers"))):
        pytest.skip("needs torch_npu and transformers")
    program = tmp_path / "both.py"
    program.write_text(
        "import sys, torch, torch_npu, transformers\n"
        "from npuport.cli import main\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.linear = torch.nn.Linear(4, 4).npu()\n"
        "        self.to('npu:0')\n"
        "    def forward(self, hidden):\n"
        "        return self.linear(hidden) + torch.ones(4, device='npu')\n"
        "def export(*argv):\n"
        "    sys.argv = ['npuport', 'export', 'onnx', *argv]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as ended:\n"
        "        assert not ended.code, argv\n"
        "if __name__ == '__main__':\n"
        "    config = transformers.BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2,\n"
        "                                     intermediate_size=64, vocab_size=100)\n"
        "    transformers.BertForSequenceClassification(config).save_pretrained('bert')\n"
        "    export('both.py:Net', '--input', 'hidden=float32[batch,4]', '-o', 'ported.onnx')\n"
        "    export('bert', '--input', 'input_ids=int64[batch,sequence]:0..99', '--input',\n"
        "           'attention_mask=int64[batch,sequence]:1..1', '-o', 'bert.onnx')\n"
        "    config = transformers.LlamaConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4,\n"
        "                                      num_key_value_heads=2, intermediate_size=64, vocab_size=100)\n"
        "    transformers.LlamaForCausalLM(config).bfloat16().save_pretrained('llama')\n"
        "    export('llama', '--cache', '-o', 'llama.onnx')\n"
    )
    command = [sys.executable, "-m", "npuport", "run", "--sim", "--", sys.executable, "both.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "logits float32[batch,2]" in run.stdout
    assert "past_key_values.0.key float32[batch,2,past,8]" in run.stdout
    assert "present.0.value float32[batch,2," in run.stdout
    assert "batch=1, new=1, past=1 " in run.stdout
    assert (tmp_path / "ported.onnx").is_file() and (tmp_path / "bert.onnx").is_file()
