"""The page of a training's state, in Chromium where it is installed."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path

import pytest

from npuport.cli.precision_state import state
from npuport.errors import UserError
from npuport.precision.training_state.history import (
    SKETCH,
    Series,
    StateStep,
    head_line,
    series_line,
    state_file,
    step_line,
)
from npuport.precision.training_state.page_data import (
    MISSING,
    NOT_FINITE,
    curves_of,
    directions_of,
    maps_of,
    thinned,
)

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def series_of(layers: int, steps: int, broken: int = -1) -> Series:
    """A training whose gradients fall, turn around in every step, and are infinite in the second layer once."""
    names = tuple(f"model.layers.{at}.mlp.up.weight" for at in range(layers))
    series = Series(names, (0,) * layers, tuple(range(layers)))
    for step in range(steps):
        values: list[float] = []
        for at in range(layers):
            norm = math.inf if (step, at) == (broken, 1) else 0.1 / (1 + step)
            values += [norm, float(math.isinf(norm)), 10.0, 0.01, norm, norm]
            values += [(-1.0) ** step * (at + place + 1) for place in range(SKETCH)]
        rates = (1e-3 * (step + 1) / steps,)
        series.steps.append(StateStep(step, 4.0 - step / steps, rates, 1024.0, None, False, values))
    return series


def written(folder: Path, series: Series) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [head_line(0, 1, False), series_line(0, series), *(step_line(0, one) for one in series.steps)]
    state_file(folder, 0).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_long_curve_keeps_its_spikes() -> None:
    values = [1.0] * 100_000
    values[70_001], values[80_000] = 50.0, math.nan
    steps, kept = thinned(range(100_000), values)
    assert len(steps) < 1000 and 70_001 in steps and 80_000 in steps and 50.0 in kept
    assert thinned([3, 4], [1.0, 2.0]) == ((3, 4), (1.0, 2.0))


def test_the_curves_are_those_of_the_run() -> None:
    curves = {one.group: one for one in curves_of(series_of(4, 10))}
    assert set(curves) == {"loss", "gradient norm", "learning rate", "loss scale"}
    assert curves["gradient norm"].values[1] == pytest.approx(math.sqrt(4) * 0.05)
    assert curves["learning rate"].values[-1] == pytest.approx(1e-3) and curves["loss"].values[0] == 4.0


def test_a_gradient_that_turns_around_has_the_opposite_direction() -> None:
    first, *others = directions_of(series_of(2, 6))["model.layers.0.mlp.up"]
    assert math.isnan(first) and others == pytest.approx([-1.0] * 5)


def test_a_map_tells_each_value_to_a_few_percent_and_what_is_not_finite() -> None:
    found = maps_of(series_of(3, 20, broken=5))
    norms, direction, ratio, weight = found["measures"]
    codes = b64decode(norms["codes"])
    assert found["bins"] == [[step, step] for step in range(20)] and len(codes) == 60
    assert codes[20 + 5] == NOT_FINITE and NOT_FINITE not in codes[:20]
    told = 10 ** (norms["low"] + codes[3] / 250 * (norms["high"] - norms["low"]))
    assert told == pytest.approx(0.1 / 4, rel=0.03)
    assert b64decode(direction["codes"])[:2] == bytes([MISSING, 0])
    assert len(set(b64decode(weight["codes"]))) == len(set(b64decode(ratio["codes"]))) == 1


REPORT = """<script>
const all = (selector) => document.querySelectorAll(selector), search = document.querySelector("input[type=search]");
const canvas = all("table.map canvas")[1];
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1).data;
const pixel = (at) => [...pixels.slice(4 * at, 4 * at + 4)];
const found = { rows: all("table.map tbody tr").length, charts: all("svg.chart").length };
found.broken = pixel(Math.floor(40 / 100 * canvas.width));
found.first = pixel(0);
found.height = canvas.height;
document.querySelector("button.layer").click();
found.alone = all("table.map tbody tr.alert").length;
all(".choices input")[1].click();
found.low = document.querySelector(".low").textContent;
search.value = "";
search.dispatchEvent(new Event("input"));
document.querySelector(".more").click();
found.more = all("table.map tbody tr").length;
document.title = "RESULT" + JSON.stringify(found);
</script>"""


@needs_chromium
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_shows_layers_alerts_and_curves_in_a_browser(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NPUPORT_LANG", language)
    folder = written(tmp_path / "state 状态", series_of(150, 100, broken=40))
    assert state(folder, None, "", False, True, tmp_path / "page.html") == 1
    assert json.loads(capsys.readouterr().out)["alerts"][0]["layer"] == "model.layers.1.mlp.up"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(page) < 200_000 and not re.findall(r"(?:src|href)=[\"'](?!data:|#)", page)
    assert ("各层随时间的变化" if language == "zh" else "Layers over time") in page
    file = tmp_path / "shown.html"
    file.write_text(page.replace("</body>", REPORT + "</body>", 1), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [str(CHROMIUM), *options, "--enable-logging=stderr", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr, done.stderr[-2000:]
    match = re.search(r"RESULT(\{.*?\})</title>", done.stdout)
    assert match is not None
    found = json.loads(match[1].replace("&quot;", '"'))
    assert (found["rows"], found["charts"], found["more"]) == (100, 4, 150)
    assert found["broken"] == [214, 51, 108, 255] != found["first"] and found["height"] == 1
    assert found["alone"] == 1 and found["low"] == "-1"


def test_the_page_of_many_layers_stays_small(tmp_path: Path) -> None:
    folder = written(tmp_path / "many", series_of(2000, 30))
    state(folder, None, "", False, True, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 1_000_000


def test_a_page_of_two_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--html shows one run"):
        state(tmp_path, tmp_path, "", False, False, tmp_path / "page.html")
