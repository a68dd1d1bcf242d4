"""torch_npu's own recurrent operators: one layer, one direction, with the activated gates among the results.

Code that calls the device operators: op_plugin/ops/aclops/{Lstm,LstmCell,Gru}KernelNpu.cpp of Ascend/op-plugin; maths:
CANN's ops-nn rnn/dynamic_rnn/README.md (gates in the order input, forget, cell, output) and torch.nn.GRU (reset,
update, new; the reset gate acts after the hidden product). Weights are transposed to [in, gates·hidden]. The backward
operators run the forward pass again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


def _lstm(x: Tensor, weight: Tensor, bias: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """(h, c, i, j, f, o, tanh c), each [T, B, H], for x [T, B, in], weight [in + H, 4·H] and states [1, B, H] or
    [B, H]; j is the candidate of the cell.
    """
    hidden, cell = h.reshape(h.shape[-2:]), c.reshape(c.shape[-2:])
    steps = []
    for step in x:
        i, f, j, o = (torch.cat([step, hidden], dim=1) @ weight + bias).chunk(4, dim=1)
        i, f, j, o = i.sigmoid(), f.sigmoid(), j.tanh(), o.sigmoid()
        cell = f * cell + i * j
        squashed = cell.tanh()
        hidden = o * squashed
        steps.append((hidden, cell, i, j, f, o, squashed))
    return tuple(torch.stack(of_steps) for of_steps in zip(*steps, strict=True))


def _last_step(grad: Tensor | None) -> Tensor | None:
    """The device takes the gradient of a state at its last step alone."""
    if grad is None:
        return None
    kept = torch.zeros_like(grad)
    kept[-1] = grad[-1]
    return kept


def _rounded(found: tuple[Tensor | None, ...], *like: Tensor) -> tuple[Tensor, ...]:
    return tuple(f.to(t.dtype) for f, t in zip(found, like, strict=True) if f is not None)


def _require_one_plain_layer(operator: str, has_packed: bool, reverse: bool) -> None:
    if has_packed:
        raise NoReferenceError(operator, "flag_seq=True, documented as unsupported")
    if reverse:
        raise NoReferenceError(operator, "direction=True, which the device's gradient does not know either")


def _lstm_results(
    input: Tensor, weight: Tensor, bias: Tensor, h: Tensor, c: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    found = _lstm(wide(input), wide(weight), wide(bias), wide(h), wide(c))
    hidden, *others = (f.to(input.dtype) for f in found)
    cell, i, j, f, o, squashed = others
    return hidden, hidden.clone(), cell, i, j, f, o, squashed


@kernel("npu::npu_lstm")
def npu_lstm(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    seq_mask: Tensor,
    h: Tensor,
    c: Tensor,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    flag_seq: bool,
    direction: bool,
) -> tuple[Tensor, ...]:
    """(y, h, c, i, j, f, o, tanh c), each [T, B, H] (torch_npu-npu_lstm.md). As in torch_npu, `bias` is added whatever
    `has_biases` says, and the settings that the page calls unsupported have no effect.
    """
    _require_one_plain_layer("npu::npu_lstm", flag_seq, direction)
    return _lstm_results(input, weight, bias, h, c)


@kernel("npu::npu_lstm_data")
def npu_lstm_data(
    input: Tensor, batch_sizes: Tensor, weight: Tensor, bias: Tensor, seq_mask: Tensor, h: Tensor, c: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    """npu_lstm with the batch sizes of a packed sequence, which only the gradient of the device reads."""
    flag_seq, direction = rest[-2:]
    _require_one_plain_layer("npu::npu_lstm_data", flag_seq, direction)
    return _lstm_results(input, weight, bias, h, c)


@kernel("npu::npu_lstm_backward")
def npu_lstm_backward(
    grady: Tensor | None,
    gradh: Tensor | None,
    gradc: Tensor | None,
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    hx: Tensor,
    cx: Tensor,
    *saved: Tensor,
) -> tuple[Tensor, ...]:
    """(dinput, dweight, dbias, dh, dc)."""

    def run(*leaves: Tensor) -> tuple[Tensor, ...]:
        hidden, cell, *_ = _lstm(*leaves)
        return hidden, hidden, cell

    leaves = input, weight, bias, hx, cx
    grads = grady, _last_step(gradh), _last_step(gradc)
    widened = [None if g is None else wide(g) for g in grads]
    return _rounded(vector_jacobian(run, [wide(t) for t in leaves], widened), *leaves)


@kernel("npu::npu_lstm_data_backward")
def npu_lstm_data_backward(
    grady_opt: Tensor | None,
    gradh_opt: Tensor | None,
    gradc_opt: Tensor | None,
    input: Tensor,
    batch_sizes: Tensor,
    weight: Tensor,
    bias: Tensor,
    init_h: Tensor,
    init_c: Tensor,
    *saved: Any,
) -> tuple[Tensor, ...]:
    """(dinput, dweight, dbias, dh, dc)."""
    return npu_lstm_backward(grady_opt, gradh_opt, gradc_opt, input, weight, bias, init_h, init_c)


@kernel("npu::npu_lstm_cell")
def npu_lstm_cell(
    input: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    h: Tensor,
    c: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """One step: y [1, B, H], h and c [B, H], then i, j, f, o and tanh c [1, B, H]; weights [in, 4·H] and [H, 4·H]."""
    bias = w_ih.new_zeros(w_ih.size(1)) if b_ih is None or b_hh is None else b_ih + b_hh
    y, hidden, cell, *gates = _lstm_results(input[None], torch.cat([w_ih, w_hh]), bias, h, c)
    return y, hidden[0], cell[0], *gates


@kernel("npu::npu_lstm_cell_backward")
def npu_lstm_cell_backward(
    grady: Tensor | None,
    gradh: Tensor | None,
    gradc: Tensor | None,
    input: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    h: Tensor,
    c: Tensor,
    y_output: Tensor,
    h_output: Tensor,
    c_output: Tensor,
    i: Tensor,
    j: Tensor,
    f: Tensor,
    o: Tensor,
    tanhc: Tensor,
) -> tuple[Tensor, ...]:
    """(dinput, dw_ih, dw_hh, db_ih, db_hh, dh, dc), from the saved gates, which hold the biases."""
    hidden = sum((wide(g).reshape(h.shape) for g in (grady, gradh) if g is not None), wide(torch.zeros_like(h)))
    cell = wide(torch.zeros_like(c) if gradc is None else gradc)
    i, j, f, o, squashed = (wide(gate).reshape(c.shape) for gate in (i, j, f, o, tanhc))
    cell = cell + hidden * o * (1 - squashed.square())
    gates = torch.cat(
        [
            cell * j * i * (1 - i),
            cell * wide(c) * f * (1 - f),
            cell * i * (1 - j.square()),
            hidden * squashed * o * (1 - o),
        ],
        dim=1,
    )
    dbias = gates.sum(dim=0)
    found = (
        gates @ wide(w_ih).t(),
        wide(input).t() @ gates,
        wide(h).t() @ gates,
        dbias,
        dbias.clone(),
        gates @ wide(w_hh).t(),
        cell * f,
    )
    return _rounded(found, input, w_ih, w_hh, y_output, y_output, h, c)


def _gru(
    x: Tensor, hx: Tensor, weight_input: Tensor, weight_hidden: Tensor, bias_input: Tensor, bias_hidden: Tensor
) -> tuple[Tensor, ...]:
    """(h, update, reset, new, hidden part of new), each [T, B, H]."""
    hidden = hx.reshape(hx.shape[-2:])
    steps = []
    for step in x:
        of_input = (step @ weight_input + bias_input).chunk(3, dim=1)
        of_hidden = (hidden @ weight_hidden + bias_hidden).chunk(3, dim=1)
        reset, update = ((a + b).sigmoid() for a, b in zip(of_input[:2], of_hidden[:2], strict=True))
        new = (of_input[2] + reset * of_hidden[2]).tanh()
        hidden = (1 - update) * new + update * hidden
        steps.append((hidden, update, reset, new, of_hidden[2]))
    return tuple(torch.stack(of_steps) for of_steps in zip(*steps, strict=True))


@kernel("npu::npu_gru")
def npu_gru(
    input: Tensor,
    hx: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    seq_length: Tensor,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """(y, h, update, reset, new, hidden_new), each [T, B, H] in the dtype of the biases (torch_npu-npu_gru.md). As in
    torch_npu, `seq_length` and the settings after it have no effect.
    """
    found = _gru(*(wide(t) for t in (input, hx, weight_input, weight_hidden, bias_input, bias_hidden)))
    hidden, *gates = (f.to(bias_input.dtype) for f in found)
    return hidden, hidden.clone(), *gates


@kernel("npu::npu_gru_backward")
def npu_gru_backward(
    grady: Tensor | None,
    gradh: Tensor | None,
    input: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    seq_length: Tensor,
    hx: Tensor,
    *saved: Tensor,
) -> tuple[Tensor, ...]:
    """(dweight_input, dweight_hidden, dinput, dbias_input, dbias_hidden, dhx)."""

    def run(
        weight_input: Tensor, weight_hidden: Tensor, x: Tensor, bias_input: Tensor, bias_hidden: Tensor, h: Tensor
    ) -> tuple[Tensor, Tensor]:
        hidden = _gru(x, h, weight_input, weight_hidden, bias_input, bias_hidden)[0]
        return hidden, hidden

    leaves = weight_input, weight_hidden, input, bias_input, bias_hidden, hx
    widened = [None if g is None else wide(g) for g in (grady, _last_step(gradh))]
    return _rounded(vector_jacobian(run, [wide(t) for t in leaves], widened), *leaves)
