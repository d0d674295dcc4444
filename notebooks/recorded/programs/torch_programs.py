"""The programs of the recorded dumps of TorchInductor."""

import torch


def softmax_of_product(x, w, b):
    h = x @ w + b
    e = torch.exp(h - h.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


if __name__ == "__main__":
    x, w, b = (torch.randn(*shape, requires_grad=True) for shape in ((64, 48), (48, 32), (32,)))
    compiled = torch.compile(softmax_of_product)
    compiled(x, w, b).sum().backward()
