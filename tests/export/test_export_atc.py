"""ATC commands are judged as CANN's documents say, and public ones that work are not called wrong."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport import facts
from npuport.export.atc import checking
from npuport.export.atc.aipp import check_aipp
from npuport.export.atc.checking import check_command
from npuport.export.atc.command import AtcCommand, commands_in, written
from npuport.export.onnx_graph import Graph
from npuport.facts.atc import Setting
from npuport.findings import Severity

VALID = {"model": "a.onnx", "framework": "5", "output": "a", "soc_version": "Ascend310P3", "input_shape": "x:1,3,8,8"}
VALUES = {
    "dynamic_batch_size": "1,2",
    "dynamic_image_size": "8,8;16,16",
    "dynamic_dims": "1,2;3,4",
    "input_shape": "x:1,3,8,8",
    "input_shape_range": "x:[1~2,3,8,8]",
    "precision_mode": "force_fp16",
    "precision_mode_v2": "fp16",
    "op_select_implmode": "high_precision",
    "deterministic_level": "1",
    "deterministic": "1",
    "host_env_os": "linux",
    "host_env_cpu": "aarch64",
    "framework": "5",
}


def command(**options: str) -> AtcCommand:
    return AtcCommand({**VALID, **options})


def judged(
    given: AtcCommand, *, graph: Graph | None = None, folder: Path = Path("nowhere")
) -> list[tuple[str, str, str]]:
    problems = check_command(given, graph, folder)
    return [(one.severity.value, one.code, str(one.sentence)) for one in problems]


def errors(given: AtcCommand) -> list[str]:
    return [sentence for severity, _, sentence in judged(given) if severity == "error"]


def having(*settings: Setting) -> dict[str, str]:
    return {one.option: one.value or VALUES.get(one.option, "given") for one in settings if not one.absent}


@pytest.mark.parametrize("one", facts.all_atc_exclusions(), ids=lambda one: f"{one.first} {one.second}")
def test_each_documented_exclusion_is_found_with_its_error_and_source(one: facts.AtcExclusion) -> None:
    both = AtcCommand({**VALID, **having(one.first, one.second)})
    found = [each for each in check_command(both, None, Path()) if each.basis == one.basis]
    wanted = Severity.ERROR if one.effect == "refused" else Severity.WARNING
    assert any(
        each.severity is wanted and each.code == one.code and {str(one.first), str(one.second)} <= words(each.sentence)
        for each in found
    )
    for alone in (one.first, one.second):
        options = AtcCommand({**VALID, **having(alone)})
        pairs = [words(each.sentence) for each in check_command(options, None, Path())]
        # --input_shape and --framework stand in every valid command.
        assert {str(one.first), str(one.second)} not in pairs or {one.first.option, one.second.option} & {*VALID}


def words(sentence: object) -> set[str]:
    values = getattr(sentence, "values", {})
    return {str(values[name]) for name in ("first", "second") if name in values}


@pytest.mark.parametrize("one", facts.all_atc_requirements(), ids=lambda one: str(one.setting))
def test_each_documented_requirement_is_found_and_met(one: facts.AtcRequirement) -> None:
    options = {**VALID, **having(one.setting)}
    for need in one.needs:
        options.pop(need.option, None)
    if any(need.absent for need in one.needs):
        options["input_format"] = "ND"

    def found(given: dict[str, str]) -> bool:
        return any(
            each.basis == one.basis and "needs" in each.sentence.values
            for each in check_command(AtcCommand(given), None, Path())
        )

    assert found(options)
    met = next(need for need in one.needs if not need.absent)
    assert not found({**options, **having(met)})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"input_shape": "data:-1,3,416,416;info:-1,4", "dynamic_batch_size": "1,2,4,8"},
        {"input_shape": "data:8,3,-1,-1;info:8,4,-1,-1", "dynamic_image_size": "416,416;832,832"},
        {"framework": "3", "model": "a.pb", "input_shape": "a:1,-1,-1,3", "dynamic_image_size": "8,8;16,16"},
        {"input_shape": "data:1,-1", "dynamic_dims": "4;8;16;64", "input_format": "ND"},
        {"input_shape": "a:1,1,40,-1;b:1,-1;c:-1,-1", "dynamic_dims": "20,20,1,1;40,40,2,2", "input_format": "ND"},
        {"input_shape": "a:1~10,32,208,208;b:16,64,100~208,100~208"},
        {"input_shape": "-1,1~2,3,4;2,3,4~7,-1"},
        {"input_shape": "a:;b:16,32,208,208"},
        {"input_shape": "A:-1,32,208,208;B:;C:16,64,208,208", "dynamic_batch_size": "1,2,4"},
        {"output_type": "conv1:0:FP16", "out_nodes": "conv1:0"},
        {"precision_mode_v2": "mixed_float16", "modify_mixlist": "mix.json"},
    ],
)
def test_commands_as_documents_write_them_have_no_errors(options: dict[str, str]) -> None:
    assert errors(command(**options)) == []


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ({"dynamic_batch_size": "4", "input_shape": "x:-1,3"}, "E10035", "two profiles"),
        ({"dynamic_batch_size": ",".join(map(str, range(1, 102))), "input_shape": "x:-1,3"}, "E10036", "101"),
        ({"dynamic_batch_size": "1,1", "input_shape": "x:-1,3"}, "E10039", "twice"),
        ({"dynamic_batch_size": "1;2", "input_shape": "x:-1,3"}, "E10003", "no profile"),
        ({"dynamic_batch_size": "1,2", "input_shape": "x:1,3"}, "E10031", "-1"),
        ({"dynamic_batch_size": "1,2", "input_shape": "x:-1,-1"}, "E10018", "only the first size"),
        ({"dynamic_image_size": "8,8;16,16", "input_shape": "x:-1,3,8,8"}, "E10019", "height and width"),
        ({"dynamic_image_size": "8,8;16,16", "input_shape": "x:1,3,-1,-1", "input_format": "ND"}, "", "needs"),
        ({"dynamic_image_size": "8,8,8;16,16,16", "input_shape": "x:1,3,-1,-1"}, "E10020", "a height and a width"),
        ({"dynamic_dims": "1,2;3", "input_shape": "x:-1,-1"}, "E10037", "different numbers"),
        ({"dynamic_dims": "1,2;3,4", "input_shape": "x:-1,3"}, "E10003", "1 axes"),
        ({"dynamic_dims": "1,2;3,4", "input_shape": "x:1,3"}, "E10001", "has no -1"),
        ({"dynamic_dims": "1;2", "input_shape": "x:1~4,3"}, "E10040", "no range"),
        ({"input_shape": "x:1,a"}, "E10002", "no size"),
        ({"input_shape": "x:1,0"}, "E10011", "no size of an axis"),
        ({"input_shape": "x:4~2,3"}, "E10002", "empty"),
        ({"input_shape": "x:1;x:2"}, "E10002", "twice"),
        ({"input_shape": "x:-1,3", "soc_version": "Ascend310B4"}, "", "no sizes that vary"),
        ({"precision_mode": "fp16"}, "E10001", "force_fp16"),
        ({"precision_mode_v2": "mixed_bfloat16"}, "", "no bfloat16"),
        ({"precision_mode_v2": "cube_hif8", "soc_version": "Ascend910B3"}, "", "no hifloat8"),
        ({"output_type": "BF16"}, "E10001", "FP32"),
        ({"output_type": "a:0:FP16"}, "", "--out_nodes"),
        ({"input_format": "NHWC"}, "E10001", "NCHW, ND, NCDHW"),
        ({"soc_version": "910B3"}, "", "begins with Ascend"),
        ({"input_shap": "x:1"}, "", "Did you mean --input_shape"),
        ({"framework": "4"}, "E10001", "0, 1, 3, 5"),
    ],
)
def test_wrong_commands_get_the_error_that_cann_has_for_them(options: dict[str, str], code: str, said: str) -> None:
    found = [(one, sentence) for severity, one, sentence in judged(command(**options)) if severity == "error"]
    assert any(one == code and said in sentence for one, sentence in found), found


@pytest.mark.parametrize(
    ("soc", "profiles", "refused"),
    [("Ascend310P3", 100, False), ("Ascend310P3", 101, True), ("Ascend950", 256, False), ("Ascend950", 257, True)],
)
def test_the_most_profiles_depend_on_the_chip(soc: str, profiles: int, refused: bool) -> None:
    sizes = ",".join(map(str, range(1, profiles + 1)))
    given = command(soc_version=soc, input_shape="x:-1,3", dynamic_batch_size=sizes)
    assert bool(errors(given)) == refused


def test_options_are_read_as_the_shell_and_atc_read_them() -> None:
    script = """#!/bin/bash
