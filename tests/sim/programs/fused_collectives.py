"""Two processes, one simulated device each: matrix products fused with collectives equal the unsharded product."""

from __future__ import annotations

import warnings

import checks
import torch
import torch.distributed as dist

warnings.simplefilter("ignore")
dist.init_process_group("hccl")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
torch.npu.set_device(RANK)
HCOM = dist.group.WORLD._get_backend(torch.device("npu")).get_hccl_comm_name(RANK)
torch.manual_seed(1)
ROWS, INNER, COLUMNS = 6, 8, 4
X, W, BIAS = torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS), torch.randn(COLUMNS)
npu = torch.ops.npu


def share(size: int) -> slice:
    return slice(RANK * size // WORLD, (RANK + 1) * size // WORLD)


def check_product_of_split_columns_is_summed() -> None:
    x, w = X[:, share(INNER)].npu(), W[share(INNER)].npu()
    close(npu.npu_mm_all_reduce_base(x, w, HCOM), X @ W)
    close(npu.npu_mm_all_reduce_base(x, w, HCOM, bias=BIAS.npu()), X @ W + WORLD * BIAS)


def check_rows_of_all_ranks_are_multiplied() -> None:
    output, gathered = npu.npu_all_gather_base_mm(X[share(ROWS)].npu(), W.npu(), HCOM, WORLD, bias=BIAS.npu())
    close(output, X @ W + BIAS)
    close(gathered, X)


def check_summed_rows_are_scattered() -> None:
    part = npu.npu_mm_reduce_scatter_base(X[:, share(INNER)].npu(), W[share(INNER)].npu(), HCOM, WORLD)
    close(part, (X @ W)[share(ROWS)])


def check_summed_rows_of_int8_are_scattered() -> None:
    x, w = (X[:, share(INNER)] * 9).to(torch.int8), (W[share(INNER)] * 9).to(torch.int8)
    scales = {"x1_scale": X[:, :1].abs(), "x2_scale": W[:1].abs()}
    whole = ((X * 9).to(torch.int8).double() @ (W * 9).to(torch.int8).double()) * X[:, :1].abs() * W[:1].abs()
    on_npu = {name: scale.npu() for name, scale in scales.items()}
    part = npu.npu_mm_reduce_scatter_base(
        x.npu(), w.npu(), HCOM, WORLD, comm_mode="aiv", output_dtype=torch.float16, **on_npu
    )
    assert part.dtype == torch.float16
    torch.testing.assert_close(part.cpu().double(), whole[share(ROWS)], rtol=2e-3, atol=1e-2)


def check_an_unknown_communicator_is_an_error() -> None:
    checks.raises(RuntimeError, "nobody", lambda: npu.npu_mm_all_reduce_base(X.npu(), W.npu(), "nobody"))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    checks.run(globals())
    dist.destroy_process_group()
