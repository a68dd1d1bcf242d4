"""Whole models train on the npu as on the CPU: the same losses and the same parameters."""

from __future__ import annotations

import torch
from harness import close
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def train(build, batch, device, steps=4, step=None):
    """SGD: Adam would blow up the rounding errors of parameters whose gradient is zero (the bias of attention keys)."""
    torch.manual_seed(0)
    net = build().to(device)
    data = [t.to(device) for t in batch]
    updates = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    losses = []
    torch.manual_seed(1)
    for _ in range(steps):
        updates.zero_grad()
        loss = step(net, *data)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        updates.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in net.parameters()]


def trains_alike(build, batch, step):
    theirs, our_parameters = train(build, batch, "cpu", step=step)
    ours, their_parameters = train(build, batch, "npu", step=step)
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-5, atol=1e-5)
    for a, b in zip(our_parameters, their_parameters, strict=True):
        close(a, b, 1e-4)
    assert ours[-1] != ours[0]


def case_transformer_encoder_with_padding_mask_and_dropout():
    def build():
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True, norm_first=True)
        return nn.ModuleDict(
            {"encoder": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), "head": nn.Linear(16, 1)}
        )

    padding = torch.zeros(3, 7, dtype=torch.bool)
    padding[1, 5:] = True

    def step(net, x, hidden):
        return net["head"](net["encoder"](x, src_key_padding_mask=hidden)).square().mean()

    trains_alike(build, [torch.randn(3, 7, 16), padding], step)


def case_encoder_decoder_transformer():
    def step(net, source, target):
        mask = net.generate_square_subsequent_mask(target.size(1), device=target.device)
        return net(source, target, tgt_mask=mask, tgt_is_causal=True).square().mean()

    trains_alike(
        lambda: nn.Transformer(16, 4, 1, 1, 32, dropout=0.1, batch_first=True),
        [torch.randn(2, 6, 16), torch.randn(2, 5, 16)],
        step,
    )


def case_multihead_attention_with_and_without_weights():
    for need_weights in (True, False):
        mask = torch.triu(torch.ones(6, 6, dtype=torch.bool), 1)

        def step(net, x, hidden, need_weights=need_weights):
            return net(x, x, x, attn_mask=hidden, need_weights=need_weights)[0].square().mean()

        trains_alike(
            lambda: nn.MultiheadAttention(16, 4, dropout=0.2, batch_first=True), [torch.randn(2, 6, 16), mask], step
        )


class Block(nn.Module):
    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norms[0](x)).split(width, 2)
        )
        attended = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.tokens, self.places = nn.Embedding(11, 16), nn.Embedding(8, 16)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(16, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, indices):
        x = self.tokens(indices) + self.places(torch.arange(indices.size(1), device=indices.device))
        for block in self.blocks:
            x = block(x) if self.reentrant is None else checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x)


def case_gpt_with_tied_weights_dropout_and_checkpointing():
    indices = torch.randint(0, 11, (3, 9))
    for reentrant in (None, False, True):

        def step(net, tokens):
            return F.cross_entropy(
                net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1
            )

        trains_alike(lambda r=reentrant: Gpt(r), [indices], step)


def case_dcgan():
    def build():
        generator = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip
        critic = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 1, 4, 1, 0),
            nn.Sigmoid(),
            nn.Flatten(0),
        )
        return nn.ModuleDict({"generator": generator, "critic": critic})

    def step(net, real, noise):
        fake = net["generator"](noise)
        verdicts = torch.cat([net["critic"](real), net["critic"](fake.detach()), net["critic"](fake)])
        wanted = torch.cat([torch.ones(4), torch.zeros(4), torch.ones(4)]).to(real.device)
        return F.binary_cross_entropy(verdicts, wanted)

    trains_alike(build, [torch.randn(4, 1, 8, 8), torch.randn(4, 4, 1, 1)], step)


