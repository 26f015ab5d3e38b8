# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors without memory of their own pass; the meter may be used by the garbage collector."""

import threading

import pytest
import torch
from torch import nn

from furl_torch import LiveBytes, compress_saved, skip
from support import TORCH


def test_two_sparse_products_are_not_mixed_up():
    sparse = torch.eye(64).to_sparse()
    x = torch.randn(64, 64)
    for context in (compress_saved(bits=8), skip()):
        torch.manual_seed(1)
        layers = nn.Linear(64, 64), nn.Linear(64, 4)
        with context:
            y = torch.sparse.mm(sparse, layers[0](x)).relu()
            y = torch.sparse.mm(sparse, layers[1](y))
        y.sum().backward()
        expected = (layers[0](x)).relu().sum(0).expand(4, 64)
        torch.testing.assert_close(layers[1].weight.grad, expected, rtol=0.05, atol=0.5)


@pytest.mark.skipif(not hasattr(torch, "nested"), reason="no nested tensors")
def test_nested_tensors_pass():
    layer = nn.Linear(16, 4)
    x = torch.nested.nested_tensor([torch.ones(3, 16), torch.ones(5, 16)])
    if not hasattr(torch, "func"):
        pytest.skip("torch 1 has no gradients for them")
    with compress_saved(min_elements=1):
        y = torch.nested.to_padded_tensor(nn.functional.gelu(layer(x)), 0.0)
    y.sum().backward()
    assert layer.weight.grad.isfinite().all()


@pytest.mark.skipif(TORCH < (2, 5), reason="torch.func of torch up to 2.4 refuses hooks in forward mode too")
def test_forward_mode_passes():
    layer = nn.Linear(64, 64)
    x = torch.randn(64, 64)
    with compress_saved():
        value, tangent = torch.func.jvp(lambda t: layer(t).sin(), (x, ), (torch.ones_like(x), ))
    expected = torch.func.jvp(lambda t: layer(t).sin(), (x, ), (torch.ones_like(x), ))
    assert torch.equal(value, expected[0]) and torch.equal(tangent, expected[1])


@pytest.mark.host_only
def test_the_meter_can_be_entered_twice_by_one_thread():
    live = LiveBytes()

    def collected():  # as an object that ends while the meter is being used
        with live._lock:
            live.add(1)

    thread = threading.Thread(target=collected, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive() and live.now == 1


@pytest.mark.host_only
@pytest.mark.skipif(TORCH < (2, 5), reason="torch up to 2.4 has another DTensor, or one that fails on a mesh of one")
def test_distributed_tensors_pass(tmp_path):
    from torch.distributed import destroy_process_group, init_process_group
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))
        x = torch.randn(64, 64)
        net(x).sum().backward()
        exact = net[0].bias.grad.clone()
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        net = parallelize_module(net, init_device_mesh("cpu", (1, )), plan)
        net.zero_grad()
        with compress_saved(bits=8):
            y = net(x)
        y.sum().backward()
        torch.testing.assert_close(net[0].bias.grad.to_local(), exact, rtol=0.05, atol=0.5)
    finally:
        destroy_process_group()


def test_fused_graphs_of_torchscript_pass():
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    scripted = torch.jit.script(net)
    x = torch.randn(64, 64)
    for _ in range(3):  # it is fused once it has seen shapes
        scripted(x).sum().backward()
    net.zero_grad()
    scripted(x).sum().backward()
    exact = net[0].weight.grad.clone()
    net.zero_grad()
    with compress_saved():
        y = scripted(x)
    y.sum().backward()
    assert torch.equal(net[0].weight.grad, exact)
