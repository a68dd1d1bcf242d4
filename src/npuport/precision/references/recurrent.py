"""LSTM and GRU (the equations in the documents of torch.nn.LSTM and torch.nn.GRU) as layers, and the LSTM cell.

What the device keeps of the gates for its backward pass is told in no document. The backward formulas compute from the
inputs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from npuport.precision.references.formulas import UNTOLD, formula, refuse

_Cell = Callable[[Tensor, list[Tensor], Sequence[Tensor]], list[Tensor]]
_Settings = tuple[bool, int, float, bool, bool]
"""has_biases, num_layers, dropout, train, bidirectional."""


def _products(x: Tensor, h: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """What the input and the hidden state give, with their biases."""
    found = x @ weights[0].transpose(0, 1), h @ weights[1].transpose(0, 1)
    return (found[0] + weights[2], found[1] + weights[3]) if len(weights) == 4 else found


def _lstm_cell(x: Tensor, state: list[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    one, two = _products(x, state[0], weights)
    i, f, g, o = (one + two).chunk(4, -1)
    cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return [torch.sigmoid(o) * torch.tanh(cell), cell]


def _gru_cell(x: Tensor, state: list[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    one, two = (both.chunk(3, -1) for both in _products(x, state[0], weights))
    reset, update = torch.sigmoid(one[0] + two[0]), torch.sigmoid(one[1] + two[1])
    new = torch.tanh(one[2] + reset * two[2])
    return [(1 - update) * new + update * state[0]]


def _run(
    cell: _Cell, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor], settings: _Settings, batch_first: bool
) -> tuple[Tensor, ...]:
    """(output, last states) of all layers."""
    has_biases, layers, _, _, both_ways = settings
    ways, size = 2 if both_ways else 1, 4 if has_biases else 2
    rows = x.transpose(0, 1) if batch_first else x
    last: list[list[Tensor]] = []
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            at = layer * ways + way
            state = [one[at] for one in states]
            own = weights[at * size : (at + 1) * size]
            made = []
            for row in rows.flip(0) if way else rows:
                state = cell(row, state, own)
                made.append(state[0])
            outputs.append(torch.stack(made[::-1] if way else made))
            last.append(state)
        rows = torch.cat(outputs, -1)
    return rows.transpose(0, 1) if batch_first else rows, *(torch.stack(one) for one in zip(*last, strict=True))


def _check(settings: _Settings, batch_sizes: Tensor | None) -> None:
    refuse("batch_sizes", batch_sizes)
    if settings[3] and settings[1] > 1:
        refuse("dropout", settings[2], 0.0)


def _gradients(
    cell: _Cell,
    x: Tensor,
    states: Sequence[Tensor],
    weights: Sequence[Tensor],
    settings: _Settings,
    batch_first: bool,
    grads: Sequence[Tensor | None],
) -> list[Tensor]:
    """Of the input, the states and the weights."""
    with torch.enable_grad():
        leaves = [one.detach().requires_grad_() for one in (x, *states, *weights)]
        number = len(states)
        made = _run(cell, leaves[0], leaves[1 : 1 + number], leaves[1 + number :], settings, batch_first)
    pairs = [(one, grad) for one, grad in zip(made, grads, strict=True) if grad is not None]
    return list(torch.autograd.grad([one for one, _ in pairs], leaves, [grad for _, grad in pairs]))


@formula("npu._lstm_npu")
def lstm(
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
) -> tuple[object, ...]:
    settings = (has_biases, num_layers, dropout, train, bidirectional)
    _check(settings, batch_sizes)
    return *_run(_lstm_cell, input, hx, params, settings, bool(batch_first)), *[UNTOLD] * 7


@formula("npu._lstm_npu_backward", rounds_between=True)
def lstm_backward(
    grad_y: Tensor | None,
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    i: Tensor,
    j: Tensor,
    f: Tensor,
    o: Tensor,
    h: Tensor,
    c: Tensor,
    tanhc: Tensor,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    *,
    batch_first: bool | None = False,
    batch_sizes: Tensor | None = None,
) -> list[Tensor]:
    settings = (has_biases, num_layers, dropout, train, bidirectional)
    _check(settings, batch_sizes)
    return _gradients(_lstm_cell, input, hx, params, settings, bool(batch_first), (grad_y, grad_hy, grad_cy))


@formula("npu._gru_npu")
def gru(
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
) -> tuple[object, ...]:
    settings = (has_biases, num_layers, dropout, train, bidirectional)
    _check(settings, batch_sizes)
    return *_run(_gru_cell, input, [hx], params, settings, bool(batch_first)), *[UNTOLD] * 5


@formula("npu._gru_npu_backward", rounds_between=True)
def gru_backward(
    grad_y: Tensor | None,
    grad_h: Tensor | None,
    input: Tensor,
    hx: Tensor,
    params: Sequence[Tensor],
    r: Tensor,
    z: Tensor,
    n: Tensor,
    h_n: Tensor,
    h: Tensor,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    *,
    batch_first: bool | None = False,
    batch_sizes: Tensor | None = None,
) -> list[Tensor]:
    settings = (has_biases, num_layers, dropout, train, bidirectional)
    _check(settings, batch_sizes)
    return _gradients(_gru_cell, input, [hx], params, settings, bool(batch_first), (grad_y, grad_h))


@formula("aten._thnn_fused_lstm_cell")
def fused_lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """(hidden state, cell, the gates behind their activations)."""
    gates = input_gates + hidden_gates
    for bias in (input_bias, hidden_bias):
        gates = gates if bias is None else gates + bias
    i, f, g, o = gates.chunk(4, -1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
    cell = f * cx + i * g
    return o * torch.tanh(cell), cell, torch.cat((i, f, g, o), -1)


@formula("aten._thnn_fused_lstm_cell_backward_impl")
def fused_lstm_cell_backward(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The gradients of the gates before their activations, the cell and the bias; ``workspace`` has the gates."""
    i, f, g, o = workspace.chunk(4, -1)
    of_hidden = torch.zeros_like(cy) if grad_hy is None else grad_hy
    of_cell = of_hidden * o * (1 - torch.tanh(cy) ** 2)
    of_cell = of_cell if grad_cy is None else of_cell + grad_cy
    slopes = (i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o))
    pulls = (of_cell * g, of_cell * cx, of_cell * i, of_hidden * torch.tanh(cy))
    gates = torch.cat([pull * slope for pull, slope in zip(pulls, slopes, strict=True)], -1)
    return gates, of_cell * f, gates.sum(0) if has_bias else None
