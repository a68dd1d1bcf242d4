"""CIFAR-shaped synthetic images: ten smooth colour patterns, each sample shifted, dimmed and noisy."""

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset

NUM_CLASSES = 10


class SyntheticCIFAR(Dataset):
    """(3, 32, 32) float images with labels 0 to 9, drawn once and held in memory."""

    def __init__(self, size, train=True, seed=0, noise=1.0):
        patterns = torch.randn(NUM_CLASSES, 3, 4, 4, generator=torch.Generator().manual_seed(seed))
        patterns = F.interpolate(patterns, size=(32, 32), mode="bilinear", align_corners=False)

        generator = torch.Generator().manual_seed(seed + (1 if train else 2))
        self.labels = torch.randint(NUM_CLASSES, (size,), generator=generator)
        shifts = torch.randint(-3, 4, (size, 2), generator=generator).tolist()
        gain = 0.5 + torch.rand(size, 1, 1, 1, generator=generator)
        images = gain * patterns[self.labels] + noise * torch.randn(size, 3, 32, 32, generator=generator)
        self.images = torch.stack([img.roll(shift, dims=(1, 2)) for img, shift in zip(images, shifts, strict=True)])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]
