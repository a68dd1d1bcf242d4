import torch.nn as nn


def conv_bn(in_channels, out_channels, stride=1):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
    )


class Residual(nn.Module):
    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(in_channels, out_channels, stride),
            nn.ReLU(inplace=True),
            conv_bn(out_channels, out_channels),
        )
        same = stride == 1 and in_channels == out_channels
        self.shortcut = nn.Identity() if same else conv_bn(in_channels, out_channels, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


class SmallResNet(nn.Module):
    def __init__(self, num_classes=10, width=16):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, width), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.layer1 = Residual(width, width, stride=1)
        self.layer2 = Residual(width, 2 * width, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2 * width, num_classes)

        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(self.pool(x).flatten(1))
