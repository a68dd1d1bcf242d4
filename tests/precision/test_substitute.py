"""Each module gets the reference's input: only what is wrong by itself is off."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from precision_json import document_of  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from npuport.cli.precision_substitute import substitute  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision import record  # noqa: E402
from npuport.precision.bisect.substituting import Substituting  # noqa: E402
from npuport.precision.bisect.substitution import ModuleError, Substitution, read_errors  # noqa: E402


class Block(nn.Module):
    def __init__(self, residual: float) -> None:
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)
        self.residual = residual

    def forward(self, x: Tensor) -> Tensor:
        return self.residual * x + self.down(self.act(self.up(self.norm(x))))


def model(approximate: str = "none", residual: float = 1.0) -> nn.Sequential:
    torch.manual_seed(0)
    made = nn.Sequential(*(Block(1.0 if at != 1 else residual) for at in range(3)), nn.Linear(8, 1))
    made[1].act = nn.GELU(approximate=approximate)
    return made


def train(made: nn.Module) -> None:
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        made(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()


@pytest.fixture
def errors_of(tmp_path: Path) -> Callable[[nn.Module], list[ModuleError]]:
    with record(tmp_path / "reference", steps="0-1"):
        train(model())

    def measured(made: nn.Module) -> list[ModuleError]:
        substituting = Substituting(Substitution(str(tmp_path / "reference"), 0, str(tmp_path / "found")))
        substituting.start()
        train(made)
        substituting.stop()
        return read_errors(tmp_path / "found")[0]

    return measured


def test_the_same_model_is_off_nowhere(errors_of: Callable[[nn.Module], list[ModuleError]]) -> None:
    found = errors_of(model())
    assert [one.path for one in found][:5] == ["0.norm", "0.up", "0.act", "0.down", "1.norm"]
    assert len(found) == 13
    assert all(one.own == one.before == 0 for one in found)


def test_only_the_module_that_differs_is_off(errors_of: Callable[[nn.Module], list[ModuleError]]) -> None:
    found = errors_of(model(approximate="tanh"))
    assert [one.path for one in found if one.own > 0] == ["1.act"]
    assert [one.path for one in found if one.before > 0] == ["1.down"]


def test_code_between_modules_is_told_at_the_next_input(errors_of: Callable[[nn.Module], list[ModuleError]]) -> None:
    found = errors_of(model(residual=0.5))
    assert all(one.own == 0 for one in found)
    assert next(one.path for one in found if one.before > 1e-3) == "2.norm"


def test_gradients_flow_through_what_was_replaced(errors_of: Callable[[nn.Module], list[ModuleError]]) -> None:
    made, plain = model(), model()
    train(plain)
    errors_of(made)
    assert all(torch.equal(a, b) for a, b in zip(made.parameters(), plain.parameters(), strict=True))


SCRIPT = """\
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(approximate=sys.argv[1]), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(8, 4)).mean().backward()
optimizer.step()
print("trained")
"""


def test_a_run_is_measured_without_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"NPUPORT_DEVICE": "cpu", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}.items():
        monkeypatch.setenv(name, value)
    script, reference = tmp_path / "train.py", tmp_path / "reference"
    script.write_text(SCRIPT, encoding="utf-8")
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    with record(reference):
        made(torch.randn(8, 4)).mean().backward()
        optimizer.step()
    assert substitute(reference, [sys.executable, str(script), "tanh"], 0, as_json=True) == 1
    (rank,) = document_of("substitute", capsys.readouterr().out)["ranks"]
    assert rank["far"] == [{"path": "1", "where": "own"}]
    with pytest.raises(UserError, match="--step"):
        substitute(reference, [sys.executable, str(script), "tanh"], 7, as_json=False)
