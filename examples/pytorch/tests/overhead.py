# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Microseconds to save and restore one small tensor."""

import time

import torch

import furl_torch

REPEATS = 2000


def microseconds(x: torch.Tensor) -> float:
    """The best of five runs of the two hooks alone."""
    context = furl_torch.compress_saved()
    best = float("inf")
    with context:
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(REPEATS):
                context._known.clear()  # so that it is compressed again
                context._pack(x).restore()
            best = min(best, (time.perf_counter() - begin) / REPEATS * 1e6)
    return best


plain = torch.randn(1024, requires_grad=True) * 1
times = {"values": microseconds(plain), "outputs of ReLU": microseconds(plain.relu())}
for name, time_us in times.items():
    print(f"{name}: {time_us:.1f} us")
