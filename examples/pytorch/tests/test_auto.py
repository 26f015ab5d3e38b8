# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Bits by sensitivity: what is allocated, to what, and that gradients are the better for it."""

import itertools
import math
import pickle
import random
import warnings
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import furl_torch
from furl_torch import LEVELS, LiveBytes, auto, checkpoint, checkpoints, compress_saved
from furl_torch.auto import Option, cheapest
from furl_torch.contents import SavedAsIs
from furl_torch.examine import compare, gradient
from furl_torch.policy import Demand
from furl_torch.saved import Saved
from support import small_net

NUM_TOWERS, ROWS, WIDTH = 6, 64, 256
BITS_PER_BYTE = 8


class Towers(nn.Module):
    """Layers side by side: the gradient of each is a tenth of the one before it."""

    def __init__(self, order=range(NUM_TOWERS)):
        super().__init__()
        self.order = list(order)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(NUM_TOWERS))

    def forward(self, inputs, weight):
        return sum(0.1 ** i * (self.layers[i](inputs[i]) * weight).sum() for i in self.order)


@pytest.fixture
def batch():
    """Inputs of the layers, and what makes one number of their outputs."""
    return [torch.randn(ROWS, WIDTH) for _ in range(NUM_TOWERS)], torch.randn(ROWS, WIDTH)


def sizes(context, model, batch, calls=1):
    """Bytes that each layer keeps in a step of so many forward passes."""
    with context:
        for _ in range(calls):
            model(*batch)
    return [context.stats().modules[f"layers.{i}"].bytes_after for i in range(NUM_TOWERS)]


def measured(model, batch, **settings):
    """A context that has measured a step."""
    context = compress_saved("auto", model=model, **settings)
    context.measure(lambda: model(*batch))
    return context


def bits_of(num_bytes):
    """Of codes in groups of 256."""
    return num_bytes * BITS_PER_BYTE // (ROWS * WIDTH)


@pytest.mark.parametrize("mean_bits", [1, 2, 2.5, 3, 7.75, 8])
@pytest.mark.parametrize("group", [0, 256])
def test_no_more_bytes_than_with_the_mean_and_not_many_less(batch, mean_bits, group):
    model = Towers()
    kept = sum(sizes(measured(model, batch, mean_bits=mean_bits, group=group), model, batch))
    fixed = [sum(sizes(compress_saved(bits, group=group, model=model), model, batch))
             for bits in (math.floor(mean_bits), math.ceil(mean_bits))]
    most = fixed[0] + mean_bits % 1 * (fixed[1] - fixed[0])
    one_bit = ROWS * WIDTH // BITS_PER_BYTE
    assert most - one_bit < kept <= most


@pytest.mark.parametrize("group", [0, 256])
def test_layers_with_large_gradients_get_the_bits(batch, group):
    model = Towers()
    kept = sizes(measured(model, batch, group=group), model, batch)
    assert kept == sorted(kept, reverse=True)
    assert bits_of(kept[0]) >= 4 and bits_of(kept[-1]) == 1


@pytest.mark.parametrize("group", [0, 256])
def test_relative_errors_do_not_depend_on_the_size_of_gradients(batch, group):
    """All layers are alike but for that. A gradient of zeros has nothing to be divided by."""
    model, unused = Towers(), nn.Parameter(torch.randn(WIDTH))
    context = compress_saved("auto", group=group, model=model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as of a norm that is not finite
        context.measure(lambda: model(*batch) + 0.0 * (unused * batch[1]).sum(), relative=True)
    assert sizes(context, model, batch) == sizes(compress_saved(2, group=group, model=model), model, batch)


@pytest.mark.parametrize("group", [0, 256])
def test_variance_is_lower_at_the_same_bytes(batch, group):
    model = Towers()
    chosen, uniform = measured(model, batch, group=group), compress_saved(2, group=group)
    exact = gradient(model, lambda: model(*batch), nullcontext())
    less, more = (compare(exact, lambda: gradient(model, lambda: model(*batch), c), 4).error ** 2
                  for c in (chosen, uniform))
    assert less < more / 10
    assert chosen.stats().total.bytes_after <= uniform.stats().total.bytes_after


def test_two_draws_of_the_same_seed_choose_the_same_bits():
    """Costs that come close together would give others."""
    x, labels = torch.randn(8, 1, 28, 28), torch.randint(10, (8, ))
    model = small_net()
    found = []
    for _ in range(2):
        furl_torch.manual_seed(3)
        context = compress_saved("auto", mean_bits=3, model=model)
        context.measure(lambda: F.cross_entropy(model(x), labels))
        with context:
            loss = model(x).sum()
        found.append((str(context.stats()), torch.autograd.grad(loss, list(model.parameters()))))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(a, b) for a, b in zip(found[0][1], found[1][1]))


