// Example programs; code above "# %%" runs but is not recorded.

export const EXAMPLES: [name: string, text: string][] = [
  [
    "Softmax of a product",
    `x = Tensor.rand(16, 32).realize()
w = Tensor.rand(32, 24).realize()
# %% what follows is explored
(x @ w).softmax()
`,
  ],
  [
    "What the scheduler fuses",
    `x = Tensor.rand(32, 32).realize()
# %%
centered = x - x.mean(1, keepdim=True)
variance = (centered * centered).mean(1, keepdim=True)
normal = centered * (variance + 1e-5).rsqrt()
`,
  ],
  [
    "A matrix product, to be tiled",
    `# Open the tuner: each opt changes the loops, and how many UOps one run executes.
a = Tensor.rand(24, 24).realize()
b = Tensor.rand(24, 24).realize()
# %%
with Context(NOOPT=1):
    c = (a @ b).realize()
`,
  ],
  [
    "A training step",
    `class Net:
    def __init__(self):
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3)

    def __call__(self, x):
        return self.second(self.first(x).relu())

net = Net()
optimizer = nn.optim.SGD(nn.state.get_parameters(net), lr=0.1)
x, labels = Tensor.rand(6, 8).realize(), Tensor([0, 1, 2, 0, 1, 2])
# %%
with Tensor.train():
    optimizer.zero_grad()
    loss = net(x).sparse_categorical_crossentropy(labels).backward()
    optimizer.step()
loss.realize()
`,
  ],
  [
    "Find a NaN",
    `# Open the debugger, and run until the condition "nan" holds.
x = Tensor([4.0, 1.0, -1.0, 9.0]).realize()
# %%
(x.sqrt() * 2).sum()
`,
  ],
  [
    "A convolution",
    `image = Tensor.rand(1, 1, 8, 8).realize()
edge = Tensor([[[[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]]]).realize()
# %%
image.conv2d(edge).relu()
`,
  ],
];
