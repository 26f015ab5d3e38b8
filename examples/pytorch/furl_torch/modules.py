# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The operators of functional.py in place of torch's modules."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from . import functional


class ReLU(nn.Module):
    """As torch.nn.ReLU, never in place; 1 bit per element."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x)


class GELU(nn.Module):
    """As torch.nn.GELU; 1 to 4 bits per element."""

    def __init__(self, bits: int = 3) -> None:
        super().__init__()
        self.bits = bits

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(x, self.bits)


class Dropout(nn.Module):
    """As torch.nn.Dropout; nothing per element."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.p, self.training)


class MaxPool2d(nn.Module):
    """As torch.nn.MaxPool2d without dilation; as many bits per output as an index into its window needs."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        return functional.max_pool2d(x, self.kernel_size, self.stride, self.padding)


def replace_modules(model: nn.Module) -> int:
    """Puts these modules where `model` has torch's with settings that they know, and says how many it
    replaced. A replaced ReLU no longer works in place."""
    count = 0
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            new = _replacement(child)
            if new is not None:
                setattr(parent, name, new.train(child.training))
                count += 1
    return count


def _replacement(old: nn.Module) -> "nn.Module | None":
    if type(old) is nn.ReLU:
        return ReLU()
    if type(old) is nn.GELU and old.approximate == "none":
        return GELU()
    if type(old) is nn.Dropout:
        return Dropout(old.p)
    if type(old) is nn.MaxPool2d and old.dilation in (1, (1, 1)) and not (
            old.ceil_mode or old.return_indices):
        return MaxPool2d(old.kernel_size, old.stride, old.padding)
    return None
