"""torch_npu's own LSTM and GRU operators against torch.nn's layers in double precision."""

from __future__ import annotations

import torch
from harness import agree, close, gradients_check, raises

npu = torch.ops.npu
STEPS, BATCH, INPUTS, HIDDEN = 3, 4, 5, 6
LSTM_SETTINGS = True, 1, 0.0, True, False, False
GRU_SETTINGS = True, 1, 0.0, True, False, False


def layer(kind, x, states, weights):
    """torch.nn's function of the same name, with transposed weights and separate biases."""
    function = getattr(torch, kind)
    w_ih, w_hh, b_ih, b_hh = weights
    return function(x, states, [w_ih.t(), w_hh.t(), b_ih, b_hh], True, 1, 0.0, True, False, False)


def tensors(gates):
    """x, the two weights, the two biases and two states."""
    width = gates * HIDDEN
    weights = (INPUTS, width), (HIDDEN, width), (width,), (width,)
    return [torch.randn(shape) for shape in ((STEPS, BATCH, INPUTS), *weights, *[(1, BATCH, HIDDEN)] * 2)]


def on_npu_lstm(x, w_ih, w_hh, bias, h, c):
    mask = torch.empty(0).npu()
    return npu.npu_lstm(x, torch.cat([w_ih, w_hh]), bias, mask, h, c, *LSTM_SETTINGS, False, False)


def plain_lstm(x, w_ih, w_hh, bias, h, c):
    return layer("lstm", x, (h, c), (w_ih, w_hh, bias, torch.zeros_like(bias)))


def case_lstm_of_torch_npu():
    x, w_ih, w_hh, bias, _, h, c = tensors(4)
    leaves = x, w_ih, w_hh, bias, h, c
    agree(lambda *t: on_npu_lstm(*t)[0], lambda *t: plain_lstm(*t)[0], *leaves)
    agree(lambda *t: on_npu_lstm(*t)[1][-1:], lambda *t: plain_lstm(*t)[1], *leaves)
    agree(lambda *t: on_npu_lstm(*t)[2][-1:], lambda *t: plain_lstm(*t)[2], *leaves)
    y, hidden, cell, i, j, f, o, squashed = on_npu_lstm(*(t.npu() for t in leaves))
    close(y, hidden), close(o * squashed, y), close(cell.tanh(), squashed)
    close(f[1:] * cell[:-1] + i[1:] * j[1:], cell[1:])
    mask, sizes = torch.empty(0).npu(), torch.tensor([4, 4, 4]).npu()

    def of_data(x, w_ih, w_hh, bias, h, c):
        return npu.npu_lstm_data(x, sizes, torch.cat([w_ih, w_hh]), bias, mask, h, c, *LSTM_SETTINGS, False, False)[0]

    agree(of_data, lambda *t: plain_lstm(*t)[0], *leaves)
    gradients_check(lambda *t: on_npu_lstm(*t)[0], *(t[..., :2] if t is x else t for t in (x, w_ih[:2], *leaves[2:])))
    weight = torch.cat([w_ih, w_hh]).npu()
    for settings in ((True, False), (False, True)):
        call = lambda s=settings: npu.npu_lstm(  # noqa: E731
            x.npu(), weight, bias.npu(), mask, h.npu(), c.npu(), *LSTM_SETTINGS, *s
        )
        raises(NotImplementedError, "npu_lstm", call)


def case_lstm_takes_the_gradient_of_the_last_state_alone():
    x, w_ih, w_hh, bias, _, h, c = (t.npu().requires_grad_() for t in tensors(4))
    found = on_npu_lstm(x, w_ih, w_hh, bias, h, c)[1]
    alone = torch.autograd.grad(found[-1].sum(), x)[0]
    found = on_npu_lstm(x, w_ih, w_hh, bias, h, c)[1]
    close(torch.autograd.grad(found.sum(), x)[0], alone)


def case_lstm_cell_of_torch_npu():
    x, w_ih, w_hh, b_ih, b_hh, h, c = tensors(4)
    x, h, c = x[0], h[0], c[0]

    def plain(x, w_ih, w_hh, h, c, b_ih=None, b_hh=None):
        return torch.lstm_cell(x, (h, c), w_ih.t(), w_hh.t(), b_ih, b_hh)

    for leaves in ((x, w_ih, w_hh, h, c), (x, w_ih, w_hh, h, c, b_ih, b_hh)):
        agree(lambda *t: npu.npu_lstm_cell(*t)[1], lambda *t: plain(*t)[0], *leaves)
        agree(lambda *t: npu.npu_lstm_cell(*t)[2], lambda *t: plain(*t)[1], *leaves)
        agree(lambda *t: npu.npu_lstm_cell(*t)[0][0], lambda *t: plain(*t)[0], *leaves)
        gradients_check(lambda *t: npu.npu_lstm_cell(*t)[1] * npu.npu_lstm_cell(*t)[2], *leaves)
    assert npu.npu_lstm_cell(*(t.half().npu() for t in (x, w_ih, w_hh, h, c)))[1].dtype == torch.float16


def case_gru_of_torch_npu():
    x, w_ih, w_hh, b_ih, b_hh, h, _ = tensors(3)
    leaves = x, h, w_ih, w_hh, b_ih, b_hh
    length = torch.tensor(0).npu()

    def on_npu(*t):
        return npu.npu_gru(*t, length, *GRU_SETTINGS)

    def plain(x, h, w_ih, w_hh, b_ih, b_hh):
        return layer("gru", x, h, (w_ih, w_hh, b_ih, b_hh))

    agree(lambda *t: on_npu(*t)[0], lambda *t: plain(*t)[0], *leaves)
    agree(lambda *t: on_npu(*t)[1][-1:], lambda *t: plain(*t)[1], *leaves)
    gradients_check(lambda *t: on_npu(*t)[0], *leaves)
    y, _, update, reset, new, hidden_new = on_npu(*(t.npu() for t in leaves))
    close(y[1:], (1 - update[1:]) * new[1:] + update[1:] * y[:-1])
    of_input = (x @ w_ih + b_ih).chunk(3, -1)[2].npu()
    close((of_input + reset * hidden_new).tanh(), new)
