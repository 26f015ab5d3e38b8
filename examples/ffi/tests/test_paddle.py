# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""furl_tvm_paddle: gradients through kept blobs."""
import furl_tvm_paddle
import paddle


def gradients(layers, x, **codec):
    for parameter in layers.parameters():
        parameter.clear_gradient()
    if codec:
        with furl_tvm_paddle.compress_saved(**codec):
            loss = layers(x).cos().sum()
    else:
        loss = layers(x).cos().sum()
    loss.backward()
    return [parameter.grad.clone() for parameter in layers.parameters()]


def distance(a, b):
    return float(sum(((p - q)**2).sum() for p, q in zip(a, b)) / sum((q**2).sum() for q in b))**0.5


def test_gradients():
    paddle.seed(1)
    layers = paddle.nn.Sequential(paddle.nn.Linear(64, 128), paddle.nn.GELU(), paddle.nn.Linear(128, 64))
    x = paddle.randn([256, 64])
    exact = gradients(layers, x)
    eight, two = (gradients(layers, x, seed=1, bits=bits) for bits in (8, 2))
    again, other = (gradients(layers, x, seed=seed, bits=2) for seed in (1, 2))
    assert 0 < distance(eight, exact) < 0.02
    assert distance(eight, exact) < distance(two, exact) < 1
    assert distance(two, again) == 0 < distance(two, other)
