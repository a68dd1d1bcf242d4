"""Stand-ins for ImageNet: each class is a pattern of colours, each image that pattern under noise."""

import torch
from torch.utils.data import Dataset


class FakeImages(Dataset):
    """(3, size, size) float images with labels below num_classes. An image depends on its index alone."""

    def __init__(self, length, size=32, num_classes=20, first=0):
        generator = torch.Generator().manual_seed(7)
        self.patterns = torch.randn(num_classes, 3, size, size, generator=generator)
        self.length, self.first, self.num_classes = length, first, num_classes

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.first + index)
        label = int(torch.randint(self.num_classes, (1,), generator=generator))
        noise = torch.randn(self.patterns.shape[1:], generator=generator)
        return self.patterns[label] + noise, label
