"""Devices, streams and events; what a real NPU refuses and a CPU kernel would not notice."""

from __future__ import annotations

import checks
import torch
import torch_npu

FIRST, SECOND = torch.device("npu:0"), torch.device("npu:1")


def check_count_and_name() -> None:
    assert torch.npu.is_available()
    assert torch.npu.device_count() == 2
    assert torch.npu.get_device_name(1) == "Ascend910B3"
    assert torch.npu.get_device_properties(0).total_memory == 64 << 30
    assert torch.npu.is_bf16_supported()


def check_forward_and_backward_on_the_second_device() -> None:
    values, weights = torch.randn(3, 4), torch.randn(4, 5)
    results = []
    for device in ("cpu", SECOND):
        x, w = (tensor.detach().to(device).requires_grad_() for tensor in (values, weights))
        loss = (x @ w).relu().sum()
        loss.backward()
        assert loss.device.type == torch.device(device).type and x.grad.device == x.device
        results.append([tensor.detach().cpu() for tensor in (loss, x.grad, w.grad)])
    torch.testing.assert_close(results[0], results[1])
    assert torch.npu.current_device() == 0


def check_copies_between_devices() -> None:
    source = torch.arange(12.0, device=FIRST).view(3, 4)
    copy = source.t().to(SECOND)
    assert copy.device == SECOND and torch.equal(copy.cpu(), source.cpu().t())
    target = torch.zeros(3, 4, device=SECOND)
    target.copy_(source)
    target[0] = torch.ones(4)
    assert torch.equal(target.cpu(), torch.cat([torch.ones(1, 4), source.cpu()[1:]]))


def check_current_device_decides_where_tensors_are_made() -> None:
    with torch.npu.device(1):
        assert torch.empty(2, device="npu").device == SECOND
        assert torch.randn(2, device="npu").device == SECOND
    assert torch.arange(2, device="npu").device == FIRST


def check_tensors_of_two_devices_are_refused() -> None:
    checks.raises(RuntimeError, "same device", lambda: torch.ones(3, device=FIRST) + torch.ones(3, device=SECOND))
    checks.raises(RuntimeError, "Expected NPU tensor, please", lambda: torch.ones(3, device=FIRST) + torch.ones(3))
    checks.raises(
        RuntimeError, "same device", lambda: torch.nn.functional.linear(torch.ones(3, device=FIRST), torch.ones(3, 3))
    )


def check_host_scalars_and_indices_are_taken() -> None:
    x = torch.arange(6.0, device=FIRST)
    assert (x * torch.tensor(2.0)).sum().item() == 30
    assert x[torch.tensor([1, 2])].tolist() == [1, 2]
    x[torch.tensor([True, True, False, False, False, False])] = 7
    assert x.tolist() == [7, 7, 2, 3, 4, 5]


def check_channels_last_is_refused_as_on_an_npu() -> None:
    image = torch.randn(1, 3, 4, 4, device=FIRST)
    checks.raises(RuntimeError, "contiguous_format", lambda: image.to(memory_format=torch.channels_last))


def check_missing_device() -> None:
    checks.raises(RuntimeError, "107001", lambda: torch.npu.set_device(5))


def check_an_operator_without_reference_fails_and_is_named() -> None:
    closing = torch.tensor([1], dtype=torch.int32, device=FIRST)
    checks.raises(
        Exception,
        "no reference for npu::obfuscation_finalize",
        lambda: torch.ops.npu.obfuscation_finalize(closing),
    )


def check_streams_and_events() -> None:
    stream = torch.npu.Stream()
    begin, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    begin.record()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        product = torch.ones(50, 50, device=FIRST) @ torch.ones(50, 50, device=FIRST)
        done = torch.npu.Event()
        done.record(stream)
    torch.npu.current_stream().wait_event(done)
    torch.npu.current_stream().wait_stream(stream)
    product.record_stream(torch.npu.current_stream())
    end.record()
    end.synchronize()
    torch.npu.synchronize()
    assert begin.query() and stream.query()
    assert begin.elapsed_time(end) > 0
    assert product[0, 0].item() == 50


def check_memory_formats_are_kept_and_change_no_value() -> None:
    torch_npu.npu.config.allow_internal_format = True
    fractal = torch_npu.Format.FRACTAL_NZ
    x = torch.randn(17, 33, device=FIRST, requires_grad=True)
    cast = torch_npu.npu_format_cast(x, fractal)
    assert torch_npu.get_npu_format(cast) == fractal and torch_npu.get_npu_format(x) == torch_npu.Format.ND
    assert cast.untyped_storage().nbytes() == 4 * 32 * 48  # blocks of 16 by 16
    (cast * 2).sum().backward()
    assert x.grad.unique().tolist() == [2]
    expected = x.detach().cpu()
    assert torch.equal(cast.detach().cpu(), expected) and torch.equal(cast.detach()[3:5].cpu(), expected[3:5])
    assert torch.equal(cast.detach().t().contiguous().cpu(), expected.t())
    assert torch.equal(torch_npu.npu_format_cast(cast, torch_npu.Format.ND).detach().cpu(), expected)
    whole = torch.arange(15 * 17, dtype=torch.int32).view(15, 17).npu()
    packed = torch_npu.npu_format_cast(whole, fractal, customize_dtype=torch.int32)
    assert torch_npu.get_npu_format(packed) == fractal and torch.equal(packed, whole)
    image = torch.randn(2, 3, 4, 5, device=FIRST).half()
    for kept in (torch_npu.Format.NC1HWC0, torch_npu.Format.FRACTAL_Z, torch_npu.Format.NHWC):
        changed = torch_npu.npu_format_cast(image, kept)
        assert torch_npu.get_npu_format(changed) == kept and torch.equal(changed, image)
    layer = torch.nn.Linear(20, 20).npu()
    layer.weight.data = torch_npu.npu_format_cast(layer.weight.data, fractal)
    before = layer.weight.detach().cpu()
    layer(torch.ones(2, 20, device=FIRST)).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    assert torch_npu.get_npu_format(layer.weight) == fractal
    torch.testing.assert_close(layer.weight.detach().cpu(), before - 2)


def check_references_refuse_tensors_of_two_devices() -> None:
    x, gamma = torch.ones(2, 4, device=FIRST), torch.ones(4, device=SECOND)
    checks.raises(RuntimeError, "npu:0 and npu:1", lambda: torch_npu.npu_rms_norm(x, gamma))


def check_counts_name_what_ran() -> None:
    counters = torch.ops.npuport_sim
    counters.reset_counts()
    for _ in range(3):
        torch.ones(2, device=FIRST).mul_(2)
    assert counters.counts()["aten::mul_.Tensor"] == 3


if __name__ == "__main__":
    checks.run(globals())