def test_tensors_are_the_same_from_step_to_step_in_any_order(batch):
    model = Towers()
    context = measured(model, batch)
    before = sizes(context, model, batch)
    assert before != sizes(compress_saved(2, model=model), model, batch)
    for order in (range(NUM_TOWERS), reversed(range(NUM_TOWERS)), [3, 0, 5, 1, 4, 2]):
        model.order = list(order)
        assert sizes(context, model, batch) == before


def test_several_forward_passes_of_a_step(batch):
    model = Towers()
    context = measured(model, batch)
    once = sizes(context, model, batch)
    fresh = [x.clone() for x in batch[0]]
    with context:
        loss = model(*batch) + model(fresh, batch[1])
    loss.backward()
    assert [context.stats().modules[f"layers.{i}"].bytes_after for i in range(NUM_TOWERS)] == [2 * n for n in once]


def test_a_layer_that_runs_twice_has_bits_for_each_time(batch):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x, y):
            return (self.layer(x)).sum() + 1e-4 * self.layer(y).sum()

    model = Twice()
    x, y = batch[0][:2]
    context = compress_saved("auto", group=256)
    context.measure(lambda: model(x, y))
    assert [(place.ordinal, bits) for place, bits in context._auto.bits.items()] == [(0, 3), (1, 1)]


def test_an_outermost_module_that_is_called_twice_has_the_same_bits_both_times(batch):
    """Its first call alone would have few, its second many."""
    layer, other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    first, second, third = batch[0][:3]

    def loss():
        return 1e-6 * layer(first).sum() + layer(second).sum() + 1e-2 * other(third).sum()

    def kept(context):
        with context:
            layer(first), layer(second)
        both = context.stats().total.bytes_after
        with context:
            loss()
        return both, context.stats().total.bytes_after

    chosen, uniform = compress_saved("auto", group=256), compress_saved(2, group=256)
    chosen.measure(loss)
    (both, total), (_, most) = kept(chosen), kept(uniform)
    assert bits_of(both) == 2 * 2 and total <= most
    assert len(chosen._auto.bits) == 2


def test_modules_that_no_measured_step_had_get_the_mean(batch):
    model = Towers()
    model.order = [0, 1, 2, 3, 4]
    with pytest.raises(KeyError):
        sizes(measured(model, batch), model, batch)
    context = measured(model, batch, mean_bits=3.5)
    model.order = list(range(NUM_TOWERS))
    assert sizes(context, model, batch)[5] == sizes(compress_saved(3, model=model), model, batch)[5]


def test_before_it_has_measured_a_context_has_the_mean(batch):
    model = Towers()
    assert sizes(compress_saved("auto", mean_bits=3, model=model), model, batch) \
        == sizes(compress_saved(3, model=model), model, batch)
    assert sizes(compress_saved("auto", model=model), model, batch) \
        == sizes(compress_saved(2, model=model), model, batch)


def test_what_policy_and_overrides_fix_stays(batch):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.LayerNorm(WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH),
                                         nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)])

        def forward(self, inputs, weight):
            grown = [x.clone().requires_grad_() * 1 for x in inputs]
            scales = [1e-6, 1e-6, 1e3, 1e-6, 1, 1e-3]
            return sum(s * (m(x) * weight).sum() for s, m, x in zip(scales, self.layers, grown))

    model = Net()
    overrides = {"layers.2": 1, "layers.3": 5}
    for group, bits in ((0, 3), (256, 3)):
        context = measured(model, batch, mean_bits=1, group=group, overrides=overrides)
        floors = sizes(compress_saved(1, group=group, model=model, overrides=overrides), model, batch)
        assert sizes(context, model, batch)[:4] == floors[:4]
        assert [bits_of(n) for n in floors[:4]] == [bits, 4, 1, 5]
    context = measured(model, batch, mean_bits=2, group=256, overrides=overrides)
    kept = sizes(context, model, batch)
    assert [bits_of(n) for n in kept] == [3, 4, 1, 5, 3, 1]


def test_a_tensor_of_two_operators_has_one_number_of_bits(batch):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.first, self.second = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x, y, weight):
            both = x.clone().requires_grad_() * 1
            return (((self.norm(both) + self.first(both)) * weight).sum() * self.scale
                    + (self.second(y) * weight).sum())

    model = Net()
    for model.scale, bits in ((1e-3, 3), (1e3, 5)):  # layer norm asks for 3
        context = compress_saved("auto", mean_bits=3, group=256, model=model)
        inputs = batch[0][0], batch[0][1], batch[1]
        context.measure(lambda: model(*inputs))
        for c, expected in ((context, bits), (compress_saved(3, group=256, model=model), 3)):
            with c:
                model(*inputs)
            kept = c.stats().modules
            assert bits_of(kept["norm"].bytes_after) == expected
            assert kept["first"].bytes_after == 0  # it is the same tensor


