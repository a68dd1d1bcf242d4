"""Random numbers: as on the CPU after torch.manual_seed, and reproducible in every way torch_npu offers."""

from __future__ import annotations

import checks
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

NPU = "npu"


def check_same_numbers_as_the_cpu() -> None:
    draws = []
    for device in ("cpu", NPU):
        torch.manual_seed(5)
        draws.append(
            [
                torch.randn(20, device=device),
                torch.rand(3, device=device),
                torch.randn(4),  # the host draws in between
                functional.dropout(torch.ones(64, device=device), 0.3),
                torch.randperm(30, device=device),
                torch.randint(0, 9, (7,), device=device),
                torch.bernoulli(torch.full((9,), 0.4, device=device)),
                torch.multinomial(torch.ones(9, device=device), 4),
                torch.empty(5, device=device).exponential_(),
                torch.normal(torch.zeros(5, device=device), 2.0),
            ]
        )
    for ours, theirs in zip(draws[1], draws[0], strict=True):
        assert torch.equal(ours.cpu(), theirs)


def check_seeds_of_all_64_bits() -> None:
    torch.manual_seed(2**63 + 5)
    wanted = torch.randn(8)
    torch.manual_seed(2**63 + 5)
    assert torch.equal(torch.randn(8, device="npu").cpu(), wanted)


def check_both_devices_share_one_sequence() -> None:
    torch.manual_seed(5)
    expected = [torch.randn(3), torch.randn(3)]
    torch.manual_seed(5)
    assert torch.equal(torch.randn(3, device="npu:1").cpu(), expected[0])
    assert torch.equal(torch.randn(3, device="npu:0").cpu(), expected[1])


def check_seeding_only_the_device() -> None:
    for seed_device in (torch.npu.manual_seed, torch.npu.manual_seed_all):
        torch.manual_seed(0)
        host = torch.randn(3)
        torch.manual_seed(0)
        seed_device(9)
        first = torch.randn(20, device=NPU)
        dropped = torch.bernoulli(torch.full((50,), 0.5, device=NPU))
        thinned = functional.dropout(torch.ones(50, device=NPU))
        seed_device(9)
        assert torch.equal(first, torch.randn(20, device=NPU))
        assert torch.equal(dropped, torch.bernoulli(torch.full((50,), 0.5, device=NPU)))
        assert torch.equal(thinned, functional.dropout(torch.ones(50, device=NPU)))
        assert torch.equal(first.cpu(), torch.randn(20, generator=torch.Generator().manual_seed(9)))
        assert torch.equal(torch.randn(3), host)  # the host's sequence goes on undisturbed


def check_seeding_the_device_with_the_same_seed_is_no_new_start() -> None:
    torch.manual_seed(5)
    torch.randn(10)
    expected = torch.randn(10)
    torch.manual_seed(5)
    torch.npu.manual_seed_all(5)
    torch.randn(10)
    assert torch.equal(torch.randn(10, device=NPU).cpu(), expected)


def check_explicit_generator_equals_a_cpu_generator() -> None:
    ours, theirs = torch.Generator(device=NPU).manual_seed(3), torch.Generator().manual_seed(3)
    for _ in range(3):
        assert torch.equal(torch.randn(7, 3, device=NPU, generator=ours).cpu(), torch.randn(7, 3, generator=theirs))
    assert torch.equal(torch.randperm(100, device=NPU, generator=ours).cpu(), torch.randperm(100, generator=theirs))
    assert torch.equal(
        torch.empty(5, device=NPU).uniform_(generator=ours).cpu(), torch.empty(5).uniform_(generator=theirs)
    )
    assert ours.initial_seed() == 3


def check_explicit_generator_can_be_saved_and_restarted() -> None:
    generator = torch.Generator(device=NPU).manual_seed(3)
    torch.rand(1000, device=NPU, generator=generator)
    state = generator.get_state()
    expected = torch.rand(100, device=NPU, generator=generator)
    generator.set_state(state)
    assert torch.equal(expected, torch.rand(100, device=NPU, generator=generator))
    another = torch.Generator(device=NPU)
    another.set_state(state)
    assert torch.equal(expected, torch.rand(100, device=NPU, generator=another))
    start = torch.rand(5, device=NPU, generator=generator.manual_seed(3))
    assert torch.equal(start.cpu(), torch.rand(5, generator=torch.Generator().manual_seed(3)))


def check_device_state_round_trip() -> None:
    torch.manual_seed(1)
    torch.randn(5, device=NPU)
    state = torch.npu.get_rng_state()
    expected = torch.randn(5, device=NPU)
    torch.npu.set_rng_state(state)
    assert torch.equal(expected, torch.randn(5, device=NPU))
    states = torch.npu.get_rng_state_all()
    assert len(states) == 2
    expected = torch.randn(5, device="npu:1")
    torch.npu.set_rng_state_all(states)
    assert torch.equal(expected, torch.randn(5, device="npu:1"))


def check_fork_rng() -> None:
    torch.manual_seed(1)
    expected = torch.randn(5)
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0], device_type="npu"):
        torch.randn(100, device=NPU)
    assert torch.equal(torch.randn(5, device=NPU).cpu(), expected)


def check_recomputation_draws_the_same_dropout() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.Dropout(0.5)).npu()
    x = torch.randn(50, 10).npu().requires_grad_()
    gradients = []
    for forward in (
        net,
        lambda v: checkpoint(net, v, use_reentrant=False),
        lambda v: checkpoint(net, v, use_reentrant=True),
    ):
        torch.manual_seed(2)
        gradients.append(torch.autograd.grad(forward(x).sum(), x)[0] if forward is net else None)
        if gradients[-1] is None:
            x.grad = None
            forward(x).sum().backward()
            gradients[-1] = x.grad.clone()
    assert torch.equal(gradients[0], gradients[1]) and torch.equal(gradients[0], gradients[2])


if __name__ == "__main__":
    checks.run(globals())
