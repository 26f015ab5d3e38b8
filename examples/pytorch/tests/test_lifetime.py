# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in the graph for a saved tensor: how long, how often, and in which layout."""

import copy
import gc
import linecache
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from furl_torch import compress_saved, skip
from support import small_net, values


def test_what_several_operators_save_is_kept_once():
    x = values(64, 64)
    context = compress_saved()
    with context:
        y = x.sin() * x + x.view(64, 64).exp().detach() * x.cos()
    compressed = context.stats().compressed
    assert compressed.num_tensors == 3  # x, also by its view; x.sin(); the result of exp
    del y


def test_memory_used_again_is_not_taken_for_the_same_tensor():
    def chain(x, bits):
        with compress_saved(bits=bits) if bits else skip():
            for _ in range(8):
                x = (x * 1.01).sin()  # frees what it read: the allocator gives the memory again
        return x

    leaf = torch.randn(4096, requires_grad=True)
    exact, = torch.autograd.grad(chain(leaf * 1, 0).sum(), leaf)
    folded, = torch.autograd.grad(chain(leaf * 1, 8).sum(), leaf)
    torch.testing.assert_close(folded, exact, rtol=0.05, atol=0.02)


def test_modified_tensors_are_kept_again():
    x = values(4096)
    with compress_saved(bits=8):
        a = x.sin()
        x.mul_(3)
        b = x.sin()
    torch.testing.assert_close(b.grad_fn._saved_self, x.detach(), rtol=0.05, atol=0.1)
    assert (a.grad_fn._saved_self * 3 - x).abs().max() < 0.2


def test_modification_of_what_passed_is_noticed():
    x = values(100)  # small: passes
    with compress_saved():
        y = x.exp()
    y.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_step_of_the_optimizer_before_the_backward_pass_is_noticed():
    layers = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    optimizer = torch.optim.SGD(layers.parameters(), 0.1)
    with compress_saved():
        loss = layers(torch.randn(64, 64)).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_graph_can_be_used_twice():
    net = small_net()
    with compress_saved():
        loss = net(torch.randn(4, 1, 28, 28)).sum()
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in net.parameters()]
    loss.backward()
    for p, g in zip(net.parameters(), once):
        assert torch.equal(p.grad, 2 * g)


def test_second_derivatives():
    x = torch.randn(3, 5, dtype=torch.double, requires_grad=True)  # double passes: exact

    def f(t):
        with compress_saved():
            return (t.sin() * t).sum()

    assert torch.autograd.gradcheck(f, (x, )) and torch.autograd.gradgradcheck(f, (x, ))
    y = torch.randn(4096, requires_grad=True)
    with compress_saved(bits=8):
        g, = torch.autograd.grad(((y * 1)**3).sum(), y, create_graph=True)
        g.sum().backward()
    torch.testing.assert_close(y.grad, 6 * y.detach(), rtol=0.05, atol=0.3)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(reentrant):
    net = nn.Sequential(nn.Linear(256, 256), nn.Dropout(0.5), nn.Tanh())
    x = values(64, 256)

    def gradient(context):
        torch.manual_seed(3)
        net.zero_grad()
        with context:
            y = checkpoint(net, x, use_reentrant=reentrant)
        y.sum().backward(retain_graph=True)
        return net[0].bias.grad.clone()

    context = compress_saved(bits=8)
    exact, folded = gradient(skip()), gradient(context)
    torch.testing.assert_close(folded, exact, rtol=0.1, atol=0.5)
    # The input; torch 1 keeps that of the other kind without hooks.
    assert context.stats().compressed.num_tensors in ((1, ) if reentrant else (0, 1))


@pytest.mark.parametrize("change", [
    lambda x: x.contiguous(memory_format=torch.channels_last),
    lambda x: x.transpose(1, 2),
    lambda x: x.permute(3, 0, 1, 2),
    lambda x: x.to(torch.bfloat16),
    lambda x: x.half(),
])
def test_strides_and_dtype_come_back(change):
    x = change(values(4, 8, 16, 20))
    with compress_saved(bits=8):
        y = x * x
    restored = y.grad_fn._saved_self
    assert (restored.dtype, restored.shape) == (x.dtype, x.shape)
    assert restored.stride() == x.stride()
    torch.testing.assert_close(restored, x.detach(), rtol=0.02, atol=0.06)


