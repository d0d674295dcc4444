"""Trains a small residual network on handwritten digits, with batch norm and momentum. The step is a TinyJit.

Run it with `python examples/resnet.py [epochs]`; it needs scikit-learn (for 1797 pictures of 8 × 8 pixels) and tqdm.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.nn.state import get_parameters

SEED = 0
BATCH, EPOCHS = 64, 4
WIDTHS = (16, 32)  # channels of each stage; each but the first halves height and width


class Block:
    """Two convolutions with a residual connection, which is a 1 × 1 convolution if the shapes differ."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = []
        if stride != 1 or channels_in != channels:
            self.downsample = [nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)]

    def __call__(self, x: Tensor) -> Tensor:
        y = self.bn1(self.conv1(x)).relu()
        return (self.bn2(self.conv2(y)) + x.sequential(self.downsample)).relu()


class ResNet:
    """Maps pictures (batch, 1, height, width) to scores (batch, classes)."""

    def __init__(self, classes: int = 10, widths: tuple[int, ...] = WIDTHS) -> None:
        self.conv1 = nn.Conv2d(1, widths[0], 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        befores = (widths[0], *widths[:-1])
        self.layers = [
            Block(before, width, 1 + (place > 0)) for place, (before, width) in enumerate(zip(befores, widths))
        ]
        self.fc = nn.Linear(widths[-1], classes)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu().sequential(self.layers)
        return self.fc(x.mean((2, 3)))


def training_step(model: ResNet, rate: float = 0.05) -> TinyJit[Tensor]:
    """Returns a function that trains `model` on pictures and labels, and returns the loss before the step."""
    optimizer = nn.optim.SGD(get_parameters(model), lr=rate, momentum=0.9, nesterov=True, weight_decay=1e-4)

    def step(pictures: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(pictures).sparse_categorical_crossentropy(labels)
        loss.backward()
        optimizer.step()
        return loss.realize()

    return TinyJit(step)


def main(epochs: int) -> None:
    Tensor.manual_seed(SEED)
    pictures, labels = load_digits(return_X_y=True)
    pictures = (pictures / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    split = train_test_split(pictures, labels.astype(np.int32), test_size=360, random_state=SEED, stratify=labels)
    train_pictures, test_pictures, train_labels, test_labels = split
    model = ResNet()
    step = training_step(model)
    shuffle = np.random.default_rng(SEED)
    batches = len(train_pictures) // BATCH
    start = time.perf_counter()
    with Tensor.train(), tqdm(total=epochs * batches, desc="training", unit="step") as progress:
        for _ in range(epochs):
            order = shuffle.permutation(len(train_pictures))
            for batch in range(batches):
                chosen = order[batch * BATCH : (batch + 1) * BATCH]
                loss = step(Tensor(train_pictures[chosen]), Tensor(train_labels[chosen]))
                progress.update()
            progress.set_postfix(loss=f"{loss.item():.4f}")
    accuracy = float((model(Tensor(test_pictures)).numpy().argmax(1) == test_labels).mean())
    print(f"trained in {time.perf_counter() - start:.1f} s, test accuracy {accuracy:.2%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EPOCHS)