def test_logarithms_keep_the_mean(batch):
    layer = nn.Linear(WIDTH, 128)
    labels = torch.randint(128, (ROWS, ))

    def loss():
        y = layer(batch[0][0])
        return 1e-4 * F.cross_entropy(y, labels) + y.sum()

    chosen, uniform = compress_saved("auto", mean_bits=6, model=layer), compress_saved(6, model=layer)
    chosen.measure(loss)
    kept = []
    for context in (chosen, uniform):
        with context:
            loss()
        kept.append(context.stats().modules["outside modules"].bytes_after)
    assert kept[0] == kept[1] > ROWS * 128 * 6 / BITS_PER_BYTE


def test_signs_and_masks_are_exact_while_it_measures():
    """Gradients of inputs go through ReLUs alone: no version of what is kept changes one."""
    model = nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
    x = torch.randn(ROWS, 64, requires_grad=True)
    exact = torch.autograd.grad(model(x).sum(), x)[0]
    seen = []
    context = compress_saved("auto")

    def loss():
        y = x * 1
        y.register_hook(seen.append)
        return model(y).sum()

    context.measure(loss)
    assert len(seen) > 3
    assert all(torch.equal(g, exact) for g in seen)


def test_evaluation_changes_nothing():
    x, labels = torch.randn(8, 1, 28, 28), torch.randint(10, (8, ))
    model = small_net()
    context = compress_saved("auto", model=model)
    context.measure(lambda: F.cross_entropy(model(x), labels))

    def kept():
        with context:
            model(x)
        return {n: c.bytes_after for n, c in context.stats().modules.items() if c.num_tensors}

    in_training = kept()
    model.eval()
    with torch.no_grad(), context:
        model(x)
    assert context.stats().total.num_tensors == 0
    in_evaluation = kept()  # batch norm keeps its statistics in training
    model.train()
    assert {n: b for n, b in in_evaluation.items() if n != "1"} == {n: b for n, b in in_training.items() if n != "1"}
    assert kept() == in_training


def test_measuring_leaves_gradients_and_generators_alone(batch):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(), nn.Linear(WIDTH, 1))
    model(batch[0][0]).sum().backward()
    before = [p.grad.clone() for p in model.parameters()]
    state = torch.get_rng_state()
    context = compress_saved("auto")
    context.measure(lambda: model(batch[0][0]).sum())
    assert context._auto.bits
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), before))
    assert torch.equal(torch.get_rng_state(), state)
    assert context.live.now == 0


@pytest.mark.parametrize("relative", [False, True])
def test_parameters_may_be_complex(relative):
    """The first's gradient is a hundredth of the second's."""
    x, weights = torch.randn(64, 64, dtype=torch.complex64), [torch.randn(64, 64, dtype=torch.complex64) for _ in "ab"]
    for w in weights:
        w.requires_grad_()
    a, b = nn.GELU(), nn.GELU()
    context = compress_saved("auto", group=256)
    context.measure(lambda: sum(part * layer(torch.view_as_real(x @ w)).sum()
                                for part, layer, w in zip((0.01, 1), (a, b), weights)), relative=relative)
    bits = {place.module(): bits for place, bits in context._auto.bits.items()}
    assert bits[a] == bits[b] if relative else bits[a] < bits[b]


def test_what_an_operator_takes_off_the_gradient_counts():
    """One of ten tensors of the same harm: all of it is on average 0, or it all lies along the gradient."""
    for drift, costs in ((0.0, [4.0, 2.0, 1.0]), (2.0, [4.0 + 9 * 8, 2.0 + 9 * 2, 1.0 + 9 * 0.5])):
        probe = auto.Probe(Saved(SavedAsIs(torch.zeros(1), 0), Demand(2, [], 0), LiveBytes()), [])
        probe.num_bytes = [1, 2, 3]
        probe.errors = [torch.tensor(0.4), torch.tensor(0.2), torch.tensor(0.1)]
        probe.harm, probe.drift = torch.tensor(2.0), torch.tensor(drift)
        assert [o.cost for o in probe.options(10)] == pytest.approx(costs)


@pytest.mark.parametrize("settings, message", [
    ({"bits": "auto", "mean_bits": 0.9}, "mean_bits is 0.9: must be 1 to 8"),
    ({"bits": "auto", "mean_bits": 8.1}, "mean_bits is 8.1: must be 1 to 8"),
    ({"bits": "auto", "mean_bits": float("nan")}, "mean_bits is nan: must be 1 to 8"),
    ({"bits": 2, "mean_bits": 2}, "mean_bits is 2 and bits is 2: mean_bits is for bits='auto'"),
    ({"bits": "automatic"}, "bits is 'automatic': must be 1 to 8 or 'auto'")])
def test_arguments_that_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        compress_saved(**settings)