def test_nothing_keeps_originals_alive():
    gc.disable()
    try:
        for f in (torch.sin, torch.exp, torch.relu, lambda t: t[:, :4].sin(), lambda t: t[:2].exp()):
            x = values(1024, 64)
            context = compress_saved()
            with context:
                y = f(x)
            storage = weakref.ref(x)
            del x
            assert storage() is None or y.grad_fn is not None
            kept = context.live.now
            assert 0 < kept <= 1024 * 64 * 4 / 9
            del y
            assert context.live.now == 0  # without the garbage collector: no cycle holds it
    finally:
        gc.enable()


def test_small_parts_do_not_keep_large_memory():
    x = values(1024, 64)
    with compress_saved():
        y = x[:4].sin()
    restored = y.grad_fn._saved_self
    assert torch.equal(restored, x[:4]) and restored.data_ptr() != x.data_ptr()
    assert restored._base is None


@pytest.mark.host_only
def test_inputs_refilled_behind_the_back_of_torch_are_new():
    memory = torch.zeros(64, 64).numpy()
    x = torch.from_numpy(memory)
    layer = nn.Linear(64, 1, bias=False)
    context = compress_saved(bits=8)
    kept = []  # earlier graphs live on
    for number in (1.0, 11.0, 21.0):
        memory[...] = number + torch.rand(64, 64).numpy()
        with context:
            y = layer(x)
            z = layer(x)
        gradient, = torch.autograd.grad((y + z).sum(), layer.weight, retain_graph=True)
        torch.testing.assert_close(gradient, 2 * x.sum(0, keepdim=True), rtol=0.01, atol=0.1)
        kept.append((y, z))
        assert context.stats().total.num_tensors == 1


def test_one_memory_in_two_shapes_is_kept_once():
    x = values(8, 16, 32)
    weight = torch.randn(32, 4, requires_grad=True)
    context = compress_saved()
    with context:
        y = x.view(128, 32) @ weight
        before = context.live.now
        z = x.sin()
        u = x.view(128, 32).t().cos()
    assert context.live.now == before and context.stats().total.num_tensors == 1
    restored = y.grad_fn._saved_self
    assert torch.equal(restored.view(8, 16, 32), z.grad_fn._saved_self)
    assert torch.equal(restored.t(), u.grad_fn._saved_self)
    assert u.grad_fn._saved_self.stride() == (1, 32)
    with context:
        w = x.view(128, 32).log()  # exact, in another shape than the first
    assert torch.equal(w.grad_fn._saved_self, x.view(128, 32))
    assert torch.equal(z.grad_fn._saved_self, x)


def test_copies_of_parameters_that_autocast_makes_are_made_again(device):
    layer, x = nn.Linear(64, 128), values(64, 64)
    context = compress_saved(bits=8)
    with context, torch.autocast(device, dtype=torch.bfloat16):
        y = layer(x)
    assert context.live.now < 64 * 64 * 2  # the input alone
    y.float().sum().backward(retain_graph=True)
    with torch.no_grad():
        layer.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.float().sum().backward()


def test_restored_tensors_count_while_they_live():
    x = values(64, 64)
    context = compress_saved()
    with context:
        y = x.sin().cos()
    kept = context.live.now
    y.sum().backward()
    assert context.live.restored == 0
    assert kept + 64 * 64 * 4 <= context.live.backward_peak <= kept + 2 * 64 * 64 * 4
    context.live.reset_peak()
    assert context.live.backward_peak == context.live.now


def test_modules_that_hold_a_context_can_be_copied_and_pickled(tmp_path):
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 64)
            self.context = compress_saved(4, 1, model=self, overrides={"layer": 8})

        def forward(self, x):
            with self.context:
                return self.layer(x)

    copied = copy.deepcopy(Held())
    copied(torch.randn(64, 64)).sum().backward()
    assert copied.context.stats().modules["layer"].bytes_after == 4096 + 64
    with copied.context, pytest.raises(RuntimeError, match="already on"):
        copied.context.__enter__()
    torch.save({"context": compress_saved(4, 1, min_elements=7)}, tmp_path / "file")


@pytest.mark.host_only
def test_contexts_leave_nothing_behind():
    compress_saved()
    known = len(linecache.cache)
    contexts = [weakref.ref(compress_saved()) for _ in range(3)]
    gc.collect()
    assert len(linecache.cache) == known and all(context() is None for context in contexts)


@pytest.mark.host_only
def test_contexts_that_measured_do_not_keep_modules():
    net, x = nn.Linear(64, 64), torch.randn(64, 64)
    context = compress_saved("auto")
    context.measure(lambda: net(x).square().sum())
    dies = weakref.ref(net)
    del net
    gc.collect()
    assert dies() is None
