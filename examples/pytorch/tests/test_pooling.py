# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The indices that torch's max pooling saves: packed, and exact."""

import pytest
import torch
from torch.nn import functional as F

from furl_torch import compress_saved

POOLINGS = [
    (F.max_pool2d, (2, 3, 40, 37), dict(kernel_size=2)),
    (F.max_pool2d, (2, 3, 40, 37), dict(kernel_size=3, stride=2, padding=1)),
    (F.max_pool2d, (2, 3, 40, 37), dict(kernel_size=(2, 3), stride=(1, 2), padding=(1, 0), dilation=(3, 2))),
    (F.max_pool2d, (2, 3, 40, 37), dict(kernel_size=3, stride=2, ceil_mode=True)),
    (F.max_pool2d, (2, 3, 40, 37), dict(kernel_size=16, stride=1)),
    (F.max_pool2d, (3, 40, 37), dict(kernel_size=2, stride=1)),
    (F.max_pool1d, (8, 8, 101), dict(kernel_size=3, stride=2)),
    (F.max_pool3d, (2, 3, 12, 14, 13), dict(kernel_size=2, stride=1)),
    (F.max_pool3d, (2, 3, 12, 14, 13), dict(kernel_size=(1, 3, 2), dilation=(1, 2, 1))),
]


@pytest.mark.parametrize("pool, shape, settings", POOLINGS)
def test_gradients_are_those_of_torch(pool, shape, settings):
    # A constant takes the first element of a window in reach, NaN the last; infinities count.
    for fill in (None, 0.0, float("nan"), float("-inf")):
        x = torch.randn(shape) if fill is None else torch.full(shape, fill)
        for memory in (torch.contiguous_format, torch.channels_last):
            if memory == torch.channels_last and len(shape) != 4:
                continue
            leaf = x.contiguous(memory_format=memory).requires_grad_()
            with compress_saved(min_elements=1) as context:
                y = pool(leaf.clone(), **settings)
            g = torch.randn(y.shape)
            ours, = torch.autograd.grad(y, leaf, g)
            theirs, = torch.autograd.grad(pool(leaf * 1, **settings), leaf, g)
            assert torch.equal(ours, theirs)
            assert context.stats().kept.num_tensors == 0


@pytest.mark.parametrize("kernel, bits", [(2, 2), (3, 4), (1, 1), (16, 8)])
def test_bytes_that_are_kept(kernel, bits):
    x = torch.randn(2, 4, 63, 65, requires_grad=True) * 1
    context = compress_saved()
    with context:
        y = F.max_pool2d(x, kernel, 1)
    tiles = -(-y.numel() // 1024)
    assert context.live.now == tiles * 128 * bits
    del y


def test_windows_of_more_places_than_a_code_has():
    x = torch.randn(2, 4, 64, 64, requires_grad=True)
    context = compress_saved()
    with context:
        y = F.max_pool2d(x.clone(), 17, 1)
    assert context.stats().kept.bytes_after == y.numel() * 8
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0],
                       torch.autograd.grad(F.max_pool2d(x, 17, 1).sum(), x)[0])


def test_other_integers_pass():
    x = torch.randn(4096, 4, requires_grad=True)
    index = torch.randint(4096, (5000, ))
    context = compress_saved()
    with context:
        y = (x * 1).index_select(0, index)
    assert context.stats().kept.bytes_after >= 5000 * 8
    y.sum().backward()
    assert torch.equal(x.grad[:, 0], torch.bincount(index, minlength=4096).float())
