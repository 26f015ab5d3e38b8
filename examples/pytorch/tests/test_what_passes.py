# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Which saved tensors compress_saved compresses, and which it must not touch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from furl_torch import compress_saved, skip
from furl_torch.contents import SavedAsIs, SavedBlob
from support import values


class Spy(compress_saved):
    """Records what was packed as what."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.packed = []

    def _pack(self, x):
        kept = super()._pack(x)
        self.packed.append((x.detach(), kept.saved))
        return kept

    def compressed(self):
        return [x for x, kept in self.packed if isinstance(kept.content, SavedBlob)]


def compressed(f, **settings):
    spy = Spy(**settings)
    with spy:
        result = f()
    del result
    return spy.compressed()


def test_activations_are_compressed():
    assert len(compressed(lambda x=values(64, 64): x.exp())) == 1
    assert len(compressed(lambda x=values(64, 64): x.sin())) == 1


def test_parameters_and_their_views_pass():
    layer = nn.Linear(64, 128)
    x = values(64, 64)
    kept = compressed(lambda: layer(x))
    assert [t.shape for t in kept] == [x.shape]
    spy = Spy()
    with spy:
        y = layer.weight.t()[3:] * layer.weight.view(64, 128)[3:]
    assert len(spy.packed) == 2 and spy.compressed() == [] and spy.stats().total.bytes_before == 0
    del y


def test_autocast_copies_of_parameters_pass(device):
    layer = nn.Linear(64, 128)
    x = values(64, 64)
    spy = Spy()
    with spy, torch.autocast(device, dtype=torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    assert [(t.dtype, t.shape) for t in spy.compressed()] == [(torch.bfloat16, (64, 64))]


def test_batch_statistics_and_buffers_pass():
    norm = nn.BatchNorm1d(2048)
    x = values(16, 2048)
    assert [t.shape for t in compressed(lambda: norm(x))] == [x.shape]


@pytest.mark.parametrize("norm", [nn.LayerNorm(64), nn.GroupNorm(64, 64)])
def test_statistics_of_norms_pass(norm):
    x = values(4096, 64)  # 4096 means
    assert [t.shape for t in compressed(lambda: norm(x))] == [x.shape]


def test_integers_complex_double_sparse_and_small_pass():
    index = torch.randint(100, (2048, ))
    table = values(100, 32)
    assert compressed(lambda: table[index]) == []
    z = values(64, 64).to(torch.complex64)
    assert compressed(lambda: z * z) == []
    d = values(64, 64).double()
    assert compressed(lambda: d.exp()) == []
    sparse = torch.eye(64).to_sparse()
    assert len(compressed(lambda x=values(64, 64): torch.sparse.mm(sparse, x))) == 0
    assert compressed(lambda x=values(31, 33): x.exp()) == []  # 1023


def test_expanded_tensors_pass_and_are_not_spread():
    row = values(1, 64)
    wide = row.expand(4096, 64)
    spy = Spy()
    with spy:
        y = wide * values(4096, 64)
    passed = [kept for x, kept in spy.packed if x.shape == wide.shape and 0 in x.stride()]
    assert len(passed) == 1 and passed[0].num_bytes == 64 * 4 and passed[0].content.tensor.stride() == (0, 1)
    del y


def test_expanded_parts_of_large_memory_pass():
    wide = values(64, 64)[:1].expand(64, 64)
    assert [x.shape for x in compressed(lambda: wide.sin())] == []


def test_bool_masks_are_packed_exactly():
    mask = torch.rand(64, 65) > 0.3
    x = values(64, 65)
    spy = Spy()
    with spy:
        y = x.masked_fill(mask, 0.0)
    masks = [kept for t, kept in spy.packed if t.dtype == torch.bool]
    assert len(masks) == 1 and masks[0].num_bytes == 5 * 128
    assert torch.equal(masks[0].restore(), mask)
    y.sum().backward()


def test_two_valued_masks_are_packed_exactly():
    x = values(64, 65)
    spy = Spy()
    with spy:
        y = F.dropout(x, 0.3)
    mask, kept = spy.packed[0]
    assert isinstance(kept.content, SavedBlob) and kept.num_bytes == 5 * 128
    restored = kept.restore()
    assert torch.equal(restored, mask) and restored.unique().tolist() == [0.0, mask.max().item()]
    del y


@pytest.mark.parametrize("third", [2.0, -1.0, float("nan")])
def test_masks_of_three_values_are_no_masks(third):
    mask = (torch.rand(64, 65) > 0.5).float()
    mask[-1, -1] = third
    spy = Spy()
    with spy:
        y = values(64, 65) * mask
    assert all(isinstance(kept.content, SavedAsIs) for _, kept in spy.packed)
    del y


@pytest.mark.parametrize("f", [
    lambda x: torch.logsumexp(x, 1, keepdim=True).expand(64, 64).contiguous().exp(),
    lambda x: F.log_softmax(x, 1).view(-1).exp(),
    lambda x: F.log_softmax(x, 1).t().contiguous().to(torch.bfloat16).exp(),
    lambda x: F.log_softmax(x, 1) ** 3,
])
def test_log_probabilities_pass_where_others_than_their_maker_save_them(f):
    x = torch.randn(64, 64, requires_grad=True)  # a leaf: passes
    spy = Spy(bits=8, min_elements=1)
    with spy:
        y = f(x)
    weight = torch.randn(y.shape)
    exact = torch.autograd.grad((f(x) * weight).sum(), x)[0]
    gradient = torch.autograd.grad((y * weight).sum(), x)[0]
    assert (gradient - exact).norm() < 0.05 * exact.norm()
    logs = [t for t, kept in spy.packed if not (t >= 0).all() and kept.num_bytes < t.numel()]
    assert len(logs) <= 1  # as log-softmax saves them
    del y


def test_outputs_of_softmax_get_eight_bits():
    x = values(64, 64)
    spy = Spy()
    with spy:
        y = x.softmax(1)
    assert spy.packed[0][1].num_bytes == 4096 + 16 * 4
    del y


def test_inputs_of_modules_are_compressed_and_other_constants_pass():
    x = torch.randn(64, 64)
    layer = nn.Linear(64, 8)
    assert [t.shape for t in compressed(lambda: layer(x))] == [x.shape]
    assert compressed(lambda: torch.randn(64, 64) @ values(64, 4)) == []


def test_inputs_are_known_by_their_consumer_however_they_came(device):
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 8)

        def forward(self, *, batch):
            return self.layer(batch["x"][0])

    net, x = Named(), torch.randn(64, 64)
    assert [t.shape for t in compressed(lambda: net(batch={"x": (x, )}))] == [x.shape]

    def cast():
        with torch.autocast(device, dtype=torch.bfloat16):
            return net(batch={"x": (x, )})

    assert [t.dtype for t in compressed(cast)] == [torch.bfloat16]


def test_frozen_weights_and_buffers_pass_and_do_not_count():
    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 64).requires_grad_(False)
            self.register_buffer("table", torch.randn(64, 64))

        def forward(self, x):
            return self.layer(x) * self.table

    spy = Spy()
    with spy:
        y = Frozen()(values(64, 64))
    assert len(spy.packed) >= 2 and spy.compressed() == []
    assert spy.live.now <= 8  # a shape that torch 1 saves
    del y


def test_skip_lets_everything_pass():
    x = values(64, 64)
    spy = Spy()
    with spy:
        with skip():
            y = x.exp()
        with skip(), skip():
            pass
        z = x.sin()
    assert len(spy.compressed()) == 1
    y.sum().backward(retain_graph=True)
    del z


def test_skip_is_exact_for_what_others_compressed():
    x = values(64, 64)
    weight = torch.randn(64, 64, requires_grad=True)
    with compress_saved():
        y = x.sin()
        with skip():
            z = x @ weight
    z.sum().backward()
    assert torch.equal(weight.grad, x.detach().t() @ torch.ones(64, 64))
    del y


def test_the_workspace_of_an_lstm_passes_and_is_counted():
    net = torch.nn.LSTM(64, 128, batch_first=True)
    x = values(16, 32, 64)
    exact = torch.autograd.grad(net(x)[0].square().sum(), list(net.parameters()))
    context = compress_saved(model=net)
    with context:
        loss = net(x)[0].square().sum()
    for g, e in zip(torch.autograd.grad(loss, list(net.parameters())), exact):
        assert 0.8 < (g * e).sum() / e.square().sum() < 1.2
    count = context.stats().modules["LSTM"]
    assert count.num_tensors > 0 and count.bytes_before >= count.bytes_after >= context.stats().kept.bytes_after
