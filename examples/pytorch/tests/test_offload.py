# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Blobs in host memory: order of copies, waiting, lifetimes."""

import copy
import gc
import weakref

import torch
from torch import nn
from torch.nn import functional as F

import furl_torch
from furl_torch import LiveBytes, compress_saved
from furl_torch.offload import MOST_LEAVING, MOST_RETURNED, Copies, HostMemory
from support import small_net, values


class Stream(Copies):
    """Copies as a GPU makes them: they are over when somebody waits for them, or for a later one. Until then the
    copies are full of other numbers, and it is a mistake to free what they are made of."""

    def __init__(self, device):
        super().__init__(device)
        self.queue = []
        self.log = []

    def start(self, tensors, to_host):
        copies = [torch.full_like(t, 77) for t in tensors]
        self.log.append("out" if to_host else "back")
        self.queue.append((len(self.log), [weakref.ref(t) for t in tensors], [weakref.ref(c) for c in copies]))
        return copies, len(self.log)

    def wait(self, event):
        while self.queue and self.queue[0][0] <= event:
            _, sources, copies = self.queue.pop(0)
            for source, copy in zip(sources, copies):
                assert source() is not None, "freed while it was copied"
                if copy() is not None:
                    copy().copy_(source())


def memory_and_stream():
    streams = []

    def open_stream(device):
        streams.append(Stream(device))
        return streams[-1]

    return HostMemory(LiveBytes(), open_stream), streams


def parcels_of(memory, count):
    """Parcels of two tensors each, and weak references to the tensors."""
    parcels, sent = [], []
    for i in range(count):
        tensors = [torch.full((100, ), i, dtype=torch.uint8), torch.full((10, ), i + 0.5)]
        sent.append([weakref.ref(t) for t in tensors])
        parcels.append(memory.send(tensors))
    return parcels, sent


def test_parcels_come_back_as_they_were_sent():
    memory, streams = memory_and_stream()
    parcels, _ = parcels_of(memory, 20)
    for order in (reversed(range(20)), range(20), [7, 7, 19, 0, 7, 8, 6]):
        for i in order:
            codes, scales = parcels[i].fetch()
            assert torch.equal(codes, torch.full((100, ), i, dtype=torch.uint8))
            assert torch.equal(scales, torch.full((10, ), i + 0.5))
    assert len(streams) == 1


def test_no_more_than_the_last_ones_that_were_sent_are_on_the_device():
    memory, _ = memory_and_stream()
    parcels, sent = parcels_of(memory, 20)
    alive = [i for i, refs in enumerate(sent) if refs[0]() is not None]
    assert alive == list(range(20 - MOST_LEAVING, 20))
    assert memory.live.on_host == 140 * (20 - MOST_LEAVING)
    del parcels
    assert all(refs[0]() is None for refs in sent)
    assert memory.live.on_host == 0


def test_what_was_sent_before_comes_back_ahead():
    memory, streams = memory_and_stream()
    parcels, _ = parcels_of(memory, 20)
    last = 20 - MOST_LEAVING - 1  # of those that have left
    parcels[last].fetch()
    log = streams[0].log
    assert log == ["out"] * 20 + ["back"] * MOST_RETURNED
    for ahead in range(1, MOST_RETURNED):
        before = len(log)
        parcels[last - ahead].fetch()
        assert len(log) == before + 1  # it was there: one more came, farther ahead
    back = [p for p in parcels[:last + 1] if p._here is not None]
    assert len(back) == MOST_RETURNED
    assert memory.live.restored == MOST_RETURNED * 140


def test_dead_parcels_are_skipped_and_forgotten():
    memory, streams = memory_and_stream()
    parcels, _ = parcels_of(memory, 20)
    for i in (10, 12, 13):
        parcels[i] = None
    parcels[14].fetch()
    assert [i for i in range(15) if parcels[i] is not None and parcels[i]._here is not None] == [8, 9, 11, 14]
    del parcels[5:]
    memory.send([torch.zeros(3)])
    assert len(memory._sent) == 6


def test_dead_parcels_before_one_that_lives_are_forgotten():
    memory, _ = memory_and_stream()
    (first, _), step = parcels_of(memory, 3), None
    for _ in range(50):
        step, _ = parcels_of(memory, 10)  # the step before dies when this one is there
    assert len(memory._sent) <= 2 * (3 + 20) + MOST_RETURNED
    for parcels in (step, first):
        for i in reversed(range(len(parcels))):
            assert torch.equal(parcels[i].fetch()[0], torch.full((100, ), i, dtype=torch.uint8))
    step[0].fetch()
    assert all(parcel._here is not None for parcel in (*first, step[0]))  # dead ones between them are skipped


def gradients(net, context, x):
    furl_torch.manual_seed(5)
    net.zero_grad()
    with context:
        loss = F.cross_entropy(net(x), torch.zeros(len(x), dtype=torch.long))
    live = context.live.now, context.live.on_host
    loss.backward()
    return [p.grad.clone() for p in net.parameters()], live


def test_gradients_are_the_same_bits_and_the_device_keeps_less():
    net = nn.Sequential(small_net()[:5], *[nn.Conv2d(8, 8, 3, padding=1) for _ in range(8)],
                        nn.Flatten(), nn.LayerNorm(8 * 28 * 28), nn.Linear(8 * 28 * 28, 100), nn.LogSoftmax(1))
    x = torch.randn(8, 1, 28, 28)
    plain, offloading = compress_saved(), compress_saved(offload=True)
    offloading._host = HostMemory(offloading.live, Stream)
    exact, (kept, none) = gradients(net, plain, x)
    folded, (here, there) = gradients(net, offloading, x)
    assert all(torch.equal(a, b) for a, b in zip(exact, folded))
    assert none == 0 and here + there == kept
    # What stays: what passed, and the last that left.
    passed = offloading.stats().kept.bytes_after
    assert 0 < here - passed < kept * 2 * MOST_LEAVING / plain.stats().compressed.num_tensors
    gc.collect()
    assert offloading.live.now == 0 and offloading.live.on_host == 0 and offloading.live.restored == 0
    assert offloading.live.peak < plain.live.peak / 2


def test_graphs_can_be_used_twice_and_settings_are_copied():
    x = values(64, 64)
    context = compress_saved(bits=8, offload=True)
    with context:
        y = x.sin().cos().exp().sigmoid()
    first, = torch.autograd.grad(y.sum(), x, retain_graph=True)
    second, = torch.autograd.grad(y.sum(), x)
    assert torch.equal(first, second)
    assert copy.copy(context)._host is not None