def test_calls_of_measure_that_are_refused(batch):
    model = Towers()
    with pytest.raises(RuntimeError, match="bits is 2: only a context with bits='auto' measures"):
        compress_saved(2).measure(lambda: model(*batch))
    context = compress_saved("auto", model=model)
    with pytest.raises(RuntimeError, match="outside of its `with`"), context:
        context.measure(lambda: model(*batch))
    for bad in (lambda: torch.ones(()), lambda: torch.ones(3, requires_grad=True) * 2, lambda: 3.0):
        with pytest.raises(ValueError, match="loss_of_step must return a tensor of one element that has a graph"):
            context.measure(bad)
    with pytest.raises(ZeroDivisionError):
        context.measure(lambda: 1 / 0)
    for factor in (math.inf, math.nan, 0.0):
        for relative in (False, True):
            with pytest.warns(UserWarning, match="bits stay as they are"):
                context.measure(lambda: model(*batch) * factor, relative=relative)
    assert sizes(context, model, batch) == sizes(compress_saved(2, model=model), model, batch)
    context.measure(lambda: model(*batch))  # as if nothing had happened
    assert sizes(context, model, batch) != sizes(compress_saved(2, model=model), model, batch)


def test_second_runs_of_checkpoints_have_the_bits(batch, monkeypatch):
    class Checkpointed(Towers):
        def forward(self, inputs, weight):
            return sum(0.1 ** i * (checkpoint(self.layers[i], inputs[i]) * weight).sum() for i in self.order)

    again = []

    def pack(recorder, x):
        again.append(packs(recorder, x))
        return again[-1]

    packs = checkpoints._Recorder._pack
    monkeypatch.setattr(checkpoints._Recorder, "_pack", pack)
    found = []
    for kind in (Towers, Checkpointed):
        furl_torch.manual_seed(0)
        model = kind()
        context = measured(model, batch)
        assert not again  # a step that is measured has no second runs
        with context:
            loss = model(*batch)
            found.append([c.bytes_after for n, c in context.stats().modules.items() if n.startswith("layers.")])
        loss.backward()
    assert sorted(kept.saved.num_bytes for kept in again) == sorted(found[0]) and len(set(found[0])) > 2


def test_zeros_and_one_positive_number_are_exact_and_not_chosen_for():
    layers = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    x = (torch.rand(64, 64) > 0.5).float()
    context = compress_saved("auto", model=layers)
    context.measure(lambda: layers(x).square().sum())
    with context:
        layers(x)
    assert 64 * 64 // BITS_PER_BYTE <= context.stats().modules["0"].bytes_after < 64 * 64 // 7


def test_copies_have_the_settings_alone(batch):
    context = measured(Towers(), batch, mean_bits=3, group=256)
    again = pickle.loads(pickle.dumps(context))
    model = Towers()
    again.measure(lambda: model(*batch))
    found, expected = [], []
    for kept, c in ((found, again), (expected, measured(model, batch, mean_bits=3, group=256))):
        with c:
            model(*batch)
        kept.append(c.stats().total)
    assert found == expected


def test_levels_of_actnn():
    x, labels = torch.randn(8, 1, 28, 28), torch.randint(10, (8, ))
    model = small_net()

    def kept(**settings):
        context = compress_saved(**settings, model=model)
        if settings["bits"] == "auto":
            context.measure(lambda: F.cross_entropy(model(x), labels))
        with context:
            model(x)
        return {n: c.bytes_after for n, c in context.stats().modules.items()}

    first, second, third = (kept(**LEVELS[level]) for level in ("L1", "L2", "L3"))
    values = 8 * 8 * 28 * 28
    assert first["1"] >= 4 * values and second["1"] < values
    assert {n: b for n, b in first.items() if n != "1"} == {n: b for n, b in second.items() if n != "1"}
    assert sum(third.values()) <= sum(kept(bits=2, window=1, group=256).values())


def random_tensors(draw, equal):
    """Options whose costs fall like those of codes."""
    for _ in range(4):
        size, cost = (1 if equal else draw.randint(1, 9)), 10.0 ** draw.uniform(-3, 3)
        yield [Option(16 * size * bits, cost / (2 ** bits - 1) ** 2) for bits in range(1, 9)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mean_bits", [1, 2, 3.5])
def test_allocation_is_the_best_for_tensors_of_one_size(seed, mean_bits):
    tensors = list(random_tensors(random.Random(seed), True))
    budget = 16 * 4 * mean_bits
    best = min(sum(t[i].cost for t, i in zip(tensors, choice))
               for choice in itertools.product(range(8), repeat=4)
               if sum(t[i].num_bytes for t, i in zip(tensors, choice)) <= budget)
    found = cheapest(tensors, mean_bits)
    assert sum(t[i].cost for t, i in zip(tensors, found)) == pytest.approx(best)
