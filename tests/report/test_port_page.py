"""The HTML page of a port, in a real browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from npuport.analysis import analyze, effort_by_file
from npuport.findings import Finding
from npuport.report.port_page import port_page
from npuport.rules.settings import Settings
from npuport.source.files import read_tree

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
LINES = (
    'x = torch.zeros(3, device="cuda")  # </script><b>',
    "torch.cuda.synchronize()",
    "from torch.cuda.amp import autocast",
    "g = torch.cuda.comm.broadcast(x)",
    "import flash_attn",
)


def page_of(folder: Path, files: int, lines: int) -> tuple[str, tuple[Finding, ...]]:
    for number in range(files):
        text = "import torch\n" + "\n".join(LINES[place % len(LINES)] for place in range(lines)) + "\n"
        (folder / f"module_{number}.py").write_text(text)
    tree = read_tree(folder)
    found = analyze(tree, Settings()).findings
    sources = {file.path: file for file in tree.files}
    return port_page("demo", "about", found, sources, effort_by_file(found)), found


def embedded(page: str) -> dict[str, list[dict[str, object]]]:
    data: dict[str, list[dict[str, object]]] = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    return data


def test_every_finding_is_in_the_page(tmp_path: Path) -> None:
    page, found = page_of(tmp_path, 2, 10)
    shown = embedded(page)["findings"]
    assert [(one["code"], one["line"], one["message"]) for one in shown] == [
        (one.code, one.location.line, one.message) for one in found
    ]
    device = next(one for one in shown if one["code"] == "NP101")
    assert device["before"] == LINES[0] and device["after"] == [LINES[0].replace('"cuda"', '"npu"')]


def test_the_page_needs_nothing_else_and_is_light(tmp_path: Path) -> None:
    page, found = page_of(tmp_path, 20, 250)
    assert len(found) >= 5000
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", page)
    assert len(page) < 600 * len(found)
    HTMLParser().feed(page)


PROBE = """
<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
</script>
"""
REPORT = """
<script>
const begin = performance.now();
const all = shown, total = matching.length;
rule.value = "NP101"; rule.dispatchEvent(new Event("change"));
const ofRule = matching.length;
rule.value = ""; search.value = "module_3 synchronize"; search.dispatchEvent(new Event("input"));
const found = matching.length, cards = document.querySelectorAll(".finding").length;
search.value = ""; search.dispatchEvent(new Event("input"));
const group = boxes.find((box) => box.value === "group:must change");
group.checked = false; group.dispatchEvent(new Event("change"));
const withoutGroup = matching.length;
for (const box of boxes) { box.checked = true; } boxes[0].dispatchEvent(new Event("change"));
const everything = matching.length;
more.click();
const result = { errors, all, total, ofRule, found, cards, withoutGroup, everything, afterMore: shown,
                 injected: document.querySelectorAll("#findings b:not(.mono)").length,
                 filtering: performance.now() - begin, loading: begin };
document.title = "RESULT" + JSON.stringify(result);
</script>
"""


@needs_chromium
def test_filters_work_in_a_browser(tmp_path: Path) -> None:
    source = tmp_path / "tree"
    source.mkdir()
    page, found = page_of(source, 20, 250)
    page = page.replace("<title>", PROBE + "<title>", 1).replace("</body>", REPORT + "</body>", 1)
    (tmp_path / "page.html").write_text(page)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    begin = time.monotonic()
    done = subprocess.run(
        [str(CHROMIUM), *options, (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    took = time.monotonic() - begin
    result = json.loads(re.search(r"RESULT(\{.*?\})</title>", done.stdout)[1].replace("&quot;", '"'))  # type: ignore[index]
    visible = [one for one in found if one.severity.value != "info"]
    assert result["errors"] == []
    assert result["everything"] == len(found) and result["total"] == len(visible)
    assert result["ofRule"] == sum(one.code == "NP101" for one in found)
    assert result["found"] == result["cards"] == 50
    assert 0 < result["withoutGroup"] < result["total"]
    assert (result["all"], result["afterMore"]) == (200, 400)
    assert result["injected"] == 0
    print(f"loaded in {result['loading']:.0f} ms, filtered in {result['filtering']:.0f} ms, {took:.1f} s in all")
