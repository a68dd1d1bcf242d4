"""What holds for every table: a source for each row, no name twice, statuses that the types allow."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from npuport import facts
from npuport.facts._tables import DATA, rows

TABLES = sorted(path.stem for path in DATA.glob("*.csv"))
SHARED = Path(__file__).resolve().parents[3] / "shared"


KEYED_BY_SEVERAL = {
    "atc_exclusions": ("first", "second"),
    "atc_limits": ("name", "families"),
    "atc_operators": ("domain", "name"),
    "atc_requirements": ("option", "needs"),
}
# Versions, texts, pairs; codes whose names are titles that many share; several signatures of one operator.
KEYED_OTHERWISE = {
    "versions",
    "messages",
    "settings",
    "error_codes",
    "operator_schemas",
    "precision_limits",
    "peaks",
    "link_bandwidths",
    *KEYED_BY_SEVERAL,
}


@pytest.mark.parametrize("table", TABLES)
def test_every_row_is_whole_and_has_a_source(table: str) -> None:
    for row in rows(table):
        assert None not in row, row  # more fields than columns: a comma that needs quotes
        assert all(value is not None for value in row.values()), row
        assert row["source"] and row["certainty"] in {"measured", "documented", "inferred"}, row
        assert row["certainty"] != "measured" or row["version"], row


@pytest.mark.parametrize("table", [table for table in TABLES if table not in KEYED_OTHERWISE])
def test_no_name_twice(table: str) -> None:
    names = [row["name"] for row in rows(table)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("table", "columns"), KEYED_BY_SEVERAL.items())
def test_no_key_of_several_columns_twice(table: str, columns: tuple[str, str]) -> None:
    keys = [tuple(row[column] for column in columns) for row in rows(table)]
    assert len(keys) == len(set(keys))


def test_no_code_twice() -> None:
    codes = [row["code"] for row in rows("error_codes")]
    assert len(codes) == len(set(codes))


def test_no_setting_twice() -> None:
    names = [(row["key"], row["value"]) for row in rows("settings")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_tables_are_in_our_own_words(path: Path) -> None:
    assert not re.search(r"[\u3000-\u9fff\uff00-\uffef]", path.read_text(encoding="utf-8"))


def test_importing_the_package_reads_no_table() -> None:
    loaded = "[m for m in sys.modules if m.startswith('npuport.facts.') or m in ('csv', 'json', 'torch')]"
    code = f"import sys, npuport.facts; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_exported_name_is_there() -> None:
    assert all(getattr(facts, name) is not None for name in facts.__all__)
    with pytest.raises(AttributeError, match="no_such_fact"):
        _ = facts.no_such_fact


@pytest.mark.parametrize("entry", facts.all_torch_cuda_names(), ids=lambda entry: entry.name)
def test_a_missing_cuda_name_says_what_to_do(entry: facts.CudaName) -> None:
    assert (entry.npu_name is None) == (entry.status == "missing")
    assert entry.npu_name is not None or entry.note


def test_statuses_are_those_of_the_types() -> None:
    assert {e.status for e in facts.all_torch_names()} == {"same", "renamed", "missing", "no-effect"}
    assert {e.status for e in facts.all_variables()} == {"renamed", "same", "no-counterpart"}
    assert {e.status for e in facts.all_libraries()} == {"native", "adapted", "replace", "cuda-only", "neutral"}
    assert {e.status for e in facts.all_dtypes()} == {"full", "partial", "stored", "refused"}
    assert {e.overflow for e in facts.all_chips()} == {"saturation", "both", "inf_nan"}


@pytest.mark.parametrize("entry", facts.all_torch_names() + facts.all_variables(), ids=lambda entry: entry.name)
def test_renamed_means_there_is_another_name(entry: facts.TorchName | facts.Variable) -> None:
    other = entry.npu_name if isinstance(entry, facts.TorchName) else entry.counterpart
    assert (other not in (None, entry.name)) == (entry.status == "renamed")


def test_an_import_and_a_distribution_belong_to_one_library() -> None:
    for entry in facts.all_libraries():
        assert all(facts.library(name) == entry for name in entry.imports), entry.name
        assert all(facts.distribution(name) == entry for name in entry.distributions), entry.name
        assert (entry.replacement is not None) == (entry.status in {"adapted", "replace"}), entry.name


def test_libraries_of_a_real_script_are_recognised() -> None:
    script = SHARED / "data/cases/probe_constructs/p06_libs.py"
    if not script.exists():
        pytest.skip("no shared data")
    imported = re.findall(r"^(?:import|from) ([\w.]+)", script.read_text(encoding="utf-8"), flags=re.MULTILINE)
    unknown = {name for name in imported if name not in {"torch", "numba"} and facts.library(name) is None}
    assert imported and not unknown


def test_variables_agree_with_the_documented_list() -> None:
    listing = SHARED / "data/facts/env_vars.csv"
    if not listing.exists():
        pytest.skip("no shared data")
    with listing.open(encoding="utf-8", newline="") as lines:
        documented = {row["cuda_nccl_counterpart"]: row["name"] for row in csv.DictReader(lines)}
    single = {
        cuda: npu for cuda, npu in documented.items() if re.fullmatch(r"(TORCH_NCCL|NCCL|PYTORCH)_[A-Z0-9_]+", cuda)
    }
    differing = {}
    for cuda, npu in single.items():
        known = facts.variable(cuda)
        assert known is not None
        if known.counterpart != npu:
            differing[cuda] = (known.counterpart, npu)
    # Where two variables of HCCL share the work, or the values have nothing in common, no single counterpart is named.
    assert set(differing) <= {"NCCL_DEBUG", "NCCL_P2P_LEVEL"}
    assert len(single) > 20


def test_a_family_answers_for_its_unknown_members() -> None:
    unknown = facts.variable("NCCL_NO_SUCH_SETTING")
    assert unknown is not None and unknown.status == "no-counterpart" and unknown.basis.certainty == "inferred"
    assert facts.variable("HOME") is None
    assert facts.variable("NCCL_") is None


def test_prefixes_of_imports() -> None:
    assert facts.library("flash_attn.flash_attn_interface") == facts.library("flash_attn")
    assert facts.library("flash_attn.layers.rotary.apply_rotary_emb") != facts.library("flash_attn")
    assert facts.library("numba.typed") is None
    assert facts.library("numba.cuda.random") == facts.library("numba.cuda") != None  # noqa: E711
    assert facts.library("nvidia") is None


def test_versions() -> None:
    newest = facts.torch_npu_for("2.7.1+cpu")[0]
    assert newest.torch == "2.7.1" and newest.torch_npu.startswith("2.7.1.post")
    assert facts.torch_npu_for("2.7.9") == ()
    for release in facts.all_releases():
        assert release.torch_npu.startswith(release.torch)
        assert release.cann is None or re.fullmatch(r"\d+\.\d+\.(RC)?[\d.]+", release.cann), release


def test_operator_names_in_every_spelling() -> None:
    by_base = facts.operator_status("aten::lgamma")
    assert (
        by_base is not None and by_base.status == "cpu_fallback" and set(by_base.overloads) == {"lgamma", "lgamma.out"}
    )
    assert facts.operator_status("lgamma") == by_base
    exact = facts.operator_status("aten.lgamma.default")
    assert exact is not None and set(exact.overloads) == {"lgamma"}
    assert facts.operator_status("aten::add.NoSuchOverload") is None
    assert facts.operator_status("aten::no_such_operator") is None


def test_chip_names_in_every_spelling() -> None:
    assert facts.chip() == facts.chip(facts.DEFAULT_CHIP) == facts.chip("910b3")
    first_generation, second = facts.chip("Ascend910B"), facts.chip("Ascend910B1")
    assert first_generation is not None and first_generation.family == "910" and not first_generation.bf16
    assert second is not None and second.family == "A2"
    newest = facts.chip("Ascend950DT_9571")
    assert newest is not None and newest.family == "950"
    assert facts.chip("Ascend910B9") is None


def test_arguments_that_differ() -> None:
    name, event = facts.torch_cuda("torch.cuda.get_device_name"), facts.torch_cuda("torch.cuda.Event")
    scaler, history = facts.torch_cuda("torch.cuda.amp.GradScaler"), "torch.cuda.memory._record_memory_history"
    assert (
        name is not None and name.renamed_arguments == {"device": "device_name"} and name.positional_arguments is None
    )
    assert event is not None and event.dropped_arguments == ("external",) and event.positional_arguments == 3
    assert scaler is not None and scaler.positional_arguments == 4 and not scaler.dropped_arguments
    recorded = facts.torch_cuda(history)
    assert recorded is not None and recorded.dropped_arguments == () and recorded.positional_arguments is None


def test_what_runs_on_silently() -> None:
    def silent(name: str) -> bool:
        entry = facts.torch_cuda(name)
        assert entry is not None
        return entry.silent_if_left

    assert silent("torch.cuda.is_available") and silent("torch.cuda.manual_seed_all")
    assert not silent("torch.cuda.synchronize") and not silent("torch.cuda.Stream.synchronize")
