"""Which operators must be raised: the search, what raising does, and a training that is searched."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from precision_json import document_of  # noqa: E402

from npuport.cli.precision_bisect import bisect  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision.bisect.plan import HOW, Plan, Unit, read_plan, read_seen, write_seen  # noqa: E402
from npuport.precision.bisect.raising import Raising  # noqa: E402
from npuport.precision.bisect.runs import Judge, Runs  # noqa: E402
from npuport.precision.bisect.search import Answer, search  # noqa: E402
from npuport.precision.bisect.smallest import OutOfRunsError, smallest  # noqa: E402

SCRIPT = Path(__file__).with_name("bisected.py")


@pytest.mark.parametrize("needed", [*itertools.combinations(range(9), 1), (0, 8), (2, 3), (1, 4, 7), tuple(range(9))])
def test_the_smallest_part_is_found(needed: tuple[int, ...]) -> None:
    asked: list[tuple[int, ...]] = []

    def holds(part: tuple[int, ...]) -> bool:
        asked.append(part)
        return set(needed) <= set(part)

    best: list[tuple[int, ...]] = []
    assert smallest(range(9), holds, best.append) == needed
    assert not best or best[-1] == needed
    assert len(asked) <= (8 if len(needed) == 1 else 60)


def test_what_is_known_is_told_when_the_runs_end() -> None:
    best: list[tuple[int, ...]] = []
    left = iter(range(3))

    def holds(part: tuple[int, ...]) -> bool:
        if next(left, None) is None:
            raise OutOfRunsError
        return 5 in part

    with pytest.raises(OutOfRunsError):
        smallest(range(16), holds, best.append)
    assert 5 in best[-1]


class Spy(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the dtypes with which each operator is really computed."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: dict[str, set[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for one in torch.utils._pytree.tree_leaves(args):
            if isinstance(one, torch.Tensor):
                self.dtypes.setdefault(func.__name__.partition(".")[0], set()).add(one.dtype)
        return func(*args, **(kwargs or {}))


def raised(tmp_path: Path, how: str, operators: set[str], function: Callable[[], Any]) -> tuple[Any, Spy, Raising]:
    raising = Raising(Plan(how, frozenset(Unit(name, "") for name in operators), tmp_path))
    with Spy() as spy, raising:
        result = function()
    return result, spy, raising


@pytest.mark.parametrize("how", HOW)
def test_chosen_operators_compute_in_higher_precision_and_give_what_they_gave(tmp_path: Path, how: str) -> None:
    x, y = torch.randn(8, 8).bfloat16(), torch.randn(8, 8).bfloat16()
    result, spy, raising = raised(tmp_path, how, {"mm"}, lambda: torch.exp(x @ y))
    assert result.dtype == torch.bfloat16
    higher = {"float32": torch.float32, "cpu": torch.bfloat16, "float64": torch.float64}[how]
    assert higher in spy.dtypes["mm"]
    assert spy.dtypes["exp"] == {torch.bfloat16}
    assert raising.seen == [Unit("mm", ""), Unit("exp", "")]
    exact = (x.double() @ y.double()).bfloat16().exp()
    assert torch.equal(result, exact) or how == "cpu"


def test_operators_in_place_write_what_they_wrote(tmp_path: Path) -> None:
    x = torch.ones(4)
    result, _, _ = raised(tmp_path, "float64", {"add_", "mul_"}, lambda: x.view(2, 2).add_(1).mul_(3))
    assert torch.equal(x, torch.full((4,), 6.0))
    assert result.data_ptr() == x.data_ptr()
    mean = torch.zeros(3)
    norm = torch.nn.functional.batch_norm
    raised(
        tmp_path, "float64", {"native_batch_norm"}, lambda: norm(torch.ones(4, 3), mean, torch.ones(3), training=True)
    )
    assert torch.allclose(mean, torch.full((3,), 0.1))


def test_a_training_step_is_the_same_with_everything_raised(tmp_path: Path) -> None:
    def step(raising: Raising | None) -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(),
                                    torch.nn.Linear(18, 3), torch.nn.Dropout(0.0))  # fmt: skip
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        if raising is not None:
            raising.start()
        torch.nn.functional.cross_entropy(model(torch.randn(4, 1, 5, 5)), torch.tensor([0, 1, 2, 0])).backward()
        optimizer.step()
        if raising is not None:
            raising.stop()
        return [*model.parameters(), *model.buffers()]

    plain = step(None)
    first = Raising(Plan("float64", frozenset(), tmp_path / "seen"))
    assert all(torch.equal(a, b) for a, b in zip(plain, step(first), strict=True))
    units = read_seen(tmp_path / "seen")
    assert Unit("convolution", "0") in units
    assert Unit("convolution_backward", "0") in units
    everything = step(Raising(Plan("float64", frozenset(units), tmp_path)))
    for a, b in zip(plain, everything, strict=True):
        assert a.dtype == b.dtype
        # The gradient of a bias before a batch norm is rounding alone, and Adam makes full steps of it.
        assert torch.allclose(a, b, atol=1e-4) or a.shape == (2,)


def test_plans_survive_the_file(tmp_path: Path) -> None:
    plan = Plan("cpu", frozenset([Unit("mm", "a.b"), Unit("gelu", "")]), tmp_path / "seen")
    plan.write(tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    write_seen(tmp_path / "seen", [Unit("mm", "a.b")])
    assert read_seen(tmp_path / "seen") == [Unit("mm", "a.b")]


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NPUPORT_DEVICE": "cpu", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)


class Known:
    """Runs of which it is known which units must be raised."""

    def __init__(self, needed: set[Unit], most: int = 99) -> None:
        self.needed, self.most = needed, most
        self.known: set[frozenset[Unit]] = set()

    def units(self) -> list[Unit]:
        return [Unit(name, f"layers.{layer}") for layer in range(6) for name in ("mm", "gelu", "add", "mul", "softmax")]

    def goes(self, units: Sequence[Unit]) -> bool:
        if frozenset(units) not in self.known:
            if len(self.known) == self.most:
                raise OutOfRunsError
            self.known.add(frozenset(units))
        return self.needed <= set(units)


@pytest.mark.parametrize(
    ("needed", "most"),
    [([("gelu", 3)], 12), ([("mm", 0), ("mm", 5)], 30), ([("mm", 1), ("softmax", 4)], 30)],
)
def test_operators_and_then_modules_are_searched(needed: list[tuple[str, int]], most: int) -> None:
    units = tuple(Unit(name, f"layers.{layer}") for name, layer in needed)
    runs = Known(set(units))
    assert search(runs) == Answer("found", units)
    assert len(runs.known) <= most
    stopped = search(Known(set(units), most=6))
    assert stopped.outcome == "out of runs"
    assert set(units) <= set(stopped.units)


def test_a_run_that_is_right_and_one_that_stays_wrong_need_no_search() -> None:
    assert search(Known(set())) == Answer("right as it is")
    assert search(Known({Unit("none", "")})) == Answer("stays")


@pytest.mark.usefixtures("on_cpu")
def test_a_training_is_run_until_it_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, keep = tmp_path / "right.log", tmp_path / "kept"
    healthy = subprocess.run([sys.executable, str(SCRIPT), "healthy"], capture_output=True, check=True, env=os.environ)
    log.write_bytes(healthy.stdout)
    command = [sys.executable, str(SCRIPT)]
    assert bisect(command, "float64", "", log, 2, keep, as_json=False) == 1
    told = capsys.readouterr()
    assert "the run is right; after 2 runs it is not known whether fewer do" in told.out
    assert "run 1: 0 raised: wrong" in told.err
    assert bisect(command, "float64", "", log, 0, keep, as_json=True) == 1
    document = document_of("bisect", capsys.readouterr().out)
    assert document["outcome"] == "out of runs" and {"operator": "silu", "module": "1.act"} in document["units"]
    units = read_seen(keep / "seen")
    assert {Unit("silu", "0.act"), Unit("silu_backward", "1.act"), Unit("native_layer_norm", "2")} <= set(units)
    # The answers are kept: the search goes on with those, and finds what was wrong.
    answers = keep / "answers.json"
    document = json.loads(answers.read_text(encoding="utf-8"))
    runs = Runs(command, "float64", Judge("", log), keep, 0, lambda *_: None)
    assert runs.goes(units)
    with pytest.raises(OutOfRunsError):
        runs.goes(units[:1])
    one = [unit for unit in units if unit == Unit("silu", "1.act")]
    assert Runs(command, "float64", Judge("", log), keep, 1, lambda *_: None).goes(one)
    assert len(document["answers"]) == 2
    with pytest.raises(UserError, match="another search"):
        bisect(command, "cpu", "", log, 2, keep, as_json=False)


def test_a_judge_of_the_user_and_finite_losses_decide(tmp_path: Path) -> None:
    train, log = [sys.executable, str(SCRIPT)], tmp_path / "run.log"
    log.write_text("step 0 loss 2.0\nstep 1 loss 1.0\n", encoding="utf-8")
    assert Judge().is_right(log, code=0)
    assert not Judge().is_right(log, code=1)
    assert Judge(reference=log).is_right(log, code=0)
    log.write_text("step 0 loss 2.0\nstep 1 loss nan\n", encoding="utf-8")
    assert not Judge().is_right(log, code=0)
    check = f"{sys.executable} -c \"import os; raise SystemExit('loss' not in open(os.environ['NPUPORT_LOG']).read())\""
    assert Judge(check).is_right(log, code=1)
    with pytest.raises(UserError, match="no_such_judge"):
        Judge("no_such_judge").is_right(log, code=0)
    with pytest.raises(UserError, match="--by"):
        bisect(train, "float16", "", None, 9, tmp_path / "c", as_json=False)
    with pytest.raises(UserError, match="two judges"):
        bisect(train, "cpu", "true", log, 9, tmp_path / "c", as_json=False)
