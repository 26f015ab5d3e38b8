# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""One step of a ResNet-18: bytes that are saved for the backward pass, and the error of the gradient."""

import contextlib

import numpy as np
import paddle
import paddle.nn.functional as F

from furl_paddle import compress_saved, manual_seed

paddle.seed(0)
manual_seed(0)
net = paddle.vision.models.resnet18(num_classes=10)
images, labels = paddle.randn([16, 3, 64, 64]), paddle.randint(0, 10, [16])


def gradient(context):
    net.clear_gradients()
    with context:
        loss = F.cross_entropy(net(images), labels)
    loss.backward()
    return np.concatenate([p.grad.numpy().reshape(-1) for p in net.parameters() if not p.stop_gradient])


exact = gradient(contextlib.nullcontext())
print("bits  others  MiB saved  MiB kept  squared error of the gradient")
for bits, other_bits in ((4, 8), (2, 8), (2, 4), (1, 8), (2, None)):
    context = compress_saved(net, bits=bits, other_bits=other_bits)
    error = np.sum((gradient(context) - exact) ** 2) / np.sum(exact ** 2)
    _, before, kept = (sum(column) for column in zip(*context.stats().values()))
    print(f"{bits:4}  {other_bits or 'pass':>6}  {before / 2**20:9.1f}  {kept / 2**20:8.1f}  {error:.4f}")
