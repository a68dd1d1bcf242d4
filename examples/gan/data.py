"""Synthetic grey images, 1 x 32 x 32 in [-1, 1]: one bright ring of random place, size and thickness."""

import torch
from torch.utils.data import DataLoader, Dataset


class Rings(Dataset):
    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        u = torch.rand(size, 4, generator=generator)
        cx, cy = 11 + 10 * u[:, 0], 11 + 10 * u[:, 1]
        radius, width = 5 + 4 * u[:, 2], 1 + u[:, 3]
        axis = torch.arange(32, dtype=torch.float32)
        dx = axis.view(1, 1, 32) - cx.view(-1, 1, 1)
        dy = axis.view(1, 32, 1) - cy.view(-1, 1, 1)
        distance = (dx.square() + dy.square()).sqrt() - radius.view(-1, 1, 1)
        ring = torch.exp(-(distance / width.view(-1, 1, 1)).square())
        self.images = (2 * ring - 1).unsqueeze(1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index]


def make_loader(size, batch_size, workers, seed):
    kwargs = {"num_workers": workers, "pin_memory": True} if torch.cuda.is_available() else {"num_workers": workers}
    return DataLoader(
        Rings(size, seed),
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        persistent_workers=workers > 0,
        generator=torch.Generator().manual_seed(seed),
        **kwargs,
    )
