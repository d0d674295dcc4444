"""A convolution, a normalization and an activation, compiled by TorchInductor."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = self.convolution(image)
        scaled = self.norm(features)
        active = torch.relu(scaled)
        return nn.functional.max_pool2d(active, 2)


block = torch.compile(Block().eval())
with torch.no_grad():
    block(torch.rand(1, 3, 16, 16))
