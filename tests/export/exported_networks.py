"""Networks of the kinds that people export, as they write them: some with devices in their code."""

from __future__ import annotations

import torch
from torch import nn


def cnn(classes: int = 10) -> nn.Module:
    """Convolutions, batch norm with statistics, pooling to one pixel: any height and width."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, classes),
    )
    for _ in range(3):
        net(torch.randn(4, 3, 16, 16))  # statistics other than 0 and 1
    return net


class Encoder(nn.Module):
    """A transformer encoder with a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(100, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.layers(self.embedding(ids), src_key_padding_mask=mask == 0)


class Tagger(nn.Module):
    """A bidirectional LSTM that also returns its last state."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(8, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(32, 5)

    def forward(self, frames: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        hidden, state = self.lstm(frames)
        return self.tags(hidden), state


class Decoder(nn.Module):
    """One block of a GPT that takes keys and values of the past and returns them longer. Written for CUDA."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(50, 16, device="cuda")
        self.positions = nn.Embedding(64, 16).cuda()
        self.qkv = nn.Linear(16, 48)
        self.head = nn.Linear(16, 50)
        self.to("cuda:0")

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, past_key: torch.Tensor, past_value: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        batch, tokens = ids.shape
        past = past_key.shape[2]
        positions = torch.arange(past, past + tokens, device="cuda")
        hidden = self.embedding(ids) + self.positions(positions)
        query, key, value = self.qkv(hidden).view(batch, tokens, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        key, value = torch.cat([past_key, key], 2), torch.cat([past_value, value], 2)
        causal = torch.ones(tokens, past + tokens, dtype=torch.bool, device=ids.device).tril(past)
        allowed = causal[None, None] & (mask[:, None, None, :] > 0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        logits = self.head(mixed.transpose(1, 2).reshape(batch, tokens, 16) + hidden)
        return {"logits": logits, "key": key, "value": value}


class Detector(nn.Module):
    """A detection head: boxes decoded from offsets to a grid that depends on the image, and their scores."""

    def __init__(self, stride: int = 8) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stride = stride
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=stride, padding=1), nn.LeakyReLU(0.1))
        self.box = nn.Conv2d(8, 4, 1)
        self.classes = nn.Conv2d(8, 3, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        features = self.backbone(image)
        rows, columns = torch.meshgrid(torch.arange(features.shape[2]), torch.arange(features.shape[3]), indexing="ij")
        grid = torch.stack([columns, rows]).to(features) + 0.5
        offsets = self.box(features)
        center = (offsets[:, :2].sigmoid() - 0.5 + grid) * self.stride
        size = offsets[:, 2:].exp() * self.stride
        boxes = torch.cat([center - size / 2, center + size / 2], 1).flatten(2).transpose(1, 2)
        scores, labels = self.classes(features).sigmoid().flatten(2).transpose(1, 2).max(-1)
        return boxes, scores, labels


class Random(nn.Module):
    """Never the same twice."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return image + torch.rand_like(image)


class OnNpu(nn.Module):
    """Calls an operator that only NPUs have."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.ops.npu.npu_rms_norm(hidden, torch.ones(4))[0]


class Loop(nn.Module):
    """As many additions as the batch is large."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        for _ in range(image.shape[0]):
            image = image + 1
        return image


class Coarse(nn.Module):
    """Computes in bfloat16."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.bfloat16() + 1
