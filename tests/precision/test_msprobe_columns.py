"""The table of msprobe, cell by cell: as it wrote it itself, or as its rules say."""

from __future__ import annotations

import csv
import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from msprobe_dumps import forward, small_gpt, tensor, write_dump

torch = pytest.importorskip("torch")

from faults import FAULTS, step_of  # noqa: E402

from npuport.cli.precision_compare import compare_folders  # noqa: E402
from npuport.precision.msprobe.columns import COLUMNS, compare_in_columns, metrics  # noqa: E402
from npuport.precision.msprobe.reading import read_dump  # noqa: E402
from npuport.precision.msprobe.rules import Row  # noqa: E402
from npuport.precision.msprobe.writing import write_dump as write_step  # noqa: E402

REAL = Path(os.environ.get("NPUPORT_MSPROBE_DUMPS", Path(__file__).parents[3] / "shared" / "data" / "dumps"))
PEER = os.environ.get("NPUPORT_MSPROBE_PYTHON", "")
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="needs real dumps in NPUPORT_MSPROBE_DUMPS")
needs_peer = pytest.mark.skipif(not PEER, reason="needs NPUPORT_MSPROBE_PYTHON")


def rows_of(target: Path, golden: Path) -> list[Row]:
    return list(compare_in_columns(read_dump(target), read_dump(golden)))


def is_same(ours: object, theirs: str) -> bool:
    """Whether two cells say the same; sums over a tensor differ in the last digits."""
    if str(ours) == theirs:
        return True
    try:
        one, other = (float(text.removesuffix("%")) for text in (str(ours), theirs))
    except ValueError:
        return False
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=2e-12) or (math.isnan(one) and math.isnan(other))


def assert_same(ours: list[Row], theirs: Path, head: bool = False) -> None:
    with theirs.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows and len(rows) <= len(ours) and (head or len(rows) == len(ours))
    different = [
        (one["NPU Name"], column, one[column], other[column])
        for one, other in zip(ours, rows, strict=False)
        for column in other
        if not is_same(one[column], other[column])
    ]
    assert different == []


@needs_real
@pytest.mark.parametrize(("name", "table"), [("gpt_statistics_mix", "stat"), ("gpt_md5_L1", "md5")])
def test_real_tables_of_runs_that_agree(name: str, table: str) -> None:
    file = REAL / "dump" / name / "dump.json"
    assert_same(rows_of(file, file), REAL / "compare" / table / "compare_result_head60.csv", head=True)


@pytest.mark.parametrize(("mode", "count"), [("tensor", 27), ("statistics", 28), ("md5", 14)])
def test_columns(mode: str, count: int) -> None:
    assert len(COLUMNS[mode]) == count


def results(tmp_path: Path, good: dict[str, object], bad: dict[str, object]) -> list[tuple[str, str, str]]:
    files = write_dump(tmp_path / "bad", bad), write_dump(tmp_path / "good", good)
    return [(row["NPU Name"], row["Result"], row["Err_message"]) for row in rows_of(*files) if row["Result"] != "pass"]


def one_call(*values: object, **keywords: object) -> dict[str, object]:
    return {"Functional.gelu.0.forward": forward([tensor(4), *values], [tensor(4, **keywords)])}  # type: ignore[arg-type]


def value(number: object) -> dict[str, object]:
    return {"type": type(number).__name__, "value": number}


@pytest.mark.parametrize(
    ("good", "bad", "place", "result", "message"),
    [
        (one_call(), one_call(largest=math.nan), "output.0", "error", "nan/inf/-inf in the maximum"),
        (one_call(), one_call(norm=6.5), "output.0", "error", "NormRelativeErr of output is greater than 0.5"),
        (one_call(), one_call(norm=4.5), "output.0", "warning", "10 times that of input"),
        (one_call(value(1e-5)), one_call(value(1e-2)), "input.1", "error", "scalar parameters"),
        (one_call(), one_call(dtype="torch.bfloat16"), "output.0", "error", "dtype of NPU and Bench"),
        (one_call(), one_call(requires_grad=False), "output.0", "error", "Required_Grad"),
    ],
)
def test_results_by_statistics(
    good: dict[str, object], bad: dict[str, object], place: str, result: str, message: str, tmp_path: Path
) -> None:
    ((name, said, why),) = results(tmp_path, good, bad)[:1]
    assert (name, said) == (f"Functional.gelu.0.forward.{place}", result)
    assert message in why


