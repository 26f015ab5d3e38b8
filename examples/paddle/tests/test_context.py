# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""compress_saved: what it keeps, the gradients that come of it, and what it refuses."""

import contextlib
import gc

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from paddle import nn

import furl_paddle
from furl_paddle import compress_saved


@pytest.fixture(autouse=True)
def repeatable():
    paddle.seed(3)
    furl_paddle.manual_seed(3)


def network():
    return nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2D(8, 8, 3, padding=1, stride=2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(8 * 8 * 8, 32), nn.ReLU(), nn.Linear(32, 10))


def batch(n=64):
    return paddle.randn([n, 3, 16, 16]), paddle.randint(0, 10, [n])


def gradient(net, loss, **kwargs):
    net.clear_gradients()
    loss.backward(**kwargs)
    return np.concatenate([p.grad.numpy().reshape(-1) for p in net.parameters() if not p.stop_gradient])


def saved_by(layer, x, **settings):
    """stats() of one forward pass, after a backward pass that must do."""
    context = compress_saved(layer, **settings)
    with context:
        y = layer(x)
    y.sum().backward()
    return context.stats()


def test_gradients_are_close_and_unbiased():
    net, (images, labels) = network(), batch()
    exact = gradient(net, F.cross_entropy(net(images), labels))
    context, draws = compress_saved(net, bits=2), []
    for _ in range(48):
        with context:
            loss = F.cross_entropy(net(images), labels)
        draws.append(gradient(net, loss))
    one = np.mean([np.sum((g - exact) ** 2) for g in draws]) / np.sum(exact ** 2)
    mean = np.sum((np.mean(draws, axis=0) - exact) ** 2) / np.sum(exact ** 2)
    assert .001 < one < .2
    assert mean < 1.5 * one / 48


def test_outputs_and_inputs_are_what_they_were():
    net, (images, labels) = network(), batch()
    before, plain = images.numpy(), F.cross_entropy(net(images), labels)
    state = [s.current_seed() for s in paddle.get_rng_state()]
    with compress_saved(net):
        loss = F.cross_entropy(net(images), labels)
    assert loss.item() == plain.item()
    assert (images.numpy() == before).all() and images.inplace_version == 0
    assert [s.current_seed() for s in paddle.get_rng_state()] == state


