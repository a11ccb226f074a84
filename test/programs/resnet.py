"""ResNet-50 as He and others have it, with the stride in the 3 x 3 convolutions, for images of any size."""

from __future__ import annotations

from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        norm = nn.BatchNorm2d
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), norm(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), norm(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), norm(4 * width))
        self.short = nn.Identity() if inputs == 4 * width and stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), norm(4 * width))

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.short(x))


def resnet50() -> nn.Module:
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))
