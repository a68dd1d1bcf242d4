"""`npuport run --deterministic` as its users run it: the same bits again, on the CPU and on the simulated NPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from precision_json import document_of

pytest.importorskip("torch")

SCRIPT = """
import random, sys, hashlib
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

device = sys.argv[1]

class Data(torch.utils.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, at): return torch.randn(8) + random.random() + np.random.rand(), at % 3

if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 3)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for x, y in torch.utils.data.DataLoader(Data(), batch_size=8, shuffle=True, num_workers=1):
        loss = F.cross_entropy(model(x.float().to(device)), y.to(device))
        loss.backward(); optimizer.step(); optimizer.zero_grad()
    values = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
    x = torch.ones(4, 64, device=device)
    q = torch.randn(1, 1, 4, 8, device=device)
    drops = [not torch.equal(F.dropout(x, 0.5), x), not torch.equal(nn.Dropout(0.5)(x), x),
             nn.LSTM(2, 2, 2, dropout=0.4).dropout > 0,
             not torch.equal(F.scaled_dot_product_attention(q, q, q, dropout_p=0.5),
                             F.scaled_dot_product_attention(q, q, q))]
    print(hashlib.sha256(values).hexdigest(), list({"a", "b", "c", "d"}), sum(drops),
          torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
"""


def run(folder: Path, device: str, *options: str) -> str:
    script = folder / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    where = ["--sim"] if device == "npu" else []
    command = [sys.executable, "-m", "npuport", "run", *where, *options, "--", sys.executable, str(script), device]
    hidden = ("PYTHONHASHSEED", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    own = {} if device == "npu" else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "NPUPORT_DEVICE": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**kept, **own})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.sim
def test_two_runs_on_the_simulated_npu_compute_the_same_bits(tmp_path: Path) -> None:
    first = run(tmp_path, "npu", "--deterministic", "--preflight", str(tmp_path / "facts"))
    assert run(tmp_path, "npu", "--deterministic", "--monitor", str(tmp_path / "state")) == first
    assert first.endswith("4 True True")
    facts = json.loads((tmp_path / "facts" / "run.json").read_text(encoding="utf-8"))
    assert (facts["settings"]["device"], facts["variables"]["HCCL_DETERMINISTIC"]) == ("npu", "true")
    assert [len(loader["batches"]) for loader in facts["loaders"]] == [3]
    assert (tmp_path / "state" / "state.rank0.jsonl").read_text(encoding="utf-8").count('"of": 0') == 3


def test_what_is_set_is_said_once_and_the_user_s_own_choice_stays(tmp_path: Path) -> None:
    script = tmp_path / "say.py"
    script.write_text("import os; print(os.environ['HCCL_DETERMINISTIC'])", encoding="utf-8")
    environment = {
        **os.environ,
        "NPUPORT_DEVICE": "cpu",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "HCCL_DETERMINISTIC": "strict",
    }
    command = [sys.executable, "-m", "npuport", "run", "--deterministic", "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.strip() == "strict"
    assert done.stderr.count("HCCL_DETERMINISTIC=strict") == 1
    assert "PYTHONHASHSEED=0" in done.stderr


def test_no_dropout_alone_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "npuport", "run", "--no-dropout", "--", sys.executable, str(tmp_path / "x.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_the_facts_of_a_run_are_written_and_compared_by_the_commands(tmp_path: Path) -> None:
    first = run(tmp_path, "cpu", "--deterministic", "--preflight", str(tmp_path / "a"))
    assert run(tmp_path, "cpu", "--deterministic", "--preflight", str(tmp_path / "again")) == first
    seeded = ("--deterministic", "--seed", "2", "--no-dropout", "--strict")
    other = run(tmp_path, "cpu", *seeded, "--preflight", str(tmp_path / "b"))
    assert other.split()[0] != first.split()[0]
    assert other.endswith("0 True False")
    assert preflight(tmp_path / "a", tmp_path / "again") == (0, "Nothing differs.")
    code, text = preflight(tmp_path / "a", tmp_path / "b")
    assert code == 1
    assert "✗ initial-weights" in text
    assert "→ " in text
    code, text = preflight(tmp_path / "a", tmp_path / "b", "--json")
    assert {"initial-weights", "batches", "dropout"} <= {
        one["check"] for one in document_of("preflight", text)["differences"]
    }


def preflight(*words: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "npuport", "precision", "preflight", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()
