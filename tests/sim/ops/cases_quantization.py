"""Quantization to int8 and int4, and products of quantized matrices, element by element."""

from __future__ import annotations

import struct

import torch
import torch_npu
from harness import close, raises

npu = torch.ops.npu


def packed(values):
    """int32 numbers that hold eight int4 each, the first in the lowest bits."""
    words = []
    for row in values.reshape(-1, 8).tolist():
        word = sum((int(v) & 0xF) << 4 * i for i, v in enumerate(row))
        words.append(struct.unpack("<i", struct.pack("<I", word))[0])
    return torch.tensor(words, dtype=torch.int32).view(*values.shape[:-1], -1)


def int4(*shape):
    return torch.randint(-8, 8, shape, dtype=torch.int32)


def int8(*shape):
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def exact(found, expected):
    assert torch.equal(found.cpu(), expected), (found.cpu(), expected)


def case_quantize():
    x, scale, point = torch.randn(3, 4, 8) * 3, torch.rand(4) * 0.1 + 0.01, torch.tensor([3, 5, 0, 60])
    for dtype in (torch.qint8, torch.quint8, torch.qint32):
        expected = torch.quantize_per_channel(x, scale, point, 1, dtype).int_repr()
        exact(torch_npu.npu_quantize(x.npu(), scale.npu(), point.int().npu(), dtype, 1), expected)
    factor, offset = torch.rand(8) * 20, torch.randn(8)
    wanted = torch.empty(x.shape, dtype=torch.int8)
    for i, j, k in torch.cartesian_prod(torch.arange(3), torch.arange(4), torch.arange(8)).tolist():
        wanted[i, j, k] = max(-128, min(127, round(float(x[i, j, k] * factor[k] + offset[k]))))
    found = torch_npu.npu_quantize(x.npu(), factor.npu(), offset.npu(), torch.qint8, -1, False)
    exact(found, wanted)
    small = torch_npu.npu_quantize(x.npu(), torch.ones(1).npu(), None, torch.quint4x2, -1, False)
    exact(small, packed(x.round().clamp(-8, 7)))
    by_rows = torch_npu.npu_quantize(x.npu(), factor[:4].npu(), offset[:4].npu(), torch.qint8, -2, False)
    exact(by_rows, (x * factor[:4, None] + offset[:4, None]).round().clamp(-128, 127).to(torch.int8))
    call = lambda: npu.npu_quantize(x.npu(), scale.npu(), None, 290, 1)  # noqa: E731
    raises(RuntimeError, "290", call)


def case_dynamic_quantization():
    x, smooth, groups = torch.randn(2, 5, 8).half(), torch.rand(3, 8).half(), torch.tensor([4, 4, 10])
    rows = x.float().view(10, 8)
    for factors, index in ((None, None), (smooth[0], None), (smooth, groups)):
        scaled = rows.clone()
        for row in range(10):
            if index is not None:
                scaled[row] *= factors[0 if row < 4 else 2].float()
            elif factors is not None:
                scaled[row] *= factors.float()
        named = {
            "smooth_scales": None if factors is None else factors.npu(),
            "group_index": None if index is None else index.int().npu(),
        }
        for dtype, most in ((None, 127), (torch.quint4x2, 7)):
            scale = scaled.abs().amax(1) / most
            whole = (scaled / scale[:, None]).round()
            y, found = torch_npu.npu_dynamic_quant(x.npu(), dst_type=dtype, **named)
            close(found, scale.view(2, 5))
            exact(y, whole.to(torch.int8).view(2, 5, 8) if dtype is None else packed(whole).view(2, 5, 1))
            spread = (scaled.amax(1) - scaled.amin(1)) / (2 * most + 1)
            shift = most - scaled.amax(1) / spread
            y, found, offset = torch_npu.npu_dynamic_quant_asymmetric(x.npu(), dst_type=dtype, **named)
            close(found, spread.view(2, 5)), close(offset, shift.view(2, 5), 1e-4)
            whole = (scaled / spread[:, None] + shift[:, None]).round()
            exact(y, whole.to(torch.int8).view(2, 5, 8) if dtype is None else packed(whole).view(2, 5, 1))
    y, scale = torch_npu.npu_dynamic_quant(torch.zeros(1, 8).half().npu())
    assert not y.any() and not scale.any()
    mode = lambda: npu.npu_dynamic_quant(x.npu(), quant_mode="pertensor")  # noqa: E731
    raises(NotImplementedError, "pertensor", mode)


