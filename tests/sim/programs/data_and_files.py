"""Data loading with workers and pinned memory, prefetching on a stream, saving and loading, resuming."""

from __future__ import annotations

import io

import checks
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.data import DataLoader, TensorDataset


def check_pinned_memory() -> None:
    host = torch.randn(10).pin_memory()
    assert host.is_pinned() and not torch.randn(10).is_pinned()
    assert torch.equal(host.npu(non_blocking=True).cpu(), host)


def check_loader_with_workers() -> None:
    numbers = torch.arange(40.0).view(20, 2)
    loader = DataLoader(TensorDataset(numbers), batch_size=4, num_workers=2, pin_memory=True, persistent_workers=True)
    for _ in range(2):
        total = 0.0
        for (batch,) in loader:
            assert batch.is_pinned()
            total += batch.npu(non_blocking=True).sum().item()
        assert total == numbers.sum().item()


def check_prefetching_on_a_stream() -> None:
    stream, batches, seen = torch.npu.Stream(), [torch.full((4,), float(i)).pin_memory() for i in range(5)], []
    ahead = None
    for batch in [*batches, None]:
        if ahead is not None:
            torch.npu.current_stream().wait_stream(stream)
            ahead.record_stream(torch.npu.current_stream())
            seen.append((ahead * 2).sum().item())
        with torch.npu.stream(stream):
            ahead = None if batch is None else batch.npu(non_blocking=True)
    assert seen == [i * 8.0 for i in range(5)]


def check_save_and_load() -> None:
    file = io.BytesIO()
    torch.save({"tensor": torch.arange(3).npu(), "weights": torch.nn.Linear(2, 2).npu().state_dict()}, file)
    for location, expected in ((None, "npu:0"), ("cpu", "cpu"), ("npu:1", "npu:1")):
        file.seek(0)
        loaded = torch.load(file, map_location=location)
        assert str(loaded["tensor"].device) == expected and loaded["tensor"].tolist() == [0, 1, 2]
        assert str(loaded["weights"]["weight"].device) == expected


def train(steps: int, file: io.BytesIO | None = None) -> tuple[list[float], io.BytesIO]:
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)).npu()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    if file is not None:
        saved = torch.load(file)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["cpu"].cpu())
        torch.npu.set_rng_state_all([state.cpu() for state in saved["npu"]])
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(torch.randn(16, 4, device="npu")).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    out = io.BytesIO()
    state = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "cpu": torch.get_rng_state(),
        "npu": torch.npu.get_rng_state_all(),
    }
    torch.save(state, out)
    out.seek(0)
    return losses, out


def check_the_oldest_file_format_saves_no_device_tensor() -> None:
    tensor, oldest = torch.randn(5), {"_use_new_zipfile_serialization": False}
    checks.raises(RuntimeError, "not an NPUStorageImpl", lambda: torch.save(tensor.npu(), io.BytesIO(), **oldest))
    for place in ("npu:0", {"cpu": "npu:0"}):
        file = io.BytesIO()
        torch.save(tensor, file, **oldest)
        file.seek(0)
        loaded = torch.load(file, map_location=place)
        assert loaded.device == torch.device("npu:0") and torch.equal(loaded.cpu(), tensor)


def check_resuming_continues_the_run() -> None:
    torch.manual_seed(3)
    whole, _ = train(6)
    torch.manual_seed(3)
    first, file = train(3)
    torch.manual_seed(999)
    second, _ = train(3, file)
    assert first + second == whole


def check_packed_sequences() -> None:
    padded = torch.arange(6.0).view(2, 3, 1).npu()
    packed = pack_padded_sequence(padded, torch.tensor([3, 2]), batch_first=True, enforce_sorted=False)
    assert packed.data.device.type == "npu" and packed.batch_sizes.device.type == "cpu"
    unpacked, lengths = pad_packed_sequence(packed, batch_first=True)
    assert unpacked.squeeze(-1).tolist() == [[0, 1, 2], [3, 4, 0]] and lengths.tolist() == [3, 2]


def check_fallback_to_the_cpu_still_works() -> None:
    x = torch.tensor([0.5, 1.5]).npu()
    assert torch.allclose(torch.lgamma(x).cpu(), torch.lgamma(x.cpu()))


if __name__ == "__main__":
    checks.run(globals())
