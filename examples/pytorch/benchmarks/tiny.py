# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Models for a benchmark of seconds on a CPU, each with a function that draws a batch."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from furl_torch.subjects import Loss, Subject, Wanted, classifier


class Residual(nn.Module):
    """Two convolutions and what goes past them."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
        self.main = nn.Sequential(*layers, nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.main(x) + x)


class Block(nn.Module):
    """A layer of a transformer; the type is one of its own, so that it is found as a block."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def convolutions(wanted: Wanted) -> Subject:
    """Three residual blocks of 16 channels."""
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)]
    return classifier(nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), *[Residual() for _ in range(3)], *head), wanted)


def transformer(wanted: Wanted) -> Subject:
    """Three layers of width 128 on random sequences."""
    model = nn.Sequential(*[Block() for _ in range(3)], nn.Linear(128, 10)).to(wanted.device)

    def draw() -> Loss:
        x = torch.randn(wanted.batch, wanted.length, 128, device=wanted.device)
        return lambda: F.cross_entropy(model(x).flatten(0, 1), x[..., :10].argmax(-1).flatten())

    return model, draw
