"""A training script as users of NVIDIA's apex wrote it, at level O2, with batch norm; the first losses overflow."""

import argparse

import apex
import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
args = parser.parse_args()
torch.manual_seed(0)


class Net(nn.Module):
    """Convolutions with batch norm."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


net = Net().cuda()
optimizer = apex.optimizers.FusedAdam(net.parameters(), lr=1e-2, adam_w_mode=False, weight_decay=1e-2)
net, optimizer = apex.amp.initialize(net, optimizer, opt_level="O2", loss_scale="dynamic")
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)

for step in range(args.steps):
    generator = torch.Generator().manual_seed(step % 3)
    images = torch.randn(8, 3, 6, 6, generator=generator).cuda()
    labels = torch.randint(0, 4, (8,), generator=generator).cuda()
    loss = F.cross_entropy(net(images), labels)
    if step < 3:
        loss = 1e5 * loss
    optimizer.zero_grad()
    with apex.amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
        scale = scaled_loss.item() / loss.item()
    optimizer.step()
    scheduler.step()
    print(f"step {step} loss {loss.item():.5f} scale {scale:.0f}")
