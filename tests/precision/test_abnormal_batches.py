"""What is out of the ordinary in a batch is named with its samples; ordinary data is left in peace."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from precision_json import document_of  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from npuport.precision.training_state import boards  # noqa: E402
from npuport.precision.training_state.abnormal_batches import abnormal_in  # noqa: E402
from npuport.precision.training_state.abnormal_text import abnormal  # noqa: E402
from npuport.precision.training_state.kept_batches import KeptBatch, read_batches  # noqa: E402
from npuport.precision.training_state.recording import monitoring  # noqa: E402

PROSE = (
    "The train left the station a little after seven, and by the time the fog had lifted from the river most of the "
    "passengers were asleep. An old man near the window counted the bridges aloud. Nobody listened, except a child who "
    "had been told that there were nineteen of them, and who wanted to know whether that was true in 2024 as well."
)
ORDINARY = {
    "prose": PROSE,
    "Chinese": "清晨的火车刚过七点就离开了车站，等到河上的雾散去时，大多数乘客都已经睡着了。"
    "靠窗的一位老人大声数着桥，没有人听，只有一个孩子除外。",
    "German": "Über den Flüssen lag Nebel; größere Äste trieben vorbei, während die Übrigen schliefen.",
    "code": "def area(radius):\n    return 3.14159 * radius ** 2\n\nfor value in range(10):\n    print(value)",
    "emoji": "What a day 😀 🎉 we went to the beach and then had dinner with friends, see you again 👋🏽 bye",
    "a table": "\n".join(f"| {name} | {len(name) * 7} | open |" for name in PROSE.split()[:20]),
    "an address": "See https://example.org/some/long/path/to/a/page.html?with=parameters&and=more for all of it.",
    "short": "12345",
}
STRANGE = {
    "garbled": ("garbled", PROSE.replace("e", "\ufffd")),
    "UTF-8 read as Latin-1": ("garbled", ("größere Äste über Flüssen, schön " * 3).encode().decode("latin-1")),
    "base64": ("encoded data", "picture: " + base64.b64encode(random.Random(1).randbytes(600)).decode()),
    "byte code": ("encoded data", "".join(f"\\x{one:02x}" for one in random.Random(2).randbytes(100))),
    "hexadecimal": ("encoded data", " ".join(f"{one:02x}" for one in random.Random(3).randbytes(100))),
    "digits": ("digits", " ".join(str(random.Random(4).random())[2:9] for _ in range(40))),
    "repetition": ("repeats itself", "good morning " * 60),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_texts_are_left_in_peace(name: str) -> None:
    assert list(abnormal(ORDINARY[name])) == []


@pytest.mark.parametrize("name", STRANGE)
def test_strange_texts_are_named(name: str) -> None:
    word, text = STRANGE[name]
    assert any(word in str(one) for one in abnormal(text))


def batch(classes: int | None = None, **tensors: torch.Tensor) -> KeptBatch:
    return KeptBatch(5, 0, tensors, classes)


def told(one: KeptBatch) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(found.tensor, str(found.text), found.samples) for found in abnormal_in(one)]


def tokens(rows: int = 4, length: int = 64, seed: int = 0) -> torch.Tensor:
    """Ids as of a text: some come often, most seldom."""
    weights = 1 / torch.arange(1, 501).float()
    return torch.multinomial(weights, rows * length, True, generator=torch.Generator().manual_seed(seed)).view(
        rows, length
    )


def padded() -> torch.Tensor:
    ids = tokens()
    ids[1, 30:] = 0
    ids[2, :20] = 0
    return ids


def test_ordinary_batches_are_left_in_peace() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = tokens(seed=1)
    labels[:, :10] = -100
    assert told(batch(500, input_ids=padded(), labels=labels, attention_mask=torch.ones(4, 64, dtype=torch.long))) == []
    images = torch.randn(8, 3, 16, 16, generator=generator)
    assert told(batch(10, **{"0": images, "1": torch.randint(0, 10, (8,), generator=generator)})) == []
    assert told(batch(None, x=torch.zeros(8, 4), position_ids=torch.arange(64).expand(2, 64))) == []


def test_each_trouble_of_tokens_is_named_with_its_samples() -> None:
    ids = tokens(7)
    ids[1] = 7
    ids[2] = torch.tensor([11, 22, 33, 44, 55]).repeat(13)[:64]
    ids[3, 3:] = 0
    ids[4] = ids[0]
    ids[5, :50] = torch.where(torch.arange(50) % 4 == 0, ids[5, :50], 9)
    found = {text: samples for _, text, samples in told(batch(None, input_ids=ids))}
    assert found["nearly all of it is padding (token 7)"] == (1, 3)
    assert found["repeats itself every 5 tokens"] == (2,)
    assert found["1 samples are copies of others in the batch"] == ()
    assert any(text.startswith("token 9 is ") and samples == (5,) for text, samples in found.items())


def test_labels() -> None:
    labels = tokens()
    labels[0] = -100
    labels[2, 5], labels[3, 6] = 900, -7
    found = told(batch(500, labels=labels))
    assert ("labels", "every label is ignored: no loss comes of it", (0,)) in found
    assert ("labels", "2 labels out of range: -7 to 900, where the last layer has 500 outputs", (2, 3)) in found
    assert told(batch(10, **{"1": torch.full((8,), -100)}))[0][1] == "every label is ignored: no loss comes of it"


def test_numbers() -> None:
    images = torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    images[1, 0, 0, 0] = float("nan")
    images[2] = 0.5
    images[4] *= 1000
    assert told(batch(None, pixels=images))[:2] == [
        ("pixels", "1 values are not finite", (1,)),
        ("pixels", "constant: every value is the same", (2,)),
    ]
    assert [samples for _, text, samples in told(batch(None, pixels=images)) if "as large" in text] == [(4,)]


def test_a_tokenizer_makes_text_of_it() -> None:
    ids = torch.tensor([[ord(character) for character in text[:200].ljust(200)] for text in (PROSE, "9031 77 6 " * 30)])
    found = abnormal_in(batch(None, input_ids=ids), decode=lambda row: "".join(map(chr, row)))
    assert any("are digits" in str(one.text) and one.samples == (1,) for one in found)
    assert not any(0 in one.samples for one in found)


def test_the_batch_of_a_spike_is_kept_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards.Board, "of", lambda _folder: None)
    torch.manual_seed(0)
    inputs, labels = torch.randn(8 * 40, 20), torch.randint(0, 3, (8 * 40,))
    inputs[8 * 30 + 3] *= 5000
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=8)
    model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with monitoring(tmp_path):
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    kept = read_batches(tmp_path / "batches")
    assert [one.step for one in kept][:1] == [30]
    assert torch.equal(kept[0].tensors["0"], inputs[240:248])
    assert torch.equal(kept[0].tensors["1"], labels[240:248])
    assert kept[0].classes == 3
    command = [sys.executable, "-m", "npuport", "precision", "state", str(tmp_path)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    first = document_of("state", done.stdout)["batches"][0]
    assert (first["step"], first["abnormal"][0]["samples"]) == (30, [3])
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "the batch of step 30, rank 0: 0 (8, 20), 1 (8,)" in text
    refused = subprocess.run([*command, "--tokenizer", str(tmp_path)], capture_output=True, text=True, check=False)
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)


def test_a_healthy_training_keeps_no_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainings import HEALTHY

    monkeypatch.setattr(boards.Board, "of", lambda _folder: None)
    for name in ("lstm sgd", "cnn adam"):
        HEALTHY[name].run(tmp_path / name)
        assert not (tmp_path / name / "batches").exists()
