# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The operators that keep less than torch's, and the modules made of them."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import furl_torch
from furl_torch import functional as ff

SHAPES = [(0,), (1,), (1023,), (1025,), (2, 3, 9, 7)]


def gradient(f, x):
    x = x.detach().requires_grad_()
    y = f(x)
    g = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype)
    y.backward(g)
    return y.detach(), x.grad


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_relu_is_that_of_torch(shape, dtype):
    x = torch.randn(shape).to(dtype)
    for ours, theirs in zip(gradient(ff.relu, x), gradient(torch.relu, x)):
        assert torch.equal(ours, theirs)


def test_relu_of_channels_last_images():
    x = torch.randn(2, 5, 8, 6).contiguous(memory_format=torch.channels_last)
    y, g = gradient(ff.relu, x)
    assert torch.equal(g, gradient(torch.relu, x)[1])
    assert y.stride() == x.stride()


@pytest.mark.parametrize("window", [(2, None, 0), (3, 2, 1), ((2, 3), (1, 2), (1, 0)), (5, 1, 2)])
def test_max_pool_is_that_of_torch(window):
    x = torch.randn(3, 4, 17, 12)
    ours = gradient(lambda t: ff.max_pool2d(t, *window), x)
    theirs = gradient(lambda t: F.max_pool2d(t, *window), x)
    assert torch.equal(ours[0], theirs[0])
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-6, atol=1e-6)


def test_dropout_drops_as_many_and_its_gradient_the_same():
    x = torch.ones(1 << 16)
    y, g = gradient(lambda t: ff.dropout(t, 0.25), x)
    assert ((y == 0) == (g == 0)).all()
    assert y.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert not torch.equal(ff.dropout(x, 0.25), ff.dropout(x, 0.25))
    assert ff.dropout(x, 0.25, training=False) is x


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_dropout_is_the_same_when_torch_runs_a_checkpoint_again(use_reentrant):
    """The gradient of the square is what the second run saved, times what the first run's dropout lets through."""
    def run(t):
        return checkpoint(lambda u: ff.dropout(u, 0.5).square(), t, use_reentrant=use_reentrant)

    y, g = gradient(run, torch.ones(4096))
    assert ((y == 0) == (g == 0)).all()
    torch.manual_seed(5)
    expected = ff.dropout(torch.ones(4096))
    torch.manual_seed(5)
    assert torch.equal(ff.dropout(torch.ones(4096)), expected)


@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="this torch cannot leave functions out of graphs")
def test_dropout_in_compiled_functions_has_other_keys_each_time():
    torch._dynamo.reset()
    run = torch.compile(lambda t: ff.dropout(t * 1, 0.5) * 2, backend="aot_eager")
    first, (y, g) = run(torch.ones(4096)), gradient(run, torch.ones(4096))
    assert ((y == 0) == (g == 0)).all() and not torch.equal(y, first)


@pytest.mark.parametrize("bits, error", [(1, 0.25), (2, 0.12), (3, 0.06), (4, 0.03)])
def test_gelu_is_that_of_torch_and_its_gradient_near(bits, error):
    x = torch.linspace(-5, 5, 5001)
    y, g = gradient(lambda t: ff.gelu(t, bits), x)
    theirs, exact = gradient(F.gelu, x)
    assert torch.equal(y, theirs)
    relative = ((g - exact).norm() / exact.norm()).item()
    assert 0 < relative < error


def test_activity_penalty_adds_its_gradient():
    x = torch.randn(64, 128)
    _, plain = gradient(lambda t: t * 3, x)
    mean = torch.zeros_like(x)
    for _ in range(256):
        mean += gradient(lambda t: ff.activity_penalty(t, 0.5) * 3, x)[1] / 256
    torch.testing.assert_close(mean - plain, 0.5 * x, rtol=0, atol=0.25)
    assert ((mean - plain) - 0.5 * x).mean().abs().item() < 2e-3


def test_activity_penalty_of_many_gradients_at_once():
    x = torch.randn(64, 128, requires_grad=True)
    y = ff.activity_penalty(x * 1, 0.5, bits=8)
    g = torch.randn(3, 64, 128)
    batched, = torch.autograd.grad(y, x, g, is_grads_batched=True, retain_graph=True)
    for one, of_batch in zip(g, batched):
        assert torch.equal(torch.autograd.grad(y, x, one, retain_graph=True)[0], of_batch)


def test_second_derivatives_are_refused():
    x = torch.randn(2048, requires_grad=True)
    g, = torch.autograd.grad((ff.relu(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|differentiate twice"):
        g.sum().backward()


@pytest.mark.parametrize("p", [1, 1 - 2**-17])  # as it is rounded, 1
def test_dropout_of_everything_is_that_of_torch(p):
    x = torch.randn(2, 3, 9, 7)
    for ours, theirs in zip(gradient(lambda t: ff.dropout(t, p), x), gradient(lambda t: F.dropout(t, 1.0), x)):
        assert torch.equal(ours, theirs)
    net = nn.Sequential(nn.Dropout(1.0))
    assert furl_torch.modules.replace_modules(net) == 1 and not net(x).any()
    nearly_all = ff.dropout(torch.ones(1 << 20), math.nextafter(1 - 2**-17, 0))
    assert nearly_all.unique().tolist() == [0.0, 2.0**16]


@pytest.mark.parametrize("p", [-1, 1.5, float("nan")])
def test_dropout_wants_a_probability(p):
    for training in (False, True):
        with pytest.raises(ValueError, match=f"p is {p}: must be 0 to 1"):
            ff.dropout(torch.randn(8), p, training)


def test_modules_keep_less():
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.GELU(), nn.Dropout(0.5), nn.Linear(8 * 14 * 14, 10))
    x = torch.randn(8, 1, 28, 28)
    context = furl_torch.compress_saved(model=net)
    with context:
        net(x).sum().backward()
    before = context.stats().total.bytes_after
    assert furl_torch.modules.replace_modules(net) == 4
    assert furl_torch.modules.replace_modules(net) == 0
    with context:
        net(x).sum().backward()
    assert context.stats().total.bytes_after < before
    assert net[0].weight.grad.isfinite().all()


def test_contexts_let_their_blobs_pass():
    context = furl_torch.compress_saved(min_elements=1)
    x = torch.randn(5000)
    with context:
        _, g = gradient(ff.relu, x)
    assert torch.equal(g, gradient(torch.relu, x)[1])
    assert context.stats().total.bytes_after == 5 * 128