def case_back_to_floating_point():
    x, scale, offset = int8(3, 8), torch.rand(8), torch.randn(8)
    close(torch_npu.npu_anti_quant(x.npu(), scale.npu()), x * scale, 1e-3)
    found = torch_npu.npu_anti_quant(x.npu(), scale.npu(), offset=offset.npu(), dst_dtype=torch.bfloat16)
    assert found.dtype == torch.bfloat16
    close(found, (x + offset) * scale, 1e-2)
    small = int4(3, 8)
    found = torch_npu.npu_anti_quant(packed(small).npu(), scale.npu(), src_dtype=torch.quint4x2)
    close(found, small * scale, 1e-3)
    sums, bias = torch.randint(-9999, 9999, (3, 8), dtype=torch.int32), torch.randint(-99, 99, (8,), dtype=torch.int32)
    rows = torch.rand(3)
    close(npu.npu_dequant_bias(sums.npu(), (scale / 99).npu(), rows.npu(), bias.npu()),
          (sums + bias) * scale / 99 * rows[:, None], 1e-3)  # fmt: skip
    close(npu.npu_dequant_bias(sums.npu(), (scale / 99).npu(), None, offset.npu()), sums * scale / 99 + offset, 1e-3)


def case_quantization_by_groups_and_into_a_cache():
    x, scale, groups = torch.randn(6, 8), torch.rand(3, 8) * 20, torch.tensor([1, 1, 6], dtype=torch.int32)
    expected = torch.stack([(x[i] * scale[0 if i < 1 else 2] + 0.25).round() for i in range(6)]).clamp(-128, 127)
    found = torch_npu.npu_group_quant(x.npu(), scale.npu(), groups.npu(), offset=torch.tensor([0.25]).npu())
    exact(found, expected.to(torch.int8))
    cache, updates, scales = int8(2, 6, 32), torch.randn(2, 1, 32).bfloat16(), (torch.rand(1, 1, 32) + 0.1).bfloat16()
    expected = cache.clone()
    for row, position in enumerate((4, 1)):
        expected[row, position] = (updates[row, 0].float() / scales[0, 0].float()).round().to(torch.int8)
    on_npu, where = cache.npu(), torch.tensor([4, 1]).npu()
    exact(torch_npu.npu_quant_scatter(on_npu, where, updates.npu(), scales.npu(), None, axis=-2), expected)
    exact(on_npu, cache)
    torch_npu.npu_quant_scatter_(on_npu, where, updates.npu(), scales.npu(), None, axis=-2)
    exact(on_npu, expected)


def case_int4_and_scales_in_whole_numbers():
    weight = int4(5, 16)
    exact(torch_npu.npu_convert_weight_to_int4pack(weight.npu()), packed(weight))
    scale, offset = torch.tensor([2.7182817, -0.001]), torch.tensor([-3.4, 300.0])
    for number, shift, bits in zip(scale.tolist(), (-3, 255), torch_npu.npu_trans_quant_param(scale.npu()).tolist()):  # noqa: B905
        word = struct.unpack("<I", struct.pack("<f", number))[0] & 0xFFFFE000
        assert bits == word | 1 << 46
        both = torch_npu.npu_trans_quant_param(torch.tensor([number]).npu(), torch.tensor([float(shift)]).npu())
        assert both.tolist() == [word | 1 << 46 | (shift & 0x1FF) << 37]
    assert torch_npu.npu_trans_quant_param(scale[:1].npu(), offset.npu()).shape == (2,)


def product(a, b):
    return torch.tensor([[sum(int(x) * int(y) for x, y in zip(row, column)) for column in b.T] for row in a])  # noqa: B905


