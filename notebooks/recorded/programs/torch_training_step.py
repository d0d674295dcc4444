"""A step of training: two layers, a loss, gradients and an update, compiled by TorchInductor."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile
def loss_of(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    logits = model(x)
    return nn.functional.cross_entropy(logits, labels)


@torch.compile
def update() -> None:
    optimizer.step()


loss = loss_of(torch.rand(8, 16), torch.randint(0, 4, (8,)))
loss.backward()
update()
