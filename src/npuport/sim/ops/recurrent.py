"""LSTM and GRU.

torch_npu sends `aten::lstm` and `aten::gru` to `npu::_lstm_npu` / `npu::_gru_npu` when a layer is simple enough for
aclnn and to older operators otherwise (op_plugin/ops/opapi/LSTMKernelNpuOpApi.cpp). Here every call takes the first
way, and the kernel is PyTorch's own CPU function, so that the numbers are those of the CPU run, dropout between layers
included. The backward operators run it again with autograd, from the same generator state, which travels in the first
of the results that the device uses for its gates (the others are empty).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.randomness import device_generator, replaying
from npuport.sim.ops.registration import AUTOGRAD, FORWARD, kernel

_BOTH = (FORWARD, AUTOGRAD)


@kernel("aten::lstm.input", keys=_BOTH, lend=False)
def lstm_input(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """torch.nn.LSTM on padded sequences: (output, h, c)."""
    found = torch.ops.npu._lstm_npu(
        input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=batch_first
    )
    return tuple(found[:3])


@kernel("aten::lstm.data", keys=_BOTH, lend=False)
def lstm_data(
    data: Tensor,
    batch_sizes: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """torch.nn.LSTM on packed sequences; `batch_sizes` is a CPU tensor."""
    found = torch.ops.npu._lstm_npu(
        data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_sizes=batch_sizes
    )
    return tuple(found[:3])


@kernel("aten::gru.input", keys=_BOTH, lend=False)
def gru_input(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """torch.nn.GRU on padded sequences: (output, h). Packed sequences take PyTorch's decomposition into cells, as in
    torch_npu.
    """
    found = torch.ops.npu._gru_npu(
        input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=batch_first
    )
    return tuple(found[:2])


def _lstm(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    batch_first: bool | None,
    batch_sizes: Tensor | None,
    settings: tuple[bool, int, float, bool, bool],
) -> tuple[Tensor, ...]:
    if batch_sizes is not None:
        return tuple(torch.lstm(input, batch_sizes, list(hx), list(params), *settings))
    return tuple(torch.lstm(input, list(hx), list(params), *settings, bool(batch_first)))


def _gru(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    batch_first: bool | None,
    batch_sizes: Tensor | None,
    settings: tuple[bool, int, float, bool, bool],
) -> tuple[Tensor, ...]:
    if batch_sizes is not None:
        return tuple(torch.gru(input, batch_sizes, hx, list(params), *settings))
    return tuple(torch.gru(input, hx, list(params), *settings, bool(batch_first)))


def _forward(draws: bool, run: Callable[[], tuple[Tensor, ...]], like: Tensor, empties: int) -> tuple[Tensor, ...]:
    """`run()`, the generator state that it started from (empty if it draws nothing), and `empties` empty tensors."""
    with device_generator() if draws else contextlib.nullcontext(torch.empty(0, dtype=torch.uint8)) as state:
        return (*run(), state, *(like.new_empty(0) for _ in range(empties)))


def _replayed(state: Tensor, run: Callable[[], tuple[Tensor | None, ...]]) -> tuple[Tensor | None, ...]:
    """`run()` from a saved generator state; the generator is left as it was found."""
    if not state.numel():
        return run()
    with replaying(state):
        return run()


@kernel("npu::_lstm_npu", mixed=True)
def lstm_npu(
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    *,
    batch_first: bool | None = False,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """(output, h, c, generator state, and six empty tensors)."""
    settings = (has_biases, num_layers, dropout, train, bidirectional)
    draws = train and dropout > 0
    return _forward(draws, lambda: _lstm(input, hx, params, batch_first, batch_sizes, settings), input, empties=6)


@kernel("npu::_lstm_npu_backward", mixed=True)
def lstm_npu_backward(
    grad_y: Tensor | None,
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    i: Tensor,
    *gates_and_settings: Tensor | bool | int | float,
    batch_first: bool | None = False,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor | None, list[Tensor | None], list[Tensor | None]]:
    """(dinput, [dh, dc], dparams)."""
    settings = gates_and_settings[-5:]

    def run(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        return _lstm(x, rest[: len(hx)], rest[len(hx) :], batch_first, batch_sizes, settings)  # type: ignore[arg-type]

    found = _replayed(i, lambda: vector_jacobian(run, (input, *hx, *params), (grad_y, grad_hy, grad_cy)))
    return found[0], list(found[1 : 1 + len(hx)]), list(found[1 + len(hx) :])


@kernel("npu::_gru_npu", mixed=True)
def gru_npu(
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    *,
    batch_first: bool | None = False,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """(output, h, generator state, and four empty tensors)."""
    settings = (has_biases, num_layers, dropout, train, bidirectional)
    draws = train and dropout > 0
    return _forward(draws, lambda: _gru(input, hx, params, batch_first, batch_sizes, settings), input, empties=4)


@kernel("npu::_gru_npu_backward", mixed=True)
def gru_npu_backward(
    grad_y: Tensor | None,
    grad_h: Tensor | None,
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    r: Tensor,
    *gates_and_settings: Tensor | bool | int | float,
    batch_first: bool | None = False,
    batch_sizes: Tensor | None = None,
) -> tuple[Tensor | None, Tensor | None, list[Tensor | None]]:
    """(dinput, dhx, dparams)."""
    settings = gates_and_settings[-5:]

    def run(x: Tensor, h: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        return _gru(x, h, weights, batch_first, batch_sizes, settings)  # type: ignore[arg-type]

    found = _replayed(r, lambda: vector_jacobian(run, (input, hx, *params), (grad_y, grad_h)))
    return found[0], found[1], list(found[2:])


def _lstm_gates(
    input_gates: Tensor, hidden_gates: Tensor, input_bias: Tensor | None, hidden_bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Input, forget, cell and output gate after their activations (the order of torch.nn.LSTMCell)."""
    gates = input_gates + hidden_gates
    for bias in (input_bias, hidden_bias):
        gates = gates if bias is None else gates + bias
    i, f, g, o = gates.chunk(4, dim=1)
    return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()


