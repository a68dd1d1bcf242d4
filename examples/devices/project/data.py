import torch
from torch.utils.data import DataLoader, TensorDataset

from .barracuda import Barracuda


def make_dataset(size, seed):
    """(size, 2) lengths and depths, (size, 1) speeds."""
    generator = torch.Generator(device="cpu").manual_seed(seed)
    inputs = torch.rand(size, 2, generator=generator) * torch.tensor([2.0, 6.0])
    speeds = [Barracuda(length, depth).cuda() for length, depth in inputs.tolist()]
    return TensorDataset(inputs, torch.tensor(speeds).unsqueeze(1))


def make_loader(size, batch_size, seed, device):
    return DataLoader(
        make_dataset(size, seed),
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        pin_memory=str(device).startswith("cuda"),
        generator=torch.Generator().manual_seed(seed),
    )
