# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What tests share."""

import torch
from torch import nn

TORCH = tuple(int(number) for number in torch.__version__.split(".")[:2])


def values(*shape):
    """Made by an operator, with a gradient."""
    return torch.randn(shape, requires_grad=True) * 1


def small_net():
    """For images of 1 x 28 x 28."""
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8),
                         nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(8 * 28 * 28, 10))
