"""A training script as users of NVIDIA's apex wrote it, at level O1; the first losses overflow float16."""

import os
import sys

import torch
from apex import amp
from apex.normalization import FusedLayerNorm
from apex.optimizers import FusedAdam
from torch import nn

path = sys.argv[1] if len(sys.argv) > 1 else "checkpoint.pt"
torch.manual_seed(0)


class Block(nn.Module):
    """Attention by hand and a feed-forward layer."""

    def __init__(self, width):
        super().__init__()
        self.norm1 = FusedLayerNorm(width)
        self.norm2 = FusedLayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        attention = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
        x = x + attention @ v
        return x + self.feed(self.norm2(x))


model = nn.Sequential(nn.Embedding(16, 32), Block(32), Block(32), nn.Linear(32, 16)).cuda()
optimizer = FusedAdam(model.parameters(), lr=1e-2, weight_decay=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
criterion = nn.CrossEntropyLoss()

start = 0
if os.path.exists(path):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    amp.load_state_dict(checkpoint["amp"])
    start = checkpoint["step"] + 1

for step in range(start, start + 12):
    generator = torch.Generator().manual_seed(step % 4)
    tokens = torch.randint(0, 16, (8, 12), generator=generator).cuda()
    output = model(tokens)
    loss = criterion(output.view(-1, 16), tokens.roll(1, dims=1).view(-1))
    if step < 3:
        loss = loss * 1e4
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
        scale = scaled_loss.item() / loss.item()
    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item():.5f} scale {scale:.0f}")

checkpoint = {
    "step": step,
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "amp": amp.state_dict(),
}
torch.save(checkpoint, path)
