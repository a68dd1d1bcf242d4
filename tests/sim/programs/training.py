"""Training gives the CPU's losses, with every optimizer form and with the usual layers."""

from __future__ import annotations

from collections.abc import Callable

import checks
import torch
from torch import nn
from torch.nn import functional


def losses(
    make: Callable[[], nn.Module], inputs: tuple[torch.Tensor, ...], device: str, steps: int = 4, **options: object
) -> list[float]:
    torch.manual_seed(0)
    net = make().to(device)
    kind = options.pop("optimizer", torch.optim.AdamW)
    optimizer = kind(net.parameters(), lr=1e-2, **options)
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(*(tensor.to(device) for tensor in inputs))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        seen.append(loss.item())
    return seen


def same(make: Callable[[], nn.Module], *inputs: torch.Tensor, tolerance: float = 0.0, **options: object) -> None:
    cpu, npu = (losses(make, inputs, device, **options) for device in ("cpu", "npu"))
    assert cpu[0] != cpu[-1]
    assert all(abs(a - b) <= tolerance * abs(a) for a, b in zip(cpu, npu, strict=True)), f"cpu {cpu}, npu {npu}"


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=8),
            nn.GroupNorm(2, 8), nn.GELU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 5),
        )  # fmt: skip

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.body(images), labels, label_smoothing=0.1)


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 16, padding_idx=0)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 30)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens)
        mask = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).triu(1)
        attended, _ = self.attention(hidden, hidden, hidden, attn_mask=mask, need_weights=False)
        logits = self.head(self.norm(hidden + attended))
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)