soc=Ascend310P3
atc --model=net.onnx --framework 5 --input-shape="x:-1,3;\\
y:1,2" \\
    --output=net_bs${bs} --soc_version=$soc --dynamic_batch="1,2"
numactl -C 0-7 /usr/local/bin/atc --mode=6 > log.txt --om=net.om
echo "atc --model=not.this"
"""
    first, second = commands_in(script)
    assert first.options == {
        "model": "net.onnx",
        "framework": "5",
        "input_shape": "x:-1,3;y:1,2",
        "output": None,  # only known when the script runs
        "soc_version": "Ascend310P3",
        "dynamic_batch_size": "1,2",  # ATC takes the beginning of a name
    }
    assert first.line == 3
    (cut,) = commands_in("atc --model=a.onnx --framework=5\\ \n  --output=a\n")
    assert cut.options == {"model": "a.onnx", "framework": "5"}
    assert any("the command ends there" in said for said in errors(cut))
    assert second.options == {"mode": "6", "om": "net.om"}
    assert errors(second) == []


def test_blocks_of_code_in_documents_are_read_and_their_placeholders_are_no_values() -> None:
    document = """Text atc --no.

1. Run

   ```bash
   atc --model=a.onnx --framework=5 --output=a_{bs} \\
     --input_shape="x:{bs},3" --soc_version=<soc>
   ```