def case_speech_model_with_packed_lstm_and_ctc():
    def build():
        return nn.ModuleDict({"lstm": nn.LSTM(6, 8, 2, dropout=0.2, bidirectional=True), "head": nn.Linear(16, 5)})

    lengths, targets = torch.tensor([9, 7, 5]), torch.tensor([[1, 2, 3], [4, 1, 0], [2, 0, 0]])

    def step(net, x, labels):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        output, sizes = nn.utils.rnn.pad_packed_sequence(net["lstm"](packed)[0])
        return F.ctc_loss(net["head"](output).log_softmax(-1), labels, sizes, torch.tensor([3, 2, 1]))

    trains_alike(build, [torch.randn(9, 3, 6), targets], step)


def case_gru_with_attention_and_embedding_bag():
    def build():
        return nn.ModuleDict(
            {"bag": nn.EmbeddingBag(10, 8, mode="mean"), "gru": nn.GRU(8, 8, batch_first=True), "head": nn.Linear(8, 1)}
        )

    def step(net, indices):
        words = net["bag"](indices.flatten(0, 1)).view(3, 4, 8)
        return net["head"](net["gru"](words)[0][:, -1]).square().mean()

    trains_alike(build, [torch.randint(0, 10, (3, 4, 2))], step)


def case_mixed_precision_with_grad_scaler_trains_towards_the_float32_losses():
    torch.manual_seed(0)
    indices = torch.randint(0, 11, (3, 9))
    for dtype in (torch.float16, torch.bfloat16):
        losses = {}
        for amp in (False, True):
            torch.manual_seed(0)
            net = Gpt(None).npu()
            tokens = indices.npu()
            optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
            scaler = torch.amp.GradScaler("npu", enabled=amp and dtype == torch.float16)
            losses[amp] = []
            torch.manual_seed(1)
            for _ in range(6):
                optimizer.zero_grad()
                with torch.autocast("npu", dtype=dtype, enabled=amp):
                    loss = F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                losses[amp].append(loss.item())
        torch.testing.assert_close(torch.tensor(losses[True]), torch.tensor(losses[False]), rtol=3e-2, atol=3e-2)
        assert losses[True][-1] < losses[True][0]


def case_torch_npu_affinity_functions_train_a_llama_block():
    import torch_npu

    class Affine(nn.Module):
        """Written with torch_npu's operators on the npu, with plain ones elsewhere."""

        def __init__(self):
            super().__init__()
            self.weight, self.qkv = nn.Parameter(torch.ones(16)), nn.Linear(16, 48, bias=False)
            self.up, self.down = nn.Linear(16, 64, bias=False), nn.Linear(32, 16, bias=False)

        def forward(self, x):
            on_npu = x.device.type == "npu"
            batch, length, width = x.shape
            normal = (
                torch_npu.npu_rms_norm(x, self.weight, 1e-6)[0] if on_npu else F.rms_norm(x, (16,), self.weight, 1e-6)
            )
            q, k, v = (t.view(batch, length, 4, 4) for t in self.qkv(normal).split(width, 2))
            angles = torch.arange(length)[:, None] * torch.tensor([1.0, 0.1]).repeat(2)
            cos, sin = angles.cos()[None, :, None].to(x.device), angles.sin()[None, :, None].to(x.device)
            if on_npu:
                q, k = torch_npu.npu_rotary_mul(q, cos, sin), torch_npu.npu_rotary_mul(k, cos, sin)
                mask = torch.triu(torch.ones(2048, 2048, dtype=torch.bool, device=x.device), 1)
                y = torch_npu.npu_fusion_attention(q, k, v, 4, "BSND", atten_mask=mask, scale=0.5, sparse_mode=2)[0]
            else:
                q, k = (t * cos + torch.cat([-t[..., 2:], t[..., :2]], -1) * sin for t in (q, k))
                heads = [t.transpose(1, 2) for t in (q, k, v)]
                y = F.scaled_dot_product_attention(*heads, is_causal=True, scale=0.5).transpose(1, 2)
            x = x + y.reshape(batch, length, width)
            gated = self.up(x)
            return x + self.down(torch_npu.npu_swiglu(gated) if on_npu else F.silu(gated[..., :32]) * gated[..., 32:])

    trains_alike(Affine, [torch.randn(2, 6, 16)], lambda net, x: net(net(x)).square().mean())
