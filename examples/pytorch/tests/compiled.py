# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What compiled functions keep, and the norm of their gradients: the table of REFERENCE.md."""

import sys

import torch

from furl_torch import compress_saved, skip
from test_graph import gradient, images, transformer

DRAWS = 8
ROWS = 8


def row(make, backend, **settings):
    """Bytes kept without compression; how many times less with it; and the norm of the gradient over the exact one,
    root mean square. In eager mode stats() has the bytes: the graph holds objects of furl's in place of tensors."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    net, loss, inputs_of = make()
    loss = torch.compile(loss, backend=backend) if backend != "eager" else loss
    inputs, context = inputs_of(ROWS), compress_saved(**settings)
    exact, before = gradient(net, loss, inputs, skip())
    found = [gradient(net, loss, inputs, context) for _ in range(DRAWS)]
    norm = (sum(g.square().sum() for g, _ in found) / DRAWS).sqrt() / exact.norm()
    total, after = context.stats().total, found[0][1]
    before, after = (total.bytes_before, total.bytes_after) if backend == "eager" else (before, after)
    return f"{before:8} bytes, {before / after:5.1f}x, {norm:.2f}"


for make in transformer, images:
    for settings in {}, {"group": 256}:
        for backend in sys.argv[1:] or ("eager", "aot_eager", "inductor"):
            print(f"{make.__name__:12} {settings} {backend:10} {row(make, backend, **settings)}", flush=True)
