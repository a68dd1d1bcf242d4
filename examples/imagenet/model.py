import torch.nn as nn


class Block(nn.Module):
    """Two convolutions and a way around them. GroupNorm looks at one image at a time, however a batch is split."""

    def __init__(self, channels, stride):
        super().__init__()
        out = channels * stride
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False),
            nn.GroupNorm(4, out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.GroupNorm(4, out),
        )
        self.around = nn.Conv2d(channels, out, 1, stride=stride) if stride > 1 else nn.Identity()
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.body(x) + self.around(x))


class ResNet(nn.Module):
    def __init__(self, depth, num_classes, width=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1), *(Block(width * 2**i, stride=2) for i in range(depth))
        )
        self.classifier = nn.Linear(width * 2**depth, num_classes)

    def forward(self, x):
        return self.classifier(self.features(x).mean(dim=(2, 3)))


def resnet_tiny(num_classes):
    return ResNet(1, num_classes)


def resnet_small(num_classes):
    return ResNet(2, num_classes)
