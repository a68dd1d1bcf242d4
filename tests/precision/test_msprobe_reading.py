"""Dumps of msprobe in every layout are read as steps, or refused in one clear sentence."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from msprobe_dumps import PARENTS, STACKS, backward, forward, small_gpt, tensor, write_dump

torch = pytest.importorskip("torch")

from npuport.cli.precision_compare import compare_folders  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision.dumps import read_any_step, steps_in  # noqa: E402
from npuport.precision.msprobe.names import ApiName, ModuleName, parsed  # noqa: E402
from npuport.precision.operators.alignment import align  # noqa: E402
from npuport.precision.operators.calls import Step, references  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402

REAL = Path(os.environ.get("NPUPORT_MSPROBE_DUMPS", Path(__file__).parents[3] / "shared" / "data" / "dumps"))
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="needs real dumps in NPUPORT_MSPROBE_DUMPS")


def read(folder: Path) -> Step:
    (file,) = steps_in(folder).values()
    return read_any_step(file)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Functional.linear.3.forward", ApiName("Functional", "linear", 3, "forward")),
        ("Tensor.__add__.12.backward", ApiName("Tensor", "__add__", 12, "backward")),
        ("Aten.add.Tensor.0.forward", ApiName("Aten", "add.Tensor", 0, "forward")),
        ("Module.layers.0.mlp.Linear.forward.3", ModuleName("layers.0.mlp", "Linear", "forward", 3)),
        ("Module.0.fc.Linear.backward.1", ModuleName("0.fc", "Linear", "backward", 1)),
        ("Module.fc.Linear.parameters_grad", ModuleName("fc", "Linear", "parameters_grad", 0)),
        ("hidden_grad.0.debug", None),
    ],
)
def test_names(name: str, expected: object) -> None:
    assert parsed(name) == expected


@pytest.mark.parametrize(
    "layout", ["", "rank3", "proc77", "step2/rank3", "step2/rank", "step5/proc12", "a b/中文/step2/rank3"]
)
def test_every_layout_is_found(layout: str, tmp_path: Path) -> None:
    write_dump(tmp_path / layout, small_gpt())
    ((step, rank),) = steps_in(tmp_path if "中" not in layout else tmp_path / "a b" / "中文")
    assert step == (2 if "step2" in layout else 5 if "step5" in layout else 0)
    assert rank == (3 if "rank3" in layout else 0)


def test_a_file_and_a_folder_of_one_step_are_dumps_too(tmp_path: Path) -> None:
    file = write_dump(tmp_path / "step4" / "rank1", small_gpt())
    assert (read_any_step(file).step, read_any_step(file).rank) == (4, 1)
    assert list(steps_in(tmp_path / "step4")) == [(4, 1)]
    assert list(steps_in(file.parent)) == [(4, 1)]


def test_calls_know_module_phase_line_and_what_made_their_inputs(tmp_path: Path) -> None:
    write_dump(tmp_path, small_gpt(), parents=PARENTS, stacks=STACKS)
    step = read(tmp_path)
    linear, gelu, total, gelu_back, linear_back = step.calls
    assert [call.operator for call in step.calls][:3] == ["Functional.linear.0", "Functional.gelu.0", "Tensor.sum.0"]
    assert (linear.module, linear.phase, linear.line) == ("up", "forward", "model.py:12")
    assert (linear_back.module, linear_back.phase) == ("up", "backward")
    assert gelu.inputs[0].storage == linear.outputs[0].storage != linear.inputs[0].storage
    assert gelu.keywords["approximate"] == "none"
    assert linear.inputs[0] in linear_back.inputs  # what the forward call was given decides the backward call too
    assert gelu_back.outputs[0].storage == linear_back.inputs[0].storage
    assert [(one.path, one.class_name) for one in step.modules] == [("up", "Linear")]
    assert step.names[linear.inputs[1].storage] == "parameter up.weight"
    assert step.names[linear_back.outputs[0].storage] == "gradient of up.weight"
    assert total.outputs[0].shape == ()
    assert not step.has_tensors


def test_stacks_of_older_versions(tmp_path: Path) -> None:
    write_dump(tmp_path, small_gpt(), stacks={"Functional.linear.0.forward": STACKS["0"][1]})
    assert read(tmp_path).calls[0].line == "model.py:12"


def test_nan_and_infinity_are_read_and_found(tmp_path: Path) -> None:
    write_dump(tmp_path / "good", small_gpt())
    file = write_dump(tmp_path / "bad", small_gpt(math.nan, largest=math.nan, smallest=-math.inf))
    assert "NaN" in file.read_text() and "-Infinity" in file.read_text()
    first = compare(read(tmp_path / "good"), read(tmp_path / "bad")).suspects[0]
    assert (first.call.operator, first.kind) == ("Functional.gelu.0", "not finite")


def test_a_mask_of_minus_infinity_in_both_is_none(tmp_path: Path) -> None:
    data = {"Tensor.masked_fill.0.forward": forward([tensor(4)], [tensor(4, smallest=-math.inf, norm=math.inf)])}
    write_dump(tmp_path, data)
    assert compare(read(tmp_path), read(tmp_path)).suspects == ()


def test_calls_are_matched_with_those_of_a_level_without_modules(tmp_path: Path) -> None:
    """Level L1 tells no modules, mix does."""
    write_dump(tmp_path / "L1", small_gpt())
    write_dump(tmp_path / "mix", small_gpt(), parents=PARENTS, level="mix")
    steps = read(tmp_path / "L1"), read(tmp_path / "mix")
    assert [call.module for call in steps[0].calls] != [call.module for call in steps[1].calls]
    for one, other in (steps, steps[::-1]):
        alignment = align(one, other)
        assert len(alignment.pairs) == len(one.calls) and not alignment.differences


def test_modules_are_calls_where_there_are_no_others(tmp_path: Path) -> None:
    x, y = tensor(4, 8, norm=5.0), tensor(4, 16, norm=7.0)
    data = {
        "Module.up.Linear.forward.0": {**forward([x], [y]), "parameters": {"weight": tensor(16, 8)}},
        "Module.up.Linear.backward.0": backward([y], [x]),
        "Module.up.Linear.parameters_grad": {"weight": [tensor(16, 8, norm=2.0)]},
    }
    write_dump(tmp_path, data, level="L0")
    step = read(tmp_path)
    assert [(call.operator, call.module) for call in step.calls] == [
        ("Module.Linear.0", "up"),
        ("Module.Linear.backward.0", "up"),
        ("Module.Linear.parameters_grad.0", "up"),
    ]
    assert len(step.calls[2].inputs) == 2  # those of the forward call
    assert len(step.calls[2].outputs) == 1


@pytest.mark.parametrize(("one", "other"), [("adbb5ccb", "011ffca6"), ("0x00000000adbb5ccb", "0x00000000011ffca6")])
def test_checksums_alone_tell_the_first_call_with_other_bits(one: str, other: str, tmp_path: Path) -> None:
    def dump(folder: str, of_result: str) -> None:
        nothing = {"largest": None, "smallest": None, "mean": None, "norm": None}
        x, y = tensor(4, md5="ffffffff", **nothing), tensor(4, md5=of_result, **nothing)
        write_dump(
            tmp_path / folder, {"Torch.exp.0.forward": forward([x], [x]), "Torch.log.0.forward": forward([x], [y])}
        )

    dump("a", one)
    dump("b", other)
    assert compare(read(tmp_path / "a"), read(tmp_path / "a")).suspects == ()
    (suspect,) = compare(read(tmp_path / "a"), read(tmp_path / "b")).suspects
    assert suspect.call.operator == "Torch.log.0"


def test_odd_tensors_are_read(tmp_path: Path) -> None:
    nothing = {"largest": None, "smallest": None, "mean": None, "norm": None}
    odd = [
        tensor(0, 3, **nothing),
        tensor(2, dtype="torch.complex64", **nothing),
        tensor(2, dtype="torch.quint8", **nothing),
        tensor(2, dtype="torch.float8_e4m3fn", **nothing),
        tensor(3, dtype="torch.bool", largest=True, smallest=False, mean=None, norm=None),
        {"type": "torch.ProcessGroup", "group_ranks": [0, 1]},
        {"type": "torch.dtype", "value": "torch.float16"},
        {"type": "slice", "value": [None, 3, None]},
        [tensor(2), None, {"type": "int", "value": 3}],
    ]
    write_dump(tmp_path, {"Torch.f.0.forward": forward(odd, odd)})
    step = read(tmp_path)
    assert len(list(references(step.calls[0].arguments))) == 6
    assert step.calls[0].arguments[6] == ("dtype", "float16")
    assert compare(step, step).suspects == ()


def test_tensors_are_read_when_there_and_missing_ones_do_not_matter(tmp_path: Path) -> None:
    def dump(folder: str, factor: float) -> None:
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(64, generator=generator)
        data, before = {}, x
        for number in range(12):
            after = before.exp().mul(0.3) * (factor if number == 7 else 1.0)
            names = [f"Torch.exp.{number}.forward.{part}.0.pt" for part in ("input", "output")]
            (tmp_path / folder / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
            for name, value in zip(names, (before, after), strict=True):
                torch.save(value, tmp_path / folder / "dump_tensor_data" / name)
            parts = [
                tensor(64, norm=float(value.norm()), mean=float(value.mean()), largest=float(value.max()),
                       smallest=float(value.min()), data_name=name)
                for name, value in zip(names, (before, after), strict=True)
            ]  # fmt: skip
            data[f"Torch.exp.{number}.forward"] = forward(parts[:1], parts[1:])
            before = after
        write_dump(tmp_path / folder, data, task="tensor")

    dump("a", 1.0)
    dump("b", 1.0001)
    steps = read(tmp_path / "a"), read(tmp_path / "b")
    ref = steps[0].calls[0].outputs[0]
    assert steps[0].has_tensors and steps[0].tensor(ref).shape == (64,)
    assert compare(*steps).suspects[0].call.operator == "Torch.exp.7"
    for file in (tmp_path / "b" / "dump_tensor_data").glob("*exp.[2-6]*"):
        file.unlink()
    assert compare(read(tmp_path / "a"), read(tmp_path / "b")).suspects[0].call.operator == "Torch.exp.7"
    (tmp_path / "b" / "dump_tensor_data" / "Torch.exp.7.forward.output.0.pt").write_bytes(b"half")
    with pytest.raises(UserError, match=r"exp\.7\.forward\.output\.0\.pt"):
        compare(read(tmp_path / "a"), read(tmp_path / "b"))


def test_values_with_equal_statistics_are_read_in_their_own_order(tmp_path: Path) -> None:
    """A transposed matrix, and rows of one matrix that was saved whole with each: nothing but the order differs."""
    square, unit = torch.arange(16.0).view(4, 4), torch.eye(4)
    saved = [square, square.t().contiguous(), square.view(2, 8), unit[1], unit[2]]
    (tmp_path / "dump_tensor_data").mkdir()
    parts = []
    for number, value in enumerate(saved):
        name = f"Torch.f.0.forward.output.{number}.pt"
        torch.save(value, tmp_path / "dump_tensor_data" / name)
        parts.append(tensor(*value.shape, norm=float(value.norm()), data_name=name))
    write_dump(tmp_path, {"Torch.f.0.forward": forward([], parts)}, task="tensor")
    step = read(tmp_path)
    refs = step.calls[0].outputs
    assert [step.tensor(ref).tolist() for ref in refs] == [value.tolist() for value in saved]
    # By their statistics they are the same values, so that what one call made is known in another shape and order.
    assert [ref.storage for ref in refs] == [0, 0, 0, 1, 1]
    assert refs[0].offset == refs[2].offset != refs[1].offset


@pytest.mark.filterwarnings("ignore")
def test_tensors_of_every_kind_are_read_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.arange(12.0).view(3, 4) - 4
    kinds = [
        torch.quantize_per_tensor(x, 0.5, 0, torch.qint8), x.to_sparse(), x.to_sparse_csr(), torch.complex(x, x),
        torch.complex(x, x).conj(), torch.complex(x, x).conj().imag, x.to(torch.float8_e4m3fn), x.half(),
        x.abs().to(torch.uint16), x > 0, x.t(), torch.empty(0, 4), torch.tensor(3.0), torch.nn.Parameter(x),
        torch.full((3, 4), -math.inf),
    ]  # fmt: skip
    (tmp_path / "dump_tensor_data").mkdir()
    data = {}
    for number, kind in enumerate(kinds):
        name = f"Torch.f.{number}.forward.output.0.pt"
        torch.save(kind, tmp_path / "dump_tensor_data" / name)
        parts = [tensor(*kind.shape, dtype=str(kind.dtype), norm=number + 1.0, data_name=name)]
        data[f"Torch.f.{number}.forward"] = forward([], parts)
    write_dump(tmp_path, data, task="tensor")
    step = read(tmp_path)
    for call, kind in zip(step.calls, kinds, strict=True):
        expected = kind.dequantize() if kind.is_quantized else kind.to_dense() if kind.layout != torch.strided else kind
        assert torch.equal(step.tensor(call.outputs[0]), expected.detach().resolve_conj().resolve_neg())
    table = tmp_path / "table.csv"
    assert compare_folders(tmp_path, tmp_path, as_json=False, columns=table, html=tmp_path / "page.html") == 0
    assert "Nothing is suspected" in capsys.readouterr().out
    assert len(table.read_text(encoding="utf-8").splitlines()) == len(kinds) + 1


def test_what_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    file = write_dump(tmp_path / "half", small_gpt())
    file.write_text(file.read_text()[:-300])
    with pytest.raises(UserError, match=r"dump\.json is not whole JSON"):
        read(tmp_path / "half")
    for name in ("proc1", "proc2"):
        write_dump(tmp_path / "two" / "step0" / name, small_gpt())
    with pytest.raises(UserError, match="several dumps of step 0: proc1 and proc2"):
        steps_in(tmp_path / "two")
    write_dump(tmp_path / "structure", {}, task="structure")
    with pytest.raises(UserError, match="structure only"):
        read(tmp_path / "structure")
    (tmp_path / "no").mkdir()
    for content in ("[1]", "{}", json.dumps({"data": {}, "framework": "mindspore"})):
        (tmp_path / "no" / "dump.json").write_text(content)
        with pytest.raises(UserError, match=r"no[/\\]dump\.json"):
            read(tmp_path / "no")
    with pytest.raises(UserError, match="does not exist"):
        read_any_step(tmp_path / "none" / "dump.json")


def test_the_command_compares_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_dump(tmp_path / "good" / "step0" / "proc1", small_gpt(), parents=PARENTS, stacks=STACKS)
    write_dump(
        tmp_path / "bad" / "step0" / "proc2", small_gpt(math.nan, largest=math.nan), parents=PARENTS, stacks=STACKS
    )
    assert compare_folders(tmp_path / "good", tmp_path / "bad", as_json=False) == 1
    assert "Functional.gelu.0 (forward)      model.py:12" in capsys.readouterr().out
    assert compare_folders(tmp_path / "good", tmp_path / "good", as_json=False) == 0


@needs_real
@pytest.mark.parametrize(
    "name",
    ["cnn_tensor_mix", "gpt_md5_L1", "gpt_statistics_L0", "gpt_statistics_mix", "gpt_tensor_mix", "gpt_xor_L1"],
)
def test_real_dumps_are_read(name: str) -> None:
    step = read(REAL / "dump" / name)
    document = json.loads((REAL / "dump" / name / "dump.json").read_text(encoding="utf-8"))
    modules = [key for key in document["data"] if key.startswith("Module.")]
    gradients = [key for key in modules if ".parameters_grad" in key]
    assert len(step.calls) == len(document["data"]) - (0 if name.endswith("L0") else len(modules))
    assert len(step.modules) == (0 if name.endswith("L0") else len(modules) - len(gradients))
    assert compare(step, step).suspects == ()


@needs_real
def test_a_real_nan_is_named() -> None:
    steps = [read(REAL / "dump" / name) for name in ("gpt_statistics_mix", "gpt_nan_statistics_mix")]
    # Two multiplications by 1e30 that the reference does not have; a softmax is only the first matched call that fails.
    (suspect,) = compare(*steps).suspects
    assert (suspect.call.operator, suspect.call.line) == ("Tensor.__mul__.0", "models.py:34")


@needs_real
def test_real_debug_saves_are_read() -> None:
    found = steps_in(REAL / "dump" / "debug_save")
    assert sorted(found) == [(0, 0), (1, 0)]
    step = read_any_step(found[0, 0])
    assert step.calls[0].operator == "saved.hidden.0.debug"
    assert step.tensor(step.calls[0].outputs[0]).shape == (4, 8)