class Assorted(nn.Module):
    """Indexing, sorting, scans, einsum, losses."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.einsum("bi,ij->bj", x, self.weight)
        top, places = y.topk(3, dim=1)
        picked = y.gather(1, places).cumsum(1) + y.sort(dim=1).values[:, :3]
        spread = torch.zeros_like(y).scatter_add(1, places, top)
        padded = functional.pad(spread, (1, 1))[:, 1:-1]
        chosen = torch.where(padded > 0, padded, y.logsumexp(1, keepdim=True))
        others = functional.smooth_l1_loss(chosen, x) + functional.mse_loss(y, x) + functional.l1_loss(y, x)
        return picked.mean() + others + functional.kl_div(y.log_softmax(1), x.softmax(1), reduction="batchmean")


def images() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(8, 3, 16, 16), torch.randint(0, 5, (8,))


def check_convolutions_equal_the_cpu_in_every_digit() -> None:
    same(Convolutional, *images())


def check_attention_and_embedding() -> None:
    torch.manual_seed(1)
    same(Language, torch.randint(1, 30, (4, 7)), tolerance=1e-5)


def check_indexing_sorting_scans_and_losses() -> None:
    torch.manual_seed(1)
    same(Assorted, torch.randn(5, 6), tolerance=1e-5)


def check_adamw_fused() -> None:
    same(Convolutional, *images(), fused=True)


def check_adam_foreach() -> None:
    same(Convolutional, *images(), optimizer=torch.optim.Adam, foreach=True, amsgrad=True)


def check_adam_for_each_parameter() -> None:
    same(Convolutional, *images(), optimizer=torch.optim.Adam, foreach=False)


def check_sgd_fused() -> None:
    same(Convolutional, *images(), optimizer=torch.optim.SGD, momentum=0.9, nesterov=True, fused=True)


def check_other_optimizers() -> None:
    for optimizer in (torch.optim.Adagrad, torch.optim.RMSprop, torch.optim.Adadelta, torch.optim.NAdam):
        same(Convolutional, *images(), optimizer=optimizer)


def check_lbfgs() -> None:
    values = []
    for device in ("cpu", "npu"):
        x = torch.tensor([3.0, -2.0], device=device, requires_grad=True)
        optimizer = torch.optim.LBFGS([x], max_iter=10)

        def closure(x: torch.Tensor = x, optimizer: torch.optim.Optimizer = optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            loss = (x**4).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        values.append(x.detach().cpu())
    torch.testing.assert_close(values[0], values[1])


def check_gradient_of_a_gradient() -> None:
    results = []
    for device in ("cpu", "npu"):
        x = torch.linspace(-1, 1, 5).to(device).requires_grad_()
        (first,) = torch.autograd.grad((x**3).tanh().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), x)
        results.append(second.cpu())
    torch.testing.assert_close(results[0], results[1])


def check_out_arguments_are_resized() -> None:
    out = torch.empty(0, device="npu")
    torch.add(torch.ones(2, 3, device="npu"), 1, out=out)
    assert out.shape == (2, 3) and out.sum().item() == 12
    x = torch.arange(6.0, device="npu").view(2, 3)
    base = x.view(6)
    x.t_()
    x.unsqueeze_(0)
    assert x.shape == (1, 3, 2) and x.data_ptr() == base.data_ptr() and x[0, 1].tolist() == [1, 4]


def check_losses_take_int32_targets() -> None:
    """As op_plugin's kernels do; PyTorch's own want int64."""
    logits, classes = torch.randn(4, 5), torch.tensor([0, 4, 2, -100])
    for shape in ((4, 5), (1, 5, 4)):
        arranged = logits if len(shape) == 2 else logits.T[None]
        target = classes if len(shape) == 2 else classes[None]
        expected = functional.cross_entropy(arranged, target)
        given = arranged.npu().requires_grad_()
        loss = functional.cross_entropy(given, target.npu().int())
        loss.backward()
        wanted = torch.autograd.grad(functional.cross_entropy(arranged.requires_grad_(), target), arranged)[0]
        assert torch.equal(loss.cpu(), expected) and torch.equal(given.grad.cpu(), wanted)
        logits = logits.detach()
    labels = torch.tensor([[3, 0, -1, 1]])
    scores = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    loss = functional.multilabel_margin_loss(scores.npu(), labels.npu().int())
    assert torch.equal(loss.cpu(), functional.multilabel_margin_loss(scores, labels))
    chosen = torch.tensor([2, 0])
    assert torch.equal(functional.one_hot(chosen.npu().int()).cpu(), functional.one_hot(chosen).int())


def check_losses_round_half_precision_once() -> None:
    torch.manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16):
        scores, target = torch.randn(500).mul(8).to(dtype), torch.rand(500).to(dtype)
        for loss in (functional.binary_cross_entropy_with_logits, functional.soft_margin_loss):
            exact = loss(scores.float(), target.float(), reduction="none").to(dtype)
            assert torch.equal(loss(scores.npu(), target.npu(), reduction="none").cpu(), exact), (loss, dtype)


def check_sparse_tensors_coalesce() -> None:
    places = torch.tensor([[2, 0, 2, 1], [0, 1, 0, 2]])
    values = torch.tensor([1.5, -2.0, 4.0, 8.0])
    examples = [
        (places, values, (3, 4)),
        (places, values.to(torch.int64), (3, 4)),
        (places, values > 0, (3, 4)),
        (places, torch.stack([values, -values], 1), (3, 4, 2)),
        (torch.empty(0, 4, dtype=torch.int64), torch.stack([values, values], 1), (2,)),
        (torch.empty(2, 0, dtype=torch.int64), values[:0], (3, 4)),
    ]
    for at, what, shape in examples:
        ours, theirs = (torch.sparse_coo_tensor(at.to(d), what.to(d), shape).coalesce() for d in ("npu", "cpu"))
        assert ours.is_coalesced() and ours.device.type == "npu"
        assert torch.equal(ours.indices().cpu(), theirs.indices()), (at, shape)
        assert torch.equal(ours.values().cpu(), theirs.values()), (what, shape)


if __name__ == "__main__":
    checks.run(globals())
