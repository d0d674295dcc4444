"""Trains a small convolutional network on handwritten digits, then compares its scores on all devices.

Run it with `python examples/digits.py`; it needs scikit-learn (for the 1797 pictures of 8 × 8 pixels) and tqdm.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

from tinyexplore import Device, Tensor, nn
from tinyexplore.nn.state import get_parameters, get_state_dict, load_state_dict

SEED = 0
BATCH = 64
EPOCHS = 15
PYTHON_SAMPLE = 32  # pictures for the reference interpreter, which is slow


class DigitNet:
    """Two convolutions and one linear layer: (batch, 1, 8, 8) → (batch, 10) scores."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 32, 3, padding=1)
        self.last = nn.Linear(32 * 2 * 2, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.first(x).relu().max_pool2d(2)
        x = self.second(x).relu().max_pool2d(2)
        return self.last(x.flatten(1))


def load_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns training pictures, test pictures, training labels and test labels. Pixels are 0 … 1."""
    pictures, labels = load_digits(return_X_y=True)
    pictures = (pictures / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    return train_test_split(pictures, labels.astype(np.int32), test_size=360, random_state=SEED, stratify=labels)


def train(model: DigitNet, pictures: np.ndarray, labels: np.ndarray) -> None:
    """Trains with Adam on shuffled batches. All have one size, so every step runs the same kernels."""
    optimizer = nn.optim.Adam(get_parameters(model), lr=5e-3)
    shuffle = np.random.default_rng(SEED)
    batches = len(pictures) // BATCH
    with Tensor.train(), tqdm(total=EPOCHS * batches, desc="training", unit="step") as progress:
        for _ in range(EPOCHS):
            order = shuffle.permutation(len(pictures))
            for batch in range(batches):
                chosen = order[batch * BATCH : (batch + 1) * BATCH]
                optimizer.zero_grad()
                loss = model(Tensor(pictures[chosen])).sparse_categorical_crossentropy(Tensor(labels[chosen]))
                loss.backward()
                optimizer.step()
                progress.update()
            progress.set_postfix(loss=f"{loss.item():.4f}")


def scores_on(device: str, model: DigitNet, pictures: np.ndarray) -> np.ndarray:
    """Returns the model's scores of `pictures`, computed on `device`."""
    copy = DigitNet()
    for tensor in get_parameters(copy):
        tensor.to_(device)
    load_state_dict(copy, get_state_dict(model), verbose=False)
    return copy(Tensor(pictures, device=device)).numpy()


def main() -> None:
    Tensor.manual_seed(SEED)
    train_pictures, test_pictures, train_labels, test_labels = load_data()
    model = DigitNet()
    start = time.perf_counter()
    train(model, train_pictures, train_labels)
    print(f"trained on {Device.DEFAULT} in {time.perf_counter() - start:.1f} s")

    expected = model(Tensor(test_pictures)).numpy()
    accuracy = float((expected.argmax(1) == test_labels).mean())
    print(f"test accuracy {accuracy:.2%}")
    assert accuracy >= 0.97, f"test accuracy {accuracy:.2%} is below 97 %"

    for device in Device.available():
        count = PYTHON_SAMPLE if device == "PYTHON" else len(test_pictures)
        start = time.perf_counter()
        found = scores_on(device, model, test_pictures[:count])
        seconds = time.perf_counter() - start
        np.testing.assert_allclose(found, expected[:count], rtol=1e-3, atol=1e-3)
        assert (found.argmax(1) == expected[:count].argmax(1)).all()
        print(f"{device:>6}: {count} pictures in {seconds:.2f} s, the same scores and predictions")


if __name__ == "__main__":
    main()