@kernel("aten::_thnn_fused_lstm_cell")
def thnn_fused_lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """(h, c, activated gates [batch, 4·hidden]) of one LSTM step from its two products."""
    i, f, g, o = _lstm_gates(input_gates, hidden_gates, input_bias, hidden_bias)
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat((i, f, g, o), dim=1)


@kernel("aten::_thnn_fused_lstm_cell_backward_impl")
def thnn_fused_lstm_cell_backward(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(dgates before activation, dcx, dbias)."""
    i, f, g, o = workspace.chunk(4, dim=1)
    hidden = torch.zeros_like(cy) if grad_hy is None else grad_hy
    cell = torch.zeros_like(cy) if grad_cy is None else grad_cy
    tanh = cy.tanh()
    d_cell = hidden * o * (1 - tanh.square()) + cell
    d_gates = torch.cat(
        (
            d_cell * g * i * (1 - i),
            d_cell * cx * f * (1 - f),
            d_cell * i * (1 - g.square()),
            hidden * tanh * o * (1 - o),
        ),
        dim=1,
    )
    return d_gates, d_cell * f, d_gates.sum(dim=0) if has_bias else None


@kernel("aten::lstm_cell", keys=_BOTH, lend=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """torch.nn.LSTMCell as torch_npu composes it (LstmCellKernelNpuOpApi.cpp)."""
    hidden, cell = hx
    gates = torch.matmul(input, w_ih.t()), torch.matmul(hidden, w_hh.t())
    h, c, _ = torch.ops.aten._thnn_fused_lstm_cell(*gates, cell, b_ih, b_hh)
    return h, c


@kernel("aten::_thnn_fused_gru_cell", keys=_BOTH, lend=False)
def thnn_fused_gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One GRU step composed of plain operators, as in torch_npu (_thnnFusedFruCellNpuOpApi.cpp): (h, empty
    workspace).
    """
    inputs = input_gates if input_bias is None else input_gates + input_bias
    hiddens = hidden_gates if hidden_bias is None else hidden_gates + hidden_bias
    input_reset, input_update, input_new = inputs.chunk(3, dim=1)
    hidden_reset, hidden_update, hidden_new = hiddens.chunk(3, dim=1)
    reset = (hidden_reset + input_reset).sigmoid()
    update = (hidden_update + input_update).sigmoid()
    new = (input_new + hidden_new * reset).tanh()
    return (hx - new) * update + new, input_gates.new_empty(0)
