"""What `npuport precision compare` says and shows: the verdict, its confidence, many steps, and the page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from faults import FAULTS, Fault, step_of  # noqa: E402

from npuport.cli.precision_compare import compare_folders  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision.operators.calls import read_step, step_file, write_step  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402
from npuport.precision.operators.verdict import verdict_of  # noqa: E402
from npuport.report.precision_page import precision_page  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def fault_named(name: str) -> Fault:
    return next(fault for fault in FAULTS if fault.name == name)


SOFTMAX, SIGMOID = fault_named("softmax 1 % noise"), fault_named("sigmoid 1 % noise")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two ranks of three steps of both runs; the last step of rank 1 has a fault."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("dumps")
    good, other, bad = step_of("lstm", 1e-6, 1), step_of("lstm", 1e-6, 2), step_of("lstm", 1e-6, 2, SIGMOID)
    for step in range(3):
        for rank in range(2):
            write_step(folder / "good", replace(good, step=step, rank=rank))
            write_step(folder / "bad 中", replace(bad if (step, rank) == (2, 1) else other, step=step, rank=rank))
    return folder / "good", folder / "bad 中"


@pytest.mark.parametrize(
    ("name", "noise", "confidence"),
    [
        ("softmax 1 % noise", 1e-6, "high"),
        ("one wrong element of an image", 4e-3, "medium"),
        ("silu 1 % noise", 4e-3, "low"),
        ("one NaN", 1e-6, "high"),
        ("wrong mask", 1e-6, "high"),
        ("missing bias", 1e-6, "high"),
    ],
)
def test_confidence_is_lower_where_noise_is_nearly_as_large(name: str, noise: float, confidence: str) -> None:
    fault = fault_named(name)
    verdict = verdict_of(compare(step_of(fault.model, noise, 1), step_of(fault.model, noise, 2, fault)))
    assert verdict is not None and verdict.confidence == confidence


def test_the_verdict_is_one_sentence_with_numbers() -> None:
    verdict = verdict_of(compare(step_of("gpt", 1e-6, 1), step_of("gpt", 1e-6, 2, SOFTMAX)))
    assert verdict is not None
    said = " ".join(map(str, verdict.sentences))
    assert re.fullmatch(
        r"blocks\.1\._softmax \(forward\) has an error of its own, [\d,]+ x the noise floor; "
        r"its inputs agree to \de-06\. Nothing before it is suspected; what uses its result inherits the error\.",
        said,
    ), said
    assert verdict_of(compare(step_of("gpt", 1e-6, 1), step_of("gpt", 1e-6, 2))) is None


def test_of_many_steps_the_first_suspected_one_is_shown(
    dumps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare_folders(*dumps, as_json=False) == 1
    said = capsys.readouterr().out
    assert said.startswith("1 of 6 recorded steps have suspects, the first is step 2, rank 1")
    assert said.count("operator calls") == 1
    assert re.search(r"Next: npuport precision check-ops '.*bad 中' --only cell ", said)
    assert "npuport precision ranks" in said


def test_a_module_that_is_called_otherwise_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = step_of("gpt", 1e-6, 2)
    calls = [replace(call, module=call.module.replace("blocks", "layers")) for call in step.calls]
    write_step(tmp_path / "a", step_of("gpt", 1e-6, 1))
    write_step(tmp_path / "b", replace(step, calls=calls))
    assert compare_folders(tmp_path / "a", tmp_path / "b", as_json=False) == 0
    assert "Modules matched by what they do: 21; layers is blocks of the reference." in capsys.readouterr().out
    assert compare_folders(tmp_path / "a", tmp_path / "b", as_json=False, renames=["blocks=layers"]) == 0
    assert "matched by what they do" not in capsys.readouterr().out
    with pytest.raises(UserError, match="REFERENCE=CANDIDATE"):
        compare_folders(tmp_path / "a", tmp_path / "b", as_json=False, renames=["blocks"])


REPORT = """
<script>
const go = document.querySelector(".go");
const found = { rows: body.rows.length, all: matching.length, opened: document.querySelectorAll(".tree .row").length };
search.value = "sigmoid"; search.dispatchEvent(new Event("input"));
found.sigmoid = matching.length;
search.value = ""; boxes[0].checked = false; boxes[0].dispatchEvent(new Event("change"));
found.withoutForward = matching.length;
boxes[0].checked = true; boxes[0].dispatchEvent(new Event("change"));
document.querySelector("#calls th button[data-key=t]").click();
found.first = body.rows[0] ? body.rows[0].cells[2].textContent : "";
if (go) { go.click(); found.chosen = body.querySelector(".chosen").cells[2].textContent; }
[...document.querySelectorAll(".tree .name button.mono")].at(-1).click();
found.within = matching.length;
found.loaded = performance.now();
document.title = "RESULT" + JSON.stringify(found);
</script>
"""


def in_browser(page: str, folder: Path) -> dict[str, object]:
    """What the page's script finds, in Chromium, with nothing said on the console."""
    file = folder / "page.html"
    file.write_text(page.replace("</body>", REPORT + "</body>", 1), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [str(CHROMIUM), *options, "--enable-logging=stderr", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    assert 'href="blob:' in done.stdout
    found: dict[str, object] = json.loads(re.search(r"RESULT(\{.*?\})</title>", done.stdout)[1].replace("&quot;", '"'))  # type: ignore[index]
    return found


@needs_chromium
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_shows_the_suspect_in_a_browser(
    language: str, dumps: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", language)
    assert compare_folders(*dumps, as_json=True, html=tmp_path / "page.html") == 1
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=[\"'](?!data:|#)", page)
    assert ("噪声底" if language == "zh" else "x the noise floor") in page
    assert 'class="number bad here"' in page and "candidate_path" not in page and "<svg" in page
    found = in_browser(page, tmp_path)
    bad_calls = read_step(step_file(dumps[1], 2, 1)).calls
    number = len(bad_calls)
    assert found["all"] == number and found["rows"] == min(number, 200)
    assert found["sigmoid"] == sum("sigmoid" in call.operator for call in bad_calls)
    assert found["withoutForward"] == sum(call.phase != "forward" for call in bad_calls)
    assert found["first"] == found["chosen"] == "sigmoid_"
    assert 0 < int(str(found["within"])) < number


@needs_chromium
def test_the_page_of_fifty_thousand_calls_is_light(tmp_path: Path) -> None:
    modules = [f"model.layers.{at}.{name}" for at in range(250) for name in ("self_attn.q_proj", "mlp.up_proj")]
    number = 50_000
    calls = {
        "modules": modules,
        "operators": ["mm", "gelu", "mul"],
        "lines": ["modeling_llama.py:312"],
        "phases": ["forward", "backward"],
        "classes": dict.fromkeys(modules, "Linear"),
        "m": [at * len(modules) // number for at in range(number)],
        "o": [at % 3 for at in range(number)],
        "l": [0] * number,
        "p": [at * 2 // number for at in range(number)],
        **{name: [float(f"{1e-6 * (1 + at % 97):.1e}") for at in range(number)] for name in "erta"},
    }
    shown = {"summary": "", "verdict": (), "confidence": None, "sureness": "", "next": "", "notes": [], "suspects": [],
             "rank": 0, "step": 0}  # fmt: skip
    page = precision_page(("a", "b"), [], shown, {0: {0: 0}}, calls, [])
    assert len(page) < 5_000_000
    found = in_browser(page, tmp_path)
    assert found["all"] == number
    print(f"{len(page):,} bytes, everything done after {found['loaded']:.0f} ms", file=sys.stderr)