"""
    (one,) = commands_in(document, markdown=True)
    assert one.line == 6
    assert errors(one) == []
    (short,) = commands_in("atc --input_shape='x:1,3' --log=error ...")
    assert errors(short) == []


@pytest.mark.parametrize("value", ["a b", "x:1,2;y:3", 'say "hi"', "it's", "$HOME", "a`b`", "50%", "a\\b", "中文.onnx"])
def test_written_commands_mean_what_was_asked(value: str) -> None:
    script = 'atc() { printf "%s\\0" "$@"; }\n' + written({"model": value, "framework": "5"})
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split("\0")[:-1] == [f"--model={value}", "--framework=5"]


STATIC = """aipp_op {
  aipp_mode: static  # comment
  input_format: RGB888_U8
  csc_switch: false
  var_reci_chn_0: 0.0039
}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STATIC, ""),
        ("aipp_op: {aipp_mode: dynamic max_src_image_size: 752640}", ""),
        ("aipp_op { aipp_mode: dynamic }", "max_src_image_size"),
        ("aipp_op { input_format: RGB888_U8 }", "aipp_mode is missing"),
        ("aipp_op { aipp_mode: static }", "input_format is missing"),
        ("aipp_op { aipp_mode: static", "closing brace"),
        ("aipp_op { aipp_mode: static input_format：RGB888_U8 }", "a colon and a value"),
        ("CLASS_NUM=1000", "aipp_op"),
        ("", "no aipp_op"),
        (STATIC.replace("csc_switch: false", "csc_swich: false"), "no field csc_swich"),
        (STATIC.replace("csc_switch: false", "csc_switch: maybe"), "true, false"),
        (STATIC.replace("csc_switch: false", "mean_chn_0: 256"), "0 … 255"),
        (STATIC.replace("csc_switch: false", "mean_chn_0: 12.5"), "0 … 255"),
        (STATIC.replace("csc_switch: false", "crop: true"), "need src_image_size_w"),
        (STATIC.replace("RGB888_U8", "YUV420SP_U8\n src_image_size_w: 255 src_image_size_h: 256"), "even"),
        (
            STATIC.replace(
                "csc_switch: false",
                "crop: true src_image_size_w: 256 src_image_size_h: 256 load_start_pos_w: 50 crop_size_w: 224",
            ),
            "reach beyond",
        ),
        (
            STATIC.replace(
                "csc_switch: false",
                "crop: true src_image_size_w: 256 src_image_size_h: 256 crop_size_w: 200 crop_size_h: 224",
            ),
            "makes images of w=200",
        ),
    ],
)
def test_aipp_configurations_are_checked(text: str, said: str) -> None:
    problems = check_aipp(text, image_sizes_vary=False, family="310P", images=[(1, 3, 224, 224)])
    found = [str(one.sentence) for one in problems if one.severity is Severity.ERROR]
    assert any(said in one for one in found) if said else not found


