"""The page of `npuport perf analyze --html`: its numbers, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from made_profiles import ENGINE, LOOP, collective, event, kernel, made, training_step, write_npu_profile

from npuport.cli.perf_analyze import analyze_profiles
from npuport.cli.perf_page import DETAILED
from npuport.performance.analysis import RankAnalysis
from npuport.performance.findings.base import Context
from npuport.performance.findings.registry import find
from npuport.performance.flame import Flame, Frame, columns_of, flame_of
from npuport.performance.page_data import (
    average_step,
    communication_rows,
    details_data,
    memory_curves,
    steps_data,
    timelines,
)
from npuport.performance.tables import Profile

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def analysed(profile: Profile) -> RankAnalysis:
    context = Context(profile)
    return RankAnalysis(profile, context.splits, find(context), context.step_ns, context)


def unpacked(packed: list[int]) -> list[tuple[int, int]]:
    spans = []
    time = 0
    for gap, length in zip(packed[::2], packed[1::2], strict=True):
        spans.append((time + gap, time + gap + length))
        time += gap + length
    return spans


# -------------------------------------------------------------------------------------------------------- timelines


def test_a_timeline_holds_the_spans_of_its_step() -> None:
    kernels = [kernel(1000 + at, 1000 + at + 20, launched=1000 + at - 10) for at in range(220, 600, 50)]
    rank = analysed(made(events=training_step(1000), kernels=kernels, steps=[(4, 1000, 2000)]))
    (line,) = timelines(rank.splits, rank.findings, rank.context.kernels)
    assert line["bin"] == 0
    for part, spans in rank.splits[0].spans.items():
        assert unpacked(line["parts"][part.name.lower()]) == [(a - 1000, b - 1000) for a, b in spans]
    assert line["kernels"] == {"names": ["k"], "spans": [one for at in range(220, 600, 50) for one in (0, at, 20)]}
    (step,) = steps_data(rank)
    assert sum(step["parts"].values()) == step["duration"] == 1000


def test_the_typical_step_comes_first_then_the_longest_and_the_shortest() -> None:
    steps = [(0, 0, 100), (1, 100, 300), (2, 300, 600), (3, 600, 1000), (4, 1000, 1500)]
    rank = analysed(made(events=training_step(), steps=steps))
    assert [line["at"] for line in timelines(rank.splits, [], rank.context.kernels)] == [2, 4, 0, 1, 3]


def test_the_average_is_of_all_steps_and_the_first_ones_are_listed() -> None:
    steps = [(number, number * 100, number * 100 + 100) for number in range(1500)]
    kernels = [kernel(at + 10, at + 10 + at // 100 % 2 * 40, launched=at) for at in range(0, 150_000, 100)]
    rank = analysed(made(events=[event("aten::relu", 0, 150_000)], kernels=kernels, steps=steps))
    average = average_step(rank)
    assert average is not None
    assert (average["steps"], average["computing"], average["parts"]["forward"]) == (1500, 20, 20)
    assert sum(average["parts"].values()) == 100
    assert len(steps_data(rank)) == 1000
    assert all(line["at"] < 1000 for line in timelines(rank.splits[:1000], [], rank.context.kernels))


def test_a_step_of_very_many_spans_is_drawn_in_bins_that_cover_it() -> None:
    # 30,000 kernels of 70 ns in 100 ns each: most of every bin is computing.
    kernels = [kernel(at * 100, at * 100 + 70, launched=at * 100) for at in range(30_000)]
    end = 3_000_000
    rank = analysed(made(events=[event("aten::relu", 0, end)], kernels=kernels, steps=[(0, 0, end)]))
    assert sum(map(len, rank.splits[0].spans.values())) == 60_000
    (line,) = timelines(rank.splits, [], rank.context.kernels)
    assert line["bin"] == 750
    drawn = sorted(span for packed in line["parts"].values() for span in unpacked(packed))
    assert drawn[0][0] == 0
    assert drawn[-1][1] == end
    assert all(one[1] == other[0] for one, other in pairwise(drawn))
    assert len(drawn) <= 4001


# ------------------------------------------------------------------------------------------------------------ flame


def frame(flame: Flame, *names: str) -> Frame:
    """The frame that is found by these names from the root on."""
    found = flame.root
    for name in names:
        (found,) = (one for (called, _), one in found.inside.items() if called == name)
    return found


def test_kernels_stand_in_modules_and_backward_ones_in_those_of_their_forward() -> None:
    events = [
        event("nn.Module: Net_0", 100, 400, "python"),
        event("nn.Module: Linear_0", 110, 200, "python"),
        event("aten::linear", 120, 190, sequence=7),
        event("aten::addmm", 130, 180, sequence=7),
        event("autograd::engine::evaluate_function: AddmmBackward0", 500, 600, thread=ENGINE),
        event("AddmmBackward0", 510, 590, thread=ENGINE, sequence=7, forward_thread=LOOP),
        event("aten::mm", 520, 560, thread=ENGINE),
    ]
    kernels = [
        kernel(200, 260, launched=140, type="MatMul"),
        kernel(600, 700, launched=530, thread=ENGINE, type="MatMul"),
        kernel(710, 715),
    ]
    flame = flame_of(Context(made(events=events, kernels=kernels)))
    assert flame.named_after == "module"
    forward = frame(flame, "training loop", "Net_0", "Linear_0", "aten::linear", "aten::addmm", "MatMul")
    assert (forward.kind, forward.count, forward.device_ns) == ("kernel", 1, 60)
    assert frame(flame, "training loop", "Net_0").host_ns == 300
    backward = frame(flame, "backward", "Net_0", "Linear_0", "AddmmBackward0", "aten::mm")
    assert (backward.device_ns, backward.host_ns) == (100, 40)
    assert frame(flame, "launch not recorded").device_ns == 5
    assert flame.root.device_ns == 165
    assert (flame.operators["aten::linear"].host_ns, flame.operators["aten::addmm"].host_ns) == (20, 50)
    assert flame.operators["aten::addmm"].device_ns == 60


def test_an_operator_around_modules_counts_without_those_in_them() -> None:
    events = [
        event("DistributedDataParallel.forward", 100, 400),
        event("nn.Module: Net_0", 110, 390, "python"),
        event("aten::linear", 120, 190),
    ]
    flame = flame_of(Context(made(events=events)))
    assert flame.operators["DistributedDataParallel.forward"].host_ns == 230
    assert frame(flame, "training loop", "DistributedDataParallel.forward", "Net_0", "aten::linear").host_ns == 70


def test_a_backward_on_the_training_thread_is_backward_whatever_range_is_around_it() -> None:
    events = [
        event("nn.Module: Net_0", 100, 300, "python"),
        event("aten::linear", 120, 190, sequence=7),
        event("my backward", 400, 900, "annotation"),
        event("AddmmBackward0", 510, 590, sequence=7, forward_thread=LOOP),
    ]
    flame = flame_of(Context(made(events=events)))
    assert frame(flame, "backward", "Net_0", "AddmmBackward0").host_ns == 80


def test_without_modules_the_users_python_frames_are_taken() -> None:
    events = [
        event("train.py(10): main", 0, 900, "python"),
        event("torch/nn/modules/module.py(1500): _call_impl", 50, 800, "python"),
        event("model.py(3): forward", 100, 400, "python"),
        event("aten::relu", 120, 190),
    ]
    flame = flame_of(Context(made(events=events, kernels=[kernel(200, 260, launched=120)])))
    assert flame.named_after == "python"
    found = frame(flame, "training loop", "train.py(10): main", "model.py(3): forward", "aten::relu")
    assert (found.host_ns, found.device_ns) == (70, 60)


def test_without_frames_the_stacks_of_operators_are_taken_else_operators_alone() -> None:
    stack = "/x/site-packages/torch/nn/linear.py(9): forward;/me/model.py(3): forward;/me/train.py(10): main"
    events = [event("aten::linear", 120, 190, stack=stack), event("aten::addmm", 130, 150, stack=stack)]
    flame = flame_of(Context(made(events=events)))
    found = frame(flame, "training loop", "train.py:10", "model.py:3", "aten::linear", "aten::addmm")
    assert (flame.named_after, found.host_ns) == ("python", 20)
    flame = flame_of(Context(made(events=training_step())))
    assert flame.named_after == "operator"
    assert frame(flame, "backward", "NllLossBackward0").host_ns == 90
    assert frame(flame, "training loop", "Optimizer.step#SGD.step").host_ns == 100


def test_small_frames_are_left_out_and_times_are_of_an_average_step() -> None:
    root = Frame("", "section", host_ns=10_000_000)
    for number in range(5000):
        one = root.child(f"op{number}", "operator")
        one.count, one.host_ns = 4, 10_000_000 if number == 0 else number
    columns = columns_of(root, steps=2)
    assert columns["names"] == ["", "op0"]
    assert columns["host"] == [5_000_000, 5_000_000]
    assert columns["count"] == [0, 2]


# ----------------------------------------------------------------------------------------------------------- tables


def test_collectives_of_one_name_are_one_row() -> None:
    tasks = [collective(300, 320, "wait", name="Notify_Wait"), collective(320, 350, "transmit", name="Memcpy")]
    operations = [
        collective(300, 350, name="hcom_allReduce__586_0_1", group="g"),
        collective(700, 800, name="hcom_allReduce__586_1_1", group="g"),
    ]
    profile = made(
        events=training_step(), kernels=[kernel(310, 330, launched=210)], communication=[*operations, *tasks]
    )
    assert communication_rows(analysed(profile)) == [["hcom_allReduce", "g", 2, 150, 30, 20, 20]]
    untold = made(communication=operations)
    assert communication_rows(analysed(untold)) == [["hcom_allReduce", "g", 2, 150, None, None, 0]]


def test_a_curve_keeps_its_peak() -> None:
    rows = [
        {"time_ns": at, "component": "PTA", "device": 0, "allocated_bytes": 9000 if at == 777 else at % 50,
         "reserved_bytes": 10_000}
        for at in range(10_000)
    ]  # fmt: skip
    (curve,) = memory_curves(analysed(made(memory=rows)))
    assert len(curve["time"]) <= 400
    assert max(curve["allocated"]) == curve["peak"] == 9000
    assert curve["time"][curve["allocated"].index(9000)] <= 777


def test_a_finding_shows_what_it_rests_on() -> None:
    item = event("aten::item", 700, 950, stack="/me/train.py(12): step")
    rank = analysed(
        made(events=[*training_step(), item], kernels=[kernel(250, 300, launched=210)], steps=[(3, 0, 1000)])
    )
    number = next(place for place, one in enumerate(rank.findings) if one.code == "NT101")
    assert details_data(rank, rank.findings)["evidence"][number] == [[6, "aten::item", 3, 700, 250]]


# --------------------------------------------------------------------------------------------------------- the page

REPORT = """
<script>
const found = { lanes: lanes.map((one) => one.name), bars: document.querySelectorAll("#steps .bar-row").length };
found.findings = document.querySelectorAll("#findings article").length;
found.overlaps = document.querySelectorAll("#findings .overlap").length;
found.ranks = document.querySelectorAll("#ranks .bar-row").length;
found.width = 0;
for (const one of document.querySelectorAll("#steps .bar-row i")) found.width += parseFloat(one.style.width);
document.querySelector("#findings article:last-child button.plain").click();
found.zoomed = to - from < details.steps[line.at].duration;
document.querySelector("[data-zoom='0']").click();
found.whole = to - from === details.steps[line.at].duration;
const rows = () => document.querySelectorAll("#table tbody tr").length;
found.rows = rows();
at("search").value = "no kernel is called so"; at("search").dispatchEvent(new Event("input"));
found.none = rows();
document.querySelector("[name=table][value=operators]").click(); at("search").value = "item"; fillTable();
found.operator = document.querySelector("#table tbody td").textContent;
const inner = [...document.querySelectorAll("#flame button")].at(-1), before = top_;
inner.click();
found.flame = top_ !== before;
found.collective = document.querySelector("#communication td").textContent;
rankRows[1].click();
found.second = [rank.short, at("of-timeline").hidden, lanes.length > 2];
rankRows.at(-1).click();
found.last = [rank.short, at("of-timeline").hidden, at("findings").children.length, at("steps").children.length];
document.title = "RESULT" + JSON.stringify(found);
</script>
"""


def in_browser(page: Path) -> dict[str, Any]:
    """What the page's script finds, in Chromium, with nothing said on the console."""
    reporting = page.with_name("reporting.html")
    reporting.write_text(page.read_text(encoding="utf-8").replace("</body>", REPORT + "</body>", 1), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'browser'}"]
    done = subprocess.run(
        [str(CHROMIUM), *options, "--enable-logging=stderr", "--dump-dom", reporting.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    assert 'href="blob:' in done.stdout
    found = re.search(r"RESULT(\{.*?\})</title>", done.stdout)
    assert found is not None
    result: dict[str, Any] = json.loads(found[1].replace("&quot;", '"').replace("&gt;", ">"))
    return result


def written(folder: Path, *paths: Path) -> Path:
    page = folder / "page.html"
    analyze_profiles(paths, everything=False, as_json=False, html=page)
    return page


@needs_chromium
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_works_in_a_browser(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", language)
    folders = [write_npu_profile(tmp_path, rank=rank) for rank in range(DETAILED + 1)]
    page = written(tmp_path, *folders)
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", text)
    assert ("单步时间的去向" if language == "zh" else "Where the time of a step goes") in text
    found = in_browser(page)
    assert found["bars"] == 1
    assert found["ranks"] == DETAILED + 1
    assert found["width"] == pytest.approx(100)
    assert found["lanes"][:2] == (["前向", "反向"] if language == "zh" else ["forward", "backward"])
    assert found["findings"] >= 2
    assert found["overlaps"] >= 2
    assert [found[one] for one in ("zoomed", "whole", "flame")] == [True, True, True]
    assert found["rows"] == 1  # both kernels are of one type
    assert found["none"] == 0
    assert found["operator"] == "aten::item"
    assert found["collective"] == "hcom_allReduce"
    assert found["second"] == ["rank 1", False, True]
    assert found["last"] == [f"rank {DETAILED}", True, found["findings"], 0]


def test_what_could_not_be_read_is_on_the_page(tmp_path: Path) -> None:
    whole = write_npu_profile(tmp_path, rank=0)
    broken = write_npu_profile(tmp_path, rank=1, trace='[{"ph": "X", "na')
    text = written(tmp_path, whole, broken).read_text(encoding="utf-8")
    assert "trace_view.json</span>: it is cut off" in text


def test_a_name_cannot_end_the_element_that_holds_the_numbers(tmp_path: Path) -> None:
    folder = write_npu_profile(tmp_path)
    trace = next(folder.rglob("trace_view.json"))
    trace.write_text(trace.read_text().replace("aten::linear", "</script><script>alert(1)//"), encoding="utf-8")
    text = written(tmp_path, folder).read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "alert(1)" in text


@needs_chromium
def test_the_page_of_many_events_is_light(tmp_path: Path) -> None:
    writing = Path(__file__).resolve().parents[2] / "benchmarks" / "generate_profile.py"
    subprocess.run([sys.executable, str(writing), str(tmp_path / "p"), "--events", "100000"], check=True, timeout=120)
    page = written(tmp_path, tmp_path / "p")
    assert page.stat().st_size < 500_000  # a tenth of the events, a tenth of the size that is allowed
    opened = page.read_text(encoding="utf-8").replace("</body>", "<script>document.title='READY'</script></body>", 1)
    page.write_text(opened, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'browser'}"]
    done = subprocess.run(
        [str(CHROMIUM), *options, "--enable-logging=stderr", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    assert "<title>READY" in done.stdout