def test_a_small_difference_passes_and_a_missing_row_has_no_bench(tmp_path: Path) -> None:
    assert results(tmp_path, one_call(), one_call(norm=4.01)) == []
    files = write_dump(tmp_path / "a", small_gpt()), write_dump(tmp_path / "b", one_call())
    rows = {row["NPU Name"]: row for row in rows_of(*files)}
    assert rows["Functional.linear.0.forward.input.0"]["Bench Name"] == "N/A"
    assert rows["Functional.gelu.0.forward.output.0"]["Bench Name"] != "N/A"


def test_metrics_of_tensors() -> None:
    a = torch.tensor([1.0, 2.0, 0.0, 4.0])
    cosine, distance, largest, relative, thousandth, five = metrics(a, a * torch.tensor([1.0, 1.002, 1.0, 1.1]))
    assert (thousandth, five) == (0.5, 0.75)
    assert distance == pytest.approx(math.hypot(0.004, 0.4)) and largest == pytest.approx(0.4)
    assert relative == pytest.approx(0.1 / 1.1) and 0.99 < cosine < 1.0
    assert metrics(a, torch.zeros(4))[0] == "Nan"
    assert metrics(torch.zeros(4), torch.zeros(4))[0] == 1.0
    assert (
        metrics(torch.tensor(2.0), torch.tensor(4.0)) == ("unsupported", "unsupported", 2.0, 0.5) + ("unsupported",) * 2
    )
    assert metrics(torch.zeros(0), torch.zeros(0)) == ("unsupported",) * 6
    assert metrics(torch.zeros(2), torch.zeros(3)) == ("shape unmatched",) * 6
    assert metrics(torch.tensor([1.0, math.inf]), torch.tensor([1.0, math.inf]))[0] == 1.0
    assert metrics(torch.tensor([1.0, math.nan]), torch.tensor([1.0, math.inf])) == ("N/A",) * 6


def test_the_command_writes_the_table_of_our_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from npuport.precision.operators.calls import write_step as write_ours

    fault = next(one for one in FAULTS if one.name == "one NaN in a cell")
    write_ours(tmp_path / "good", step_of("lstm", 0.0, 1))
    write_ours(tmp_path / "bad", step_of("lstm", 0.0, 1, fault))
    table = tmp_path / "表 1.csv"
    assert compare_folders(tmp_path / "good", tmp_path / "bad", False, table) == 1
    assert "aten.tanh.default" in capsys.readouterr().out
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS["tensor"]
    first = next(row for row in rows if row["Result"] != "pass")
    assert first["NPU Name"] == "Aten.tanh.2.forward.output.0"


def peer_table(folder: Path, target: Path, golden: Path) -> Path:
    command = [
        str(Path(PEER).with_name("msprobe")),
        "compare",
        "-tp",
        str(target),
        "-gp",
        str(golden),
        "-o",
        str(folder),
    ]
    subprocess.run(command, cwd=folder.parent, capture_output=True, check=True)
    return next(folder.glob("*.csv"))


@needs_peer
def test_msprobe_writes_the_same_for_tensors(tmp_path: Path) -> None:
    fault = next(one for one in FAULTS if one.name == "one NaN in a cell")
    golden = write_step(step_of("lstm", 1e-5, 1), tmp_path / "good")
    target = write_step(step_of("lstm", 1e-5, 2, fault), tmp_path / "bad")
    assert_same(rows_of(target, golden), peer_table(tmp_path / "out", target, golden))


@needs_peer
@needs_real
@pytest.mark.parametrize("name", ["gpt_nan_statistics_mix", "gpt_md5_L1"])
def test_msprobe_writes_the_same_for_statistics_and_checksums(name: str, tmp_path: Path) -> None:
    other = "gpt_statistics_mix" if "nan" in name else name
    for one in {name, other}:
        shutil.copytree(REAL / "dump" / one, tmp_path / one)
    target = shutil.copytree(tmp_path / name, tmp_path / "target") / "dump.json"
    target.write_text(target.read_text(encoding="utf-8").replace('"adbb5ccb"', '"11111111"'), encoding="utf-8")
    golden = tmp_path / other / "dump.json"
    assert_same(rows_of(target, golden), peer_table(tmp_path / "out", target, golden))
