# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""compress_saved as autograd meets it: gradients, noise, threads, errors."""

import itertools
import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import furl_torch
from furl_torch import Codec, compress_saved, skip
from support import small_net, values


def test_an_ordinary_model_is_about_ten_times_smaller():
    net = small_net()
    context = compress_saved(bits=2, window=8, model=net)
    with context:
        loss = F.cross_entropy(net(torch.randn(16, 1, 28, 28)), torch.zeros(16, dtype=torch.long))
    assert context.live.now == context.stats().total.bytes_after
    loss.backward()
    stats = context.stats()
    assert stats.total.ratio > 9
    assert stats.modules["1"].num_tensors == 5 and stats.modules["1"].ratio > 12
    assert sum(c.bytes_after for c in stats.modules.values()) == stats.total.bytes_after
    assert stats.kept.bytes_after + stats.compressed.bytes_after == stats.total.bytes_after
    assert "passed through" in str(stats)
    del loss
    assert context.live.now == 0 and context.live.peak >= stats.total.bytes_after


def test_signs_of_relu_are_exact():
    x = values(8, 4, 30, 30) + 0.5
    exact = torch.autograd.grad(x.relu().sum(), x, retain_graph=True)[0]
    for bits in (1, 2):
        for same in (lambda t: t.relu(), lambda t: t.clone().relu_()):
            with compress_saved(bits=bits):
                y = same(x)
            assert torch.equal(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], exact)


def test_zeros_of_relu_stay_zeros_for_the_next_layer():
    x = values(64, 1024)
    weight = torch.randn(1024, 4, requires_grad=True)
    for group in (0, 256):
        with compress_saved(group=group):
            y = x.relu()
            z = y @ weight
        restored = z.grad_fn._saved_self
        assert not restored[y == 0].any()
    assert torch.equal(restored > 0, y > 0)


def test_gradients_are_right_on_average_and_noise_is_fresh():
    x = torch.randn(32, 256)
    weight = torch.randn(256, 16, requires_grad=True)
    g = torch.randn(32, 16)
    exact = x.t() @ g
    grads = []
    for _ in range(64):
        with compress_saved():  # a new one for every step draws fresh noise, too
            y = x.clone().requires_grad_().mul(1) @ weight
        grads += torch.autograd.grad(y, weight, g)
    assert not any(torch.equal(a, b) for a, b in itertools.combinations([exact, *grads], 2))
    error, error_of_mean = ((grad - exact).norm() for grad in (grads[0], sum(grads) / len(grads)))
    assert error_of_mean < error / 6  # an eighth, if independent


def test_seed_repeats_noise_and_torch_generators_are_untouched():
    def step():
        with compress_saved():
            y = x.sin()
        return y.grad_fn._saved_self

    x = values(4096)
    furl_torch.manual_seed(7)
    state = torch.get_rng_state()
    first, second = step(), step()
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(first, second)
    furl_torch.manual_seed(7)
    assert torch.equal(step(), first)
    with pytest.raises(ValueError, match="seed is -1"):
        furl_torch.manual_seed(-1)


def test_overrides_by_type_of_module():
    class Head(nn.Linear):
        pass

    net = nn.Sequential(nn.Linear(64, 64), Head(64, 64), nn.Sequential(nn.Sigmoid(), nn.Linear(64, 4)))
    context = compress_saved(model=net, overrides={Head: 8, nn.Sequential: 4, nn.Sigmoid: None,
                                                   nn.Linear: Codec(2, 1, 1024)})
    with context:
        net(values(64, 64)).sum().backward()
    after = {name: context.stats().modules[name].bytes_after for name in ("0", "1", "2.0", "2.1")}
    assert after == {"0": 4096 // 4 + 4 * 4, "1": 4096 + 16 * 4, "2.0": 4096 * 4,
                     "2.1": 0}  # it shares what the sigmoid kept


def test_override_ends_with_its_module():
    class Broken(nn.Module):
        def forward(self, x):
            nn.Sigmoid()(x)
            raise ZeroDivisionError

    class Outer(nn.Module):
        def forward(self, x):
            try:
                Broken()(x)
            except ZeroDivisionError:
                pass
            return nn.Tanh()(x)

    context = compress_saved(overrides={Broken: None, nn.Tanh: None})
    x = values(64, 64)
    with context:
        Outer()(x).sum()
        x.sin()
    assert context.stats().modules["outside modules"].num_tensors == 1
    assert context.stats().compressed.num_tensors == 1  # by sin


def test_modules_of_other_threads_do_not_count():
    running, done = threading.Event(), threading.Event()

    class Waiting(nn.Module):
        def forward(self, x):
            running.set()
            done.wait(10)
            return x

    x = values(64, 64)
    context = compress_saved(overrides={Waiting: None})
    with context:
        other = threading.Thread(target=Waiting(), args=(x, ))
        other.start()
        running.wait(10)
        x.sin()
        done.set()
        other.join()
    assert context.stats().compressed.num_tensors == 1


def test_threads_have_contexts_of_their_own():
    x = values(64, 64)
    counts = {}

    def work(name, context):
        with context:
            nn.Sigmoid()(x.sin())
        counts[name] = context.stats().compressed.num_tensors

    main, other, idle = compress_saved(), compress_saved(), compress_saved()
    with main:
        first = threading.Thread(target=work, args=("other", other))
        first.start()
        first.join()
        second = threading.Thread(target=lambda: nn.Sigmoid()(x.sin()))  # has entered nothing
        second.start()
        second.join()
    assert counts == {"other": 2}
    assert main.stats().total.num_tensors == 0 and idle.stats().total.num_tensors == 0


def test_exceptions_leave_nothing_pushed():
    class Broken(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    before = len(nn.modules.module._global_forward_pre_hooks)
    context = compress_saved(overrides={Broken: None})
    x = values(64, 64)
    with pytest.raises(ZeroDivisionError), context, skip():
        nn.Sequential(Broken())(x)
    assert len(nn.modules.module._global_forward_pre_hooks) == before
    y = x.sin()
    assert torch.equal(y.grad_fn._saved_self, x)
    assert context.stats().total.num_tensors == 0
    with context:  # it can be used again
        y = x.sin()
    assert context.stats().compressed.num_tensors == 1


def test_refusals():
    context = compress_saved()
    with context, pytest.raises(RuntimeError, match="already on"):
        context.__enter__()
    for settings, words in (({"bits": 9}, "bits is 9"), ({"window": 0}, "window is 0"),
                            ({"window": 65}, "window is 65"), ({"group": 48}, "group is 48"),
                            ({"overrides": {nn.ReLU: 0}}, "bits is 0"),
                            ({"bits": 17}, "bits is 17"), ({"overrides": {nn.Linear: 17}}, "bits is 17"),
                            ({"bits": 2.5}, "bits is 2.5"), ({"overrides": {nn.ReLU(): 4}}, r"key ReLU\(\): must be"),
                            ({"min_elements": None}, "min_elements is None"), ({"min_elements": -1}, "is -1")):
        with pytest.raises(ValueError, match=words):
            compress_saved(**settings)
    for seed in (1.5, -1, 2**63):
        with pytest.raises(ValueError, match=f"seed is {seed}: must be an integer"):
            furl_torch.manual_seed(seed)
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with context:
                pass
    assert not context._watch.is_on