def test_bytes_kept():
    net, (images, labels) = network(), batch()
    context = compress_saved(net, bits=2)
    with context:
        F.cross_entropy(net(images), labels)
    convolved, hidden, flat, wide = 64 * 3 * 256, 64 * 8 * 256, 64 * 512, 64 * 32
    coded = convolved + hidden + flat + wide
    # 2 bits per value, and 2 bytes for each 256 values, filled up to 16 bytes.
    scales = sum(-(-n // 1024 * 8 // 16) * 16 for n in (convolved, hidden, flat, wide))
    stats = context.stats()
    assert stats["codes"] == (4, 4 * coded, coded // 4 + scales)
    assert stats["signs"] == (3, 4 * (hidden + flat + wide), (hidden + flat + wide) // 8)
    # Labels, and the softmax of the loss.
    assert stats["passed"] == (2, 64 * 8 + 64 * 10 * 4, 64 * 8 + 64 * 10 * 4)


def allocated_bytes():
    gc.collect()
    return paddle.base.core.host_memory_stat_current_value("Allocated", 0)


def test_memory_of_what_is_compressed_is_freed():
    x = paddle.randn([512, 512])
    x.stop_gradient = False
    net = nn.Sequential(nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
    context = compress_saved(net, bits=2)
    before = allocated_bytes()
    with context:
        y = net(x * 1)
    kept = allocated_bytes() - before
    mask, codes = 512 * 512 // 8, 512 * 512 // 4 + 2048
    assert 0 <= kept - 512 * 512 * 4 - 2 * mask - codes < 4096  # y is alive
    y.sum().backward()
    assert ((x.grad.numpy() != 0) == (x.numpy() > 0)).all()


@pytest.mark.parametrize("layer, shape, kinds", [
    (nn.Linear(64, 64), [64, 64], {"codes": 1}),
    (nn.Linear(96, 8), [4, 197, 96], {"codes": 1}),
    (nn.Conv1D(3, 4, 3), [40, 3, 17], {"codes": 1, "passed": 1}),  # the weight in another shape
    (nn.Conv2DTranspose(3, 4, 3), [2, 3, 16, 16], {"codes": 1}),
    (nn.ReLU(), [33, 33], {"signs": 1}),
    (nn.ReLU(), [31, 33], {"passed": 1}),                          # 1023 values
    (nn.LogSoftmax(), [64, 64], {"passed": 1}),
    (nn.Sequential(nn.Linear(64, 64), nn.Dropout(.5)), [64, 64], {"codes": 1, "passed": 1}),  # a mask of uint8
    (nn.Sequential(nn.Linear(64, 64), nn.Tanh()), [64, 64], {"codes": 1, "passed": 1}),
    (nn.MaxPool2D(2), [2, 4, 16, 16], {"passed": 2}),
], ids=str)
def test_what_is_compressed(layer, shape, kinds):
    x = paddle.randn(shape)
    x.stop_gradient = False
    assert {kind: count[0] for kind, count in saved_by(layer, x).items()} == kinds
    assert x.grad.shape == shape


class Doubled(nn.Linear):
    """Saves its input for a product too: the bits of a linear layer are not for that."""

    def forward(self, x):
        return super().forward(x) * x


def test_a_layer_with_a_forward_of_its_own_has_unknown_readers():
    x = paddle.randn([64, 64])
    x.stop_gradient = False
    assert set(saved_by(Doubled(64, 64), x)) == {"passed"}


def test_an_input_given_by_its_keyword_passes():
    linear = nn.Linear(64, 64)
    with compress_saved(linear) as context:
        linear(input=paddle.randn([96, 64])).sum().backward()
    assert context.stats()["passed"][0] == 1


def test_other_bits():
    net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.LogSoftmax())
    x, of_linear, of_others = paddle.randn([64, 64]), 64 * 64 // 4 + 32, 64 * 64 + 4 * 16
    stats = saved_by(net, x)
    assert stats["codes"] == (3, 3 * 64 * 64 * 4, of_linear + 2 * of_others)
    assert stats["passed"] == (3, 64 * 4 * 2 + 64 * 64 * 4, 64 * 4 * 2 + 64 * 64 * 4)  # statistics, log-softmax
    assert saved_by(net, x, other_bits=None)["codes"] == (1, 64 * 64 * 4, of_linear)


@pytest.mark.parametrize("layer", [nn.BatchNorm2D(4), nn.GroupNorm(2, 4), nn.InstanceNorm2D(4), nn.GELU(), nn.Silu()],
                         ids=str)
def test_gradients_of_layers_with_other_bits(layer):
    """The gradient of the first layer goes through the second; the exact one is close, at 8 bits."""
    net = nn.Sequential(nn.Conv2D(3, 4, 1), layer)
    x, weights = paddle.randn([16, 3, 16, 16]), paddle.randn([16, 4, 16, 16])
    exact = gradient(net, (net(x) * weights).sum())
    with compress_saved(net, bits=4) as context:
        loss = (net(x) * weights).sum()
    assert context.stats()["codes"][0] == 2
    assert .0001 < np.linalg.norm(gradient(net, loss) - exact) / np.linalg.norm(exact) < .15


def test_max_pooling_finds_its_maxima():
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.MaxPool2D(2))
    x = paddle.randn([4, 4, 16, 16])
    x.stop_gradient = False
    net(x).sum().backward()
    exact = x.grad.numpy()
    x.clear_grad()
    assert saved_by(net, x)["passed"][0] == 2
    assert (x.grad.numpy() == exact).all()


def test_the_gradient_of_the_input_is_exact_where_weights_alone_are_read():
    linear, x = nn.Linear(64, 64), paddle.randn([64, 64])
    x.stop_gradient = False
    saved_by(linear, x)
    assert np.allclose(x.grad.numpy(), linear.weight.numpy().sum(1), atol=1e-5)


@pytest.mark.parametrize("loss", [
    lambda y, labels: F.cross_entropy(y, labels),  # whose backward pass overwrites the softmax
    lambda y, labels: F.nll_loss(F.log_softmax(y), labels)])
def test_a_graph_that_is_retained_gives_the_same_gradient_again(loss):
    net, (images, labels) = network(), batch()
    net = nn.Sequential(net[:2], nn.MaxPool2D(1), nn.BatchNorm2D(8), net[2:], nn.Dropout(.5))
    with compress_saved(net):
        value = loss(net(images), labels)
    first = gradient(net, value, retain_graph=True)
    assert (gradient(net, value, retain_graph=True) == first).all() and (gradient(net, value) == first).all()


def test_gradients_of_gradients():
    x = paddle.randn([64, 64])
    x.stop_gradient = False
    with compress_saved(nn.ReLU()):
        g, = paddle.grad((x * x * x).sum(), x, create_graph=True)
    assert np.allclose(paddle.grad(g.sum(), x)[0].numpy(), 6 * x.numpy(), atol=1e-5)


def test_bfloat16(monkeypatch):
    """Of a product in the place of GELU: Paddle's CPU kernels have hardly anything else in half precision."""
    monkeypatch.setattr(nn.layer.activation.F, "gelu", lambda x, approximate, name: x * x)
    x = paddle.randn([64, 64]).astype("bfloat16")
    x.stop_gradient = False
    stats = saved_by(nn.GELU(), x)
    assert stats == {"codes": (2, 2 * 64 * 64 * 2, 2 * (64 * 64 + 4 * 16))}
    assert x.grad.dtype == paddle.bfloat16
    assert np.allclose(x.grad.astype("float32").numpy(), 2 * x.astype("float32").numpy(), atol=.15)


@pytest.mark.parametrize("tokens, kinds", [(96, {"codes": 1, "passed": 1}), (64, {"passed": 2})])
def test_copies_of_autocast(monkeypatch, tokens, kinds):
    """Autocast works on GPUs alone: here a function casts as it does. Where the copy of the input has the weight's
    shape, it could be the weight."""
    linear = F.linear
    monkeypatch.setattr(nn.layer.common.F, "linear", lambda x, weight, bias, name=None: linear(
        x.astype("float32"), weight.astype("float64").astype("float32"), bias))
    x = paddle.randn([tokens, 64]).astype("float64")
    x.stop_gradient = False
    stats = saved_by(nn.Linear(64, 64), x)
    assert {kind: count[0] for kind, count in stats.items()} == kinds


def test_transposed_views_pass():
    x = paddle.randn([64, 64])
    x.stop_gradient = False
    y = x * 1
    linear = nn.Linear(64, 64)
    with compress_saved(linear) as context:
        product = linear(y.t())
    product.sum().backward()
    assert context.stats() == {"passed": (1, 64 * 64 * 4, 64 * 64 * 4)}
    expected = paddle.grad(linear(y.t()).sum(), linear.weight)[0]
    assert np.allclose(linear.weight.grad.numpy(), expected.numpy(), atol=1e-4)


def test_after_a_layer_that_raises_others_are_not_taken_for_it():
    linear, relu = nn.Linear(64, 64), nn.ReLU()
    x = paddle.randn([64, 64])
    x.stop_gradient = False
    with compress_saved(nn.Sequential(linear, relu)) as context:
        with pytest.raises(ValueError):
            linear(paddle.ones([64, 3]))
        y = F.softmax(x)
        with pytest.raises(RuntimeError):
            relu(paddle.ones([64, 64]).astype("bfloat16"))  # the CPU has no such kernel
        z = paddle.exp(x)
        linear(x)
    passed = 64 * 3 * 4 + 2 * 64 * 64 * 4
    assert context.stats() == {"passed": (3, passed, passed), "codes": (1, 64 * 64 * 4, 1024 + 32)}
    assert not linear._forward_pre_hooks and not linear._forward_post_hooks
    (y + z).sum().backward()
    assert np.allclose(x.grad.numpy(), np.exp(x.numpy()), rtol=1e-5, atol=1e-6)


def test_a_failed_exit_ends_the_hooks():
    linear = nn.Linear(64, 64)
    context = compress_saved(linear)
    with contextlib.suppress(KeyError), context:
        raise KeyError
    linear(paddle.randn([64, 64]))
    assert context.stats() == {}