def test_aipp_beside_sizes_that_vary(tmp_path: Path) -> None:
    (tmp_path / "a.cfg").write_text(STATIC.replace("csc_switch: false", "src_image_size_w: 256 src_image_size_h: 256"))
    images = command(insert_op_conf="a.cfg", input_shape="x:1,3,-1,-1", dynamic_image_size="8,8;16,16")
    assert any("are 0" in sentence for _, _, sentence in judged(images, folder=tmp_path))
    free = command(insert_op_conf="a.cfg", input_shape="x:1,3,-1,-1")
    assert any("the only input" in sentence for _, _, sentence in judged(free, folder=tmp_path))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two inputs, one with sizes that vary, and an operator set in which CANN registers no ReduceL2."""
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    ids = make.make_tensor_value_info("ids", 1, ["batch", "time"])
    mask = make.make_tensor_value_info("mask", 1, ["batch", 4])
    out = make.make_tensor_value_info("out", 1, None)
    axes = make.make_tensor("axes", onnx.TensorProto.INT64, [1], [1])
    nodes = [
        make.make_node("ReduceL2", ["ids", "axes"], ["norm"], name="norm_0"),
        make.make_node("Blend", ["norm", "mask"], ["mixed"], name="blend_0", domain="com.example"),
        make.make_node("Relu", ["mixed"], ["out"], name="relu_0"),
    ]
    graph = make.make_graph(nodes, "g", [ids, mask], [out], [axes])
    sets = [make.make_opsetid("", 18), make.make_opsetid("com.example", 1)]
    path = tmp_path / "net.onnx"
    onnx.save(make.make_model(graph, opset_imports=sets), str(path))
    return path


Command = Callable[..., int]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--input-shape", "ids:1,16;mask:1,4;other:1"], "E10016: --input_shape names other"),
        (["--input-shape", "ids:1,16,1;mask:1,4"], "E10049"),
        (["--input-shape", "ids:1,16"], "lacks mask"),
        (["--input-shape", "ids:1,16;mask:1,4", "--out-nodes", "nowhere:0"], "E10016: --out_nodes"),
        (["--dynamic-dims", "1,16,2;1,32,2"], "gives batch the sizes 1, 2"),
        (["--dynamic-batch", "1,2"], "--input-shape"),
        (["--input-shape", "ids:1,16;mask:1,4", "--insert-op-conf", "none.cfg"], "no such file"),
        (["--input-shape", "ids:1,16;mask:1,4", "--option", "log"], "NAME=VALUE"),
    ],
)
def test_commands_that_do_not_fit_the_model_are_not_written(
    npuport: Command, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    script = tmp_path / "atc.sh"
    assert npuport("export", "atc", model, "--soc", "Ascend310P3", *options, "--write", script) in (1, 2)
    output = capsys.readouterr()
    assert said in output.err
    assert "atc \\" not in output.out
    assert not script.exists()


def test_a_command_is_built_from_the_model_and_holds_when_checked(
    npuport: Command, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "atc.sh"
    argv = [
        "--soc",
        "Ascend310P3",
        "--dynamic-dims",
        "1,16,1;1,32,1",
        "--precision-mode",
        "origin",
        "--option",
        "log=error",
    ]
    assert npuport("export", "atc", model, *argv, "--write", script) == 0
    (built,) = commands_in(script.read_text())
    assert built.options == {
        "model": str(model),
        "framework": "5",
        "output": str(model.with_suffix("")),
        "soc_version": "Ascend310P3",
        "input_format": "ND",
        "input_shape": "ids:-1,-1;mask:-1,4",
        "dynamic_dims": "1,16,1;1,32,1",
        "precision_mode_v2": "origin",
        "log": "error",
    }
    capsys.readouterr()
    assert npuport("export", "check-atc", script) == 0
    said = capsys.readouterr().out
    # The model lies where the command says, so its operators are looked up.
    assert "ReduceL2 (1x) is in CANN's list for operator sets 8-17, not for 18" in said
    assert "com.example::Blend (1x) is not in the list" in said
    assert "Relu" not in said


def test_commands_that_people_have_are_checked_with_their_line(
    npuport: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "build.sh"
    script.write_text(
        "cd models\natc --model=a.onnx --framework=5 --output=a --soc_version=Ascend310P3 --precision_mode=high\n"
    )
    assert npuport("export", "check-atc", script) == 1
    assert f"{script}:2: error E10001: --precision_mode takes" in capsys.readouterr().out
    assert npuport("export", "check-atc", "atc --model=a.onnx --framework=5 --output=a --soc_version=Ascend310P3") == 0
    assert npuport("export", "check-atc", tmp_path / "none.sh") == 2


def test_every_code_that_is_named_is_one_of_cann_s() -> None:
    sources = "".join(path.read_text() for path in Path(checking.__file__).parent.glob("*.py"))
    named = set(re.findall(r"\bE\d{5}\b", sources))
    named |= {one.code for one in (*facts.all_atc_exclusions(), *facts.all_atc_requirements()) if one.code}
    assert {"E10009", "E10016", "E10049", "E16002"} <= named
    assert not [code for code in named if facts.error_code(code) is None]


def test_the_list_of_operators_has_what_the_tests_of_onnx_export_write() -> None:
    for name, opset in (
        ("Conv", 18),
        ("LSTM", 11),
        ("LayerNormalization", 17),
        ("Trilu", 14),
        ("NonMaxSuppression", 18),
    ):
        known = facts.atc_operator("ai.onnx", name)
        assert known is not None and known.opsets is not None and opset in known.opsets
    assert facts.atc_operator("ai.onnx", "Loop") is None
    constant = facts.atc_operator("ai.onnx", "Constant")
    assert constant is not None and constant.opsets is None


@pytest.mark.skipif("NPUPORT_ATC_SCRIPTS" not in os.environ, reason="needs a folder of public scripts that call ATC")
def test_public_commands_have_only_errors_that_are_theirs() -> None:
    folder = Path(os.environ["NPUPORT_ATC_SCRIPTS"])
    theirs = (
        "is missing",
        "belongs to no option",
        "ATC has no option --.",
        "high_preformance",
        "224--output",
        "ends there",
    )
    number, wrong = 0, []
    for path in sorted(one for one in folder.rglob("*") if one.suffix in (".sh", ".md")):
        for one in commands_in(path.read_text(errors="replace"), markdown=path.suffix == ".md"):
            number += 1
            wrong += [f"{path}:{one.line}: {said}" for said in errors(one) if not any(word in said for word in theirs)]
    assert number > 400
    assert not wrong, "\n".join(wrong)