def case_quantized_products():
    a, b, scale, rows = int8(4, 16), int8(16, 8), torch.rand(8) * 1e-3, torch.rand(4)
    sums, bias, shift = product(a, b), torch.randint(-999, 999, (8,), dtype=torch.int32), torch.randn(8)
    on_npu = a.npu(), b.npu()
    found = torch_npu.npu_quant_matmul(*on_npu, scale.npu(), offset=shift.npu(), bias=bias.npu())
    expected = ((sums + bias).double() * scale.double() + shift.double()).round().clamp(-128, 127)
    exact(found, expected.to(torch.int8))
    found = torch_npu.npu_quant_matmul(
        *on_npu, scale.npu(), pertoken_scale=rows.npu(), bias=shift.npu(), output_dtype=torch.bfloat16
    )
    close(found, (sums * scale * rows[:, None] + shift).bfloat16(), 1e-2)
    assert found.dtype == torch.bfloat16
    whole = torch_npu.npu_trans_quant_param(scale.npu(), torch.full((8,), 3.0).npu())
    cut = torch.tensor([struct.unpack("<f", struct.pack("<I", int(w) & 0xFFFFFFFF))[0] for w in whole.tolist()])
    close(torch_npu.npu_quant_matmul(*on_npu, whole, output_dtype=torch.float16), (sums * cut).half(), 1e-3)
    exact(
        torch_npu.npu_quant_matmul(*on_npu, whole),
        (sums.double() * cut.double() + 3).round().clamp(-128, 127).to(torch.int8),
    )
    a, b = int4(4, 16), int4(16, 8)
    expected = (product(a, b) * scale * rows[:, None]).half()
    for right in (packed(b).npu(), packed(b.T.contiguous()).npu().T):
        found = torch_npu.npu_quant_matmul(
            packed(a).npu(), right, scale.npu(), pertoken_scale=rows.npu(), output_dtype=torch.float16
        )
        close(found, expected, 1e-3)
    call = lambda: npu.npu_quant_matmul(*on_npu, scale.npu(), output_dtype=3)  # noqa: E731
    raises(NotImplementedError, "int32", call)


def case_products_with_quantized_weights():
    x, weight, bias = torch.randn(3, 64).half(), int8(64, 8), torch.randn(8).half()
    for scale, offset in ((torch.rand(1), torch.randn(1)), (torch.rand(1, 8), torch.randn(1, 8))):
        scale, offset = (scale / 100).half(), offset.half()  # noqa: PLW2901
        expected = x.float() @ ((weight.half() + offset) * scale).float() + bias.float()
        found = torch_npu.npu_weight_quant_batchmatmul(
            x.npu(), weight.npu(), scale.npu(), offset.npu(), bias=bias.npu()
        )
        assert found.dtype == torch.float16
        close(found, expected, 2e-3)
    groups = (torch.rand(2, 8) / 10).half()
    values = weight.float().clone()
    values[:32] *= groups[0].float()
    values[32:] *= groups[1].float()
    found = torch_npu.npu_weight_quant_batchmatmul(x.npu(), weight.npu(), groups.npu(), antiquant_group_size=32)
    close(found, x.float() @ values, 5e-3)
    small, scale = int4(64, 8), (torch.rand(8) / 10).half()
    found = torch_npu.npu_weight_quant_batchmatmul(x.npu(), packed(small).npu(), scale.npu())
    expected = x.float() @ (small * scale.float())
    close(found, expected, 2e-3)
    found = torch_npu.npu_weight_quant_batchmatmul(
        x.npu(),
        packed(small).npu(),
        scale.npu(),
        quant_scale=torch.full((8,), 9.0).npu(),
        quant_offset=torch.ones(8).npu(),
    )
    assert found.dtype == torch.int8
    assert (found.cpu() - (expected * 9 + 1).round().clamp(-128, 127)).abs().max() <= 1


def case_products_per_group_of_float8():
    def float8(*shape):
        return torch.randn(*shape).to(torch.float8_e4m3fn)

    a, b, rows, columns = float8(64, 64), float8(3, 64, 32), torch.rand(64) + 0.5, torch.rand(3, 32) + 0.5
    ends, parts = torch.tensor([10, 10, 50], dtype=torch.int32), [10, 0, 40]
    exact = [
        (rows[start : start + size, None] * (a.float()[start : start + size] @ b[g].float())) * columns[g]
        for g, (start, size) in enumerate(zip([0, 10, 10], parts, strict=True))
    ]
    expected = torch.cat([*exact, torch.zeros(14, 32)])
    on_npu = [tensor.npu() for tensor in (a, b, rows, columns, ends)]
    found = torch._scaled_grouped_mm(*on_npu, None, None, torch.bfloat16)
    close(found, expected, 2e-2)
    a, b, rows, columns, ends = on_npu
    second = torch._scaled_grouped_mm_v2(a, b, [rows], [0], [], [columns], [0], [], ends, None, torch.bfloat16)
    assert torch.equal(found, second)
    by_block = [torch.full(*size).to(torch.float8_e8m0fnu).npu() for size in (((64, 1, 2), 2.0), ((3, 1, 32, 2), 0.5))]
    without = torch.ones(64).npu(), torch.ones(3, 32).npu()
    blocks, plain = (torch._scaled_grouped_mm(a, b, *scales, ends) for scales in (by_block, without))
    assert torch.equal(blocks, plain)
    raises(RuntimeError, "offsets required", lambda: torch._scaled_grouped_mm(a, b, rows, columns))
    raises(RuntimeError, "bias", lambda: torch._scaled_grouped_mm(a, b, rows, columns, ends, rows))
