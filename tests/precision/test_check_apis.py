"""APIs in dumps of msprobe judged alone: a small dump, written as mindstudio-probe 26.2.0 writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msprobe_dumps import backward, forward, small_gpt, tensor, write_dump  # noqa: E402

from npuport.cli.precision_check_ops import check_folder  # noqa: E402
from npuport.errors import UserError  # noqa: E402


def saved(folder: Path, name: str, value: Any) -> dict[str, Any]:
    """The entry of a tensor, which is saved."""
    (folder / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
    value = value.detach().contiguous().clone()
    torch.save(value, folder / "dump_tensor_data" / f"{name}.pt")
    numbers = [float(one) for one in (value.max(), value.min(), value.float().mean(), value.float().norm())]
    names = ("largest", "smallest", "mean", "norm")
    return tensor(
        *value.shape, dtype=str(value.dtype), data_name=f"{name}.pt", **dict(zip(names, numbers, strict=True))
    )


def dump_of(folder: Path, wrong: str = "") -> Path:
    """Some APIs of a training step; the result of one is doubled."""
    torch.manual_seed(0)
    data: dict[str, Any] = {}

    def keep(name: str, part: str, value: Any) -> dict[str, Any]:
        return saved(folder, f"{name}.{part}", 2 * value if f"{name}.{part}" == wrong else value)

    x, weight = torch.randn(4, 8), torch.randn(16, 8)
    inputs = [saved(folder, "x", x), saved(folder, "weight", weight), None]
    data["Functional.linear.0.forward"] = forward(
        inputs, [keep("Functional.linear.0.forward", "output.0", torch.nn.functional.linear(x, weight))]
    )
    y = torch.nn.functional.linear(x, weight).requires_grad_()
    made, grad = torch.nn.functional.gelu(y), torch.randn(4, 16)
    (of_y,) = torch.autograd.grad(made, y, grad)
    data["Functional.gelu.0.forward"] = forward(
        [saved(folder, "y", y)], [keep("Functional.gelu.0.forward", "output.0", made)]
    )
    data["Functional.gelu.0.backward"] = backward(
        [saved(folder, "grad", grad)], [keep("Functional.gelu.0.backward", "output.0", of_y)]
    )
    flipped = x.t()  # the same values in another order, which statistics do not tell
    data["Tensor.matmul.0.forward"] = forward(
        [saved(folder, "flipped", flipped), saved(folder, "z", made[:, :3])],
        [keep("Tensor.matmul.0.forward", "output.0", flipped @ made[:, :3])],
    )
    data["Functional.dropout.0.forward"] = forward(
        [saved(folder, "y", y), {"type": "float", "value": 0.5}], [saved(folder, "dropped", y)]
    )
    data["NPU.npu_swiglu.0.forward"] = forward(
        [saved(folder, "y", y)],
        [keep("NPU.npu_swiglu.0.forward", "output.0", torch.nn.functional.silu(y[:, :8]) * y[:, 8:])],
    )
    data["Functional.linear.0.backward"] = backward([saved(folder, "grad", grad)], [saved(folder, "inner", grad)])
    write_dump(folder, data, task="tensor")
    return folder


def test_apis_of_a_dump_of_msprobe_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = dump_of(tmp_path / "步 0" / "step0" / "rank0")
    assert check_folder(dump.parent.parent, "*", "", None, None, as_json=False) == 0
    told = capsys.readouterr().out
    assert "7 operator calls: 5 right, 0 wrong, 2 not judged" in told
    assert "random: Functional.dropout.0" in told
    assert "the dump has other gradients than those of its tensors: Functional.linear.0" in told


@pytest.mark.parametrize(
    "wrong",
    [
        "Functional.linear.0.forward.output.0",
        "Functional.gelu.0.backward.output.0",
        "Tensor.matmul.0.forward.output.0",
        "NPU.npu_swiglu.0.forward.output.0",
    ],
)
def test_a_doubled_result_of_an_api_is_caught(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_folder(dump_of(tmp_path, wrong) / "dump.json", "*", "", None, None, as_json=False) == 1
    told = capsys.readouterr().out
    assert " 1 wrong" in told and "the result is 2 x what it should be" in told
    assert f"{wrong.partition('.forward')[0].partition('.backward')[0]} (" in told


def test_dumps_that_lack_what_is_needed_are_refused(tmp_path: Path) -> None:
    write_dump(tmp_path / "statistics", small_gpt())
    write_dump(tmp_path / "structure", {}, task="structure")
    modules = {name: entry for name, entry in small_gpt().items() if name.startswith("Module")}
    write_dump(tmp_path / "modules", modules, level="L0")
    for name, words in {"statistics": "task tensor", "structure": "structure only", "modules": "level L1"}.items():
        with pytest.raises(UserError, match=words):
            check_folder(tmp_path / name, "*", "", None, None, as_json=False)
    with pytest.raises(UserError, match="--repro"):
        check_folder(dump_of(tmp_path / "whole"), "*", "", None, tmp_path, as_json=False)


def test_a_tensor_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = dump_of(tmp_path)
    (dump / "dump_tensor_data" / "weight.pt").unlink()
    assert check_folder(dump, "linear", "", None, None, as_json=False) == 0
    assert "the values of a tensor were not recorded: Functional.linear.0" in capsys.readouterr().out
