"""Throughput, memory, bandwidth and FLOPs of profiles made for it; FLOPs against PyTorch's own counter."""

from __future__ import annotations

from typing import Any

import pytest
from made_profiles import ENGINE, Row, collective, event, kernel, made, table
from real_profiles import ALEXNET, PROFILES, needs_profiles

from npuport.cli.perf_metrics import metrics_line
from npuport.facts import all_peaks, chip
from npuport.performance.analysis import analyse
from npuport.performance.findings.base import Context
from npuport.performance.flops import FORMULAS, convolution, count, shapes_in
from npuport.performance.metrics import Asked, Metrics, metrics_of
from npuport.performance.tables import ALLOCATIONS, TRANSFERS

MHZ = {"Ascend910B": 900, "Ascend910B2": 1800, "Ascend910B4": 1500}  # cube_freq in CANN's platform_config


def measured(asked: Asked | None = None, **profile: Any) -> Metrics:
    found = metrics_of(Context(made(**profile)), asked or Asked())
    assert found is not None
    return found


def matmul(start: int, shapes: str, name: str = "aten::mm", **more: Any) -> Row:
    return event(name, start, start + 10, shapes=shapes, **more)


@pytest.mark.parametrize(
    ("name", "shapes", "operator"),
    [
        ("aten::mm", "3,4;4,5", "mm"),
        ("aten::addmm", "[[5], [3, 4], [4, 5], [], []]", "addmm"),
        ("aten::bmm", "2,3,4;2,4,5", "bmm"),
        ("aten::baddbmm", "[[2, 3, 5], [2, 3, 4], [2, 4, 5], [], []]", "baddbmm"),
        (
            "aten::_scaled_dot_product_flash_attention",
            "2,3,8,4;2,3,8,4;2,3,8,4;;",
            "_scaled_dot_product_flash_attention",
        ),
        (
            "aten::_scaled_dot_product_flash_attention_backward",
            "2,3,8,4;2,3,8,4;2,3,8,4;2,3,8,4;2,3,8,4;2,3,8",
            "_scaled_dot_product_flash_attention_backward",
        ),
    ],
)
def test_formulas_agree_with_pytorchs_counter(
    name: str, shapes: str, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    import torch
    from torch.utils.flop_counter import flop_registry

    inputs = [one for one in shapes_in(shapes) if one]
    theirs = flop_registry[getattr(torch.ops.aten, operator)]
    tensors = [torch.empty(shape, device="meta") for shape in inputs]
    assert FORMULAS[name](shapes_in(shapes)) == theirs(*tensors, out_val=None)


def test_convolutions_agree_with_pytorchs_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    from torch.utils.flop_counter import conv_flop_count

    plain = ((2, 3, 8, 8), (5, 3, 3, 3), (2, 5, 6, 6))
    assert convolution(plain[0], plain[2], plain[1]) == conv_flop_count(*plain)
    transposed = ((2, 5, 6, 6), (5, 3, 3, 3), (2, 3, 8, 8))
    assert convolution(transposed[0], transposed[2], transposed[1]) == conv_flop_count(*transposed, transposed=True)


def test_a_convolution_and_its_gradients() -> None:
    forward = matmul(0, "2,3,8,8;5,3,3,3;;", "aten::convolution", sequence=7)
    back = [
        event("ConvolutionBackward0", 100, 200, thread=ENGINE, sequence=7, forward_thread=1, shapes="2,5,6,6"),
        event("aten::convolution_backward", 110, 190, thread=ENGINE, shapes="2,5,6,6;2,3,8,8;5,3,3,3"),
    ]
    once = 2 * 2 * 5 * 36 * 27
    both = count(Context(made(events=[forward, *back])).events)
    assert both is not None and both.flops == 3 * once
    filter_only = [*back, event("Conv2DBackpropInput", 500, 510, thread=ENGINE)]  # of another convolution
    weight = count(Context(made(events=[forward, *filter_only])).events)
    assert weight is not None and weight.flops == 2 * once
    alone = count(Context(made(events=[forward])).events)
    assert alone is not None and alone.flops == 0


def test_operators_inside_of_counted_ones_count_once() -> None:
    outer = event("aten::linear", 0, 100, shapes="3,4;5,4;5")
    counted = count(Context(made(events=[outer, matmul(10, "5;3,4;4,5", "aten::addmm")])).events)
    assert counted is not None and (counted.flops, counted.operators) == (120, 1)


def test_attention_of_unknown_layout_is_said() -> None:
    events = [matmul(0, "3,4;4,5"), matmul(20, "2,8,16;2,8,16;2,8,16", "npu::npu_fusion_attention")]
    found = measured(events=events, kernels=[kernel(0, 10)])
    assert (found.flops, found.uncounted_attention) == (120, 1)
    assert "attention not counted in it, 1 x" in metrics_line(found)


def test_without_shapes_nothing_is_said_of_flops() -> None:
    found = measured(events=[event("aten::mm", 0, 10)], kernels=[kernel(0, 10)])
    assert found.flops is None
    assert "FLOP" not in metrics_line(found)


def test_efficiency_is_that_of_the_whole_step() -> None:
    rows = {
        "events": [matmul(0, "1000,1000;1000,1000")],
        "kernels": [kernel(0, 10, type="MatMulV2", dtypes="DT_BF16;DT_BF16")],
        "steps": [(0, 0, 100_000)],
    }
    found = measured(**rows, chip="Ascend910B2")
    assert found.efficiency == pytest.approx(2e9 / 1e-4 / 353.89e12)
    assert "MFU 5.7% of 353.9 TFLOP/s (Ascend910B2, bfloat16)" in metrics_line(found)
    assert measured(**rows, chip="Ascend910B1").efficiency is None
    assert "no peak is known of Ascend910B1" in metrics_line(measured(**rows, chip="Ascend910B1"))
    assert "--chip" in metrics_line(measured(**rows))
    rows["kernels"].append(kernel(10, 20, type="Conv2D", dtypes="FLOAT;FLOAT"))
    assert measured(**rows, chip="Ascend910B2").dtype == ""


def test_peaks_of_npus_are_cores_times_frequency() -> None:
    for one in all_peaks():
        known = chip(one.chip)
        if known and known.ai_cores and one.chip in MHZ:
            assert one.flops == pytest.approx(known.ai_cores * 2 * 16**3 * MHZ[one.chip] * 1e6, rel=1e-4)
        assert known is None or known.bf16 or one.dtype != "bfloat16"
    assert {one.chip for one in all_peaks()} >= set(MHZ)


def test_throughput_and_spread() -> None:
    found = measured(Asked(samples_per_step=32, tokens_per_step=4096), steps=[(0, 0, 10**9), (1, 10**9, 4 * 10**9)])
    assert (found.steps_per_second, found.samples_per_second, found.tokens_per_second) == (0.5, 16, 2048)
    assert (found.shortest_ns, found.longest_ns, found.deviation_ns) == (10**9, 3 * 10**9, 10**9)
    assert metrics_line(found).startswith(
        "0.5 steps/s · 16 samples/s · 2,048 tokens/s · steps of 1,000.0 to 3,000.0 ms"
    )


def test_what_is_not_divided_into_steps_has_no_throughput() -> None:
    unmarked: Any = [(None, 0, 10**9)]
    found = measured(Asked(samples_per_step=32), steps=unmarked)
    assert (found.steps_per_second, found.samples_per_second) == (None, None)
    assert metrics_line(found) == ""


def test_communication_that_computing_does_not_hide() -> None:
    found = measured(communication=[collective(300, 900)], kernels=[kernel(0, 400, 0)])
    assert (found.communication_share, found.hidden_share) == (0.5, 0.1)
    assert measured(kernels=[kernel(0, 400, 0)]).communication_share is None


def test_bandwidth_beside_the_nominal_one() -> None:
    rows = [
        {"transport": "HCCS", "bytes": 1000, "time_ns": 100},
        {"transport": "HCCS", "bytes": 1000, "time_ns": 100},
        {"transport": "SDMA", "bytes": 2000, "time_ns": 200},
        {"transport": "RDMA", "bytes": 500, "time_ns": 100},
    ]
    transfers = table(rows, TRANSFERS)
    found = measured(transfers=transfers, chip="Ascend910B2").bandwidths
    assert [(one.transport, one.rate, one.nominal) for one in found] == [("HCCS", 1e10, 28e9), ("RDMA", 5e9, 25e9)]
    assert [one.nominal for one in measured(transfers=transfers).bandwidths] == [None, None]


def test_memory_at_its_peak_by_place() -> None:
    stack = "/home/me/train.py(12): step;/home/me/train.py(40): main"
    memory = [
        {"time_ns": time, "component": "PTA", "allocated_bytes": size, "reserved_bytes": 900, "device": 0}
        for time, size in ((100, 300), (200, 700), (300, 500))
    ]
    pieces = [
        {"name": "aten::mm", "bytes": 300, "allocated_ns": 60, "released_ns": None, "device": 0},
        {"name": "aten::mm", "bytes": 400, "allocated_ns": 150, "released_ns": 250, "device": 0},
        {"name": "aten::add", "bytes": 999, "allocated_ns": 250, "released_ns": 400, "device": 0},
    ]
    events = [
        event("nn.Module: Net_0", 0, 190, "python"),
        event("nn.Module: Linear_1", 50, 160, "python"),
        event("aten::mm", 55, 70, stack=stack),
        event("aten::mm", 145, 155, stack=stack),
    ]
    found = measured(events=events, memory=memory, allocations=table(pieces, ALLOCATIONS))
    assert found.memory is not None
    assert (found.memory.time_ns, found.memory.allocated, found.memory.unused) == (200, 700, 200)
    (held,) = found.held
    assert (held.bytes, held.pieces, held.module) == (700, 2, "Net_0/Linear_1")
    assert held.line == "/home/me/train.py:12"


@needs_profiles
def test_real_networks_come_to_their_known_flops() -> None:
    (alexnet,) = analyse([ALEXNET / "text_level1_rank0_ascend_pt"])
    (resnet,) = analyse([PROFILES / "gpu" / "resnet50_v100_2021.pt.trace.json.gz"])
    assert alexnet.metrics is not None and resnet.metrics is not None
    # Products and sums of a forward: torchvision's 0.7142 and 4.0892 billion; three passes less the images' gradient.
    assert alexnet.metrics.flops == pytest.approx(32 * 2 * (3 * 0.71419e9 - 0.07028e9), rel=1e-3)
    assert resnet.metrics.flops == pytest.approx(32 * 2 * (3 * 4.0892e9 - 0.11801e9), rel=1e-3)
    assert alexnet.metrics.memory is not None and alexnet.metrics.memory.allocated == 1_245_688_832
    assert alexnet.metrics.held[1].module == "AlexNet_0/Sequential_1/Linear_0"
    assert alexnet.metrics.held[1].bytes == pytest.approx(9216 * 4096 * 4, rel=1e-3)
    (hccs,) = alexnet.metrics.bandwidths
    assert hccs.rate == pytest.approx(427.596096e6 / 27.315706e-3)
