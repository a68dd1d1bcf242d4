"""Autocast and the gradient scalers, with an overflow in the second step."""

from __future__ import annotations

from typing import Any

import checks
import torch
import torch_npu


def check_autocast_dtypes() -> None:
    layer, x = torch.nn.Linear(4, 4).npu(), torch.randn(2, 4).npu()
    with torch.autocast("npu"):
        hidden = layer(x)
        assert hidden.dtype == torch.float16 and torch.softmax(hidden, -1).dtype == torch.float32
    with torch.autocast("npu", dtype=torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    with torch.npu.amp.autocast(enabled=False):
        assert layer(x).dtype == torch.float32


def steps(scaler: Any) -> list[tuple[bool, float]]:
    """For three steps, the second of which overflows: whether the weights stayed, and the scale afterwards."""
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(4, 4).npu(), torch.randn(8, 4).npu()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    seen = []
    for step in range(3):
        optimizer.zero_grad()
        with torch.autocast("npu", dtype=torch.float16):
            loss = layer(x).pow(2).mean() * (float("inf") if step == 1 else 1)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        before = layer.weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        seen.append((torch.equal(before, layer.weight), scaler.get_scale()))
    return seen


def check_torch_amp_grad_scaler() -> None:
    assert steps(torch.amp.GradScaler("npu")) == [(False, 65536.0), (True, 32768.0), (False, 32768.0)]


def check_torch_npu_grad_scaler() -> None:
    assert steps(torch_npu.npu.amp.GradScaler()) == [(False, 65536.0), (True, 32768.0), (False, 32768.0)]


def check_scaler_that_is_off() -> None:
    outcome = steps(torch.amp.GradScaler("npu", enabled=False))
    assert outcome[0] == (False, 1.0)


def check_losses_are_close_to_float32() -> None:
    losses = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).npu()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        x, y = torch.randn(32, 8).npu(), torch.randn(32, 1).npu()
        for _ in range(5):
            optimizer.zero_grad()
            with torch.autocast("npu", dtype=dtype, enabled=dtype != torch.float32):
                loss = torch.nn.functional.mse_loss(net(x).float(), y)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    assert losses[0] != losses[1] != losses[2]
    assert max(losses) - min(losses) < 0.02 * losses[0]


def check_overflow_is_seen() -> None:
    assert torch_npu.npu.utils.npu_check_overflow(torch.tensor([float("inf")]).npu())
    assert not torch_npu.npu.utils.npu_check_overflow(torch.ones(3).npu())


if __name__ == "__main__":
    checks.run(globals())
