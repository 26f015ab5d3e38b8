# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""compress_saved around compiled functions."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import furl_torch
from furl_torch import compress_saved, graph, ops, skip

pytestmark = pytest.mark.skipif(not graph.CAN_TRACE, reason="this torch compiles no hooks")


class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


def transformer():
    net = nn.Sequential(Block(), Block(), nn.Linear(64, 512))

    def loss(x, target):
        return F.cross_entropy(net(x).flatten(0, 1), target.flatten())

    return net, loss, lambda n: (torch.randn(n, 32, 64), torch.randint(512, (n, 32)))


def images():
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 256, 10))

    def loss(x, target):
        return F.cross_entropy(net(x), target)

    return net, loss, lambda n: (torch.randn(n, 3, 32, 32), torch.randint(10, (n, )))


def bytes_saved(loss):
    """By compiled graphs, but for parameters."""
    sizes, seen, nodes = {}, set(), [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for t in getattr(node, "saved_tensors", ()):
            if t is not None and not isinstance(t, nn.Parameter):
                sizes[t.data_ptr()] = t.numel() * t.element_size()
        nodes += [n for n, _ in node.next_functions]
    return sum(sizes.values())


def gradient(net, loss_of, inputs, context):
    net.zero_grad()
    with context:
        loss = loss_of(*inputs)
    kept = bytes_saved(loss)
    loss.backward()
    return torch.cat([p.grad.flatten() for p in net.parameters()]), kept


@pytest.mark.parametrize("make, dynamic", [(transformer, True), (images, True), (images, False)])  # means: static ones
def test_gradients_and_bytes_are_those_of_eager(make, dynamic):
    torch._dynamo.reset()
    net, loss, inputs_of = make()
    compiled = torch.compile(loss, backend="aot_eager", dynamic=dynamic)
    context = compress_saved()
    for num_rows in (8, 4, 6) if dynamic else (8, ):
        inputs = inputs_of(num_rows)
        exact, before = gradient(net, compiled, inputs, skip())
        first, after = gradient(net, compiled, inputs, context)
        second, _ = gradient(net, compiled, inputs, context)
        gradient(net, loss, inputs, context)  # in eager mode
        assert before / after > 0.8 * context.stats().total.ratio
        assert not torch.equal(first, second)  # noise is fresh
        mean = torch.stack([gradient(net, compiled, inputs, context)[0] for _ in range(6)]).mean(0)
        assert 0.95 < mean @ exact / (exact @ exact) < 1.05
        assert first.norm() < 1.4 * exact.norm()
    assert context.live.now == 0 and not context._recipes
    assert torch.equal(gradient(net, compiled, inputs, skip())[0], exact)  # exact again outside


def test_each_context_has_its_own_graphs():
    torch._dynamo.reset()
    net, loss, inputs_of = images()
    inputs, compiled = inputs_of(8), torch.compile(loss, backend="aot_eager")
    exact, _ = gradient(net, compiled, inputs, skip())
    errors = [(gradient(net, compiled, inputs, compress_saved(bits))[0] - exact).norm() for bits in (2, 4, 8)]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_seed_repeats_the_noise_of_graphs():
    torch._dynamo.reset()
    net, loss, inputs_of = images()
    inputs, compiled, context = inputs_of(8), torch.compile(loss, backend="aot_eager"), compress_saved()
    gradients = []
    for _ in range(2):
        furl_torch.manual_seed(5)
        gradients.append(gradient(net, compiled, inputs, context)[0])
    assert torch.equal(*gradients)


def test_steps_do_not_compile_again():
    torch._dynamo.reset()
    net, loss, inputs_of = images()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled, context = torch.compile(loss, backend=counter), compress_saved()
    for _ in range(12):
        gradient(net, compiled, inputs_of(8), context)
    assert counter.frame_count == 1


@pytest.mark.parametrize("bits", [1, 2, 5])
@pytest.mark.parametrize("shape, window", [((1, ), []), ((1025, ), []), ((3, 7, 100), []),
                                           ((2, 3, 17, 20), [1, 1, 8, 8])])
def test_fakes_have_the_sizes_of_blobs(bits, shape, window):
    from torch._subclasses.fake_tensor import FakeTensorMode

    for group in (32, 256, 1024):
        blob = ops.graph_pack(torch.randn(shape), bits, window, group)
        with FakeTensorMode() as mode:
            fake = ops.graph_pack(torch.randn(shape), bits, window, group)
            codes = ops.graph_pack(torch.zeros(shape, dtype=torch.uint8), bits, [], 32)
        assert blob.shape == fake.shape
        assert codes.shape == ops.pack(torch.zeros(shape, dtype=torch.uint8), bits).shape
        del mode


def test_operators_pass_the_checks_of_torch():
    x = torch.randn(2, 3, 17, 20)
    for operator, arguments in (
            (ops.graph_pack, (x > 0, 1, [], 32)), (ops.graph_pack, (x, -1, [], 32)),
            (ops.graph_unpack, (ops.graph_pack(x, 2, [], 64), x.shape, x.stride(), x.dtype, 2, [], 64))):
        torch.library.opcheck(operator, arguments)


def test_what_compiled_functions_save_passes_where_hooks_cannot_be_compiled(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(graph, "CAN_TRACE", False)
    net, loss, inputs_of = images()
    inputs, compiled, context = inputs_of(8), torch.compile(loss, backend="aot_eager"), compress_saved()
    with pytest.warns(UserWarning, match="has not compiled the hooks"):
        first, _ = gradient(net, compiled, inputs, context)
    exact, _ = gradient(net, compiled, inputs, skip())
    torch.testing.assert_close(gradient(net, compiled, inputs, context)[0], exact)
    torch.testing.assert_close(first, exact)


@pytest.mark.parametrize("f", [
    lambda x: torch.where(x > 0, x.sin(), x * x), lambda x: F.threshold(x, 2.0, 0.5), lambda x: x.amax(1),
    lambda x: F.layer_norm(x, (64, )), lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))])
@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_what_reads_a_tensor_decides(f, backend):
    torch._dynamo.reset()
    leaf = (torch.randn(2048, 64) * torch.linspace(0.1, 5, 2048)[:, None]).requires_grad_()
    weight = torch.randn_like(f(leaf))
    exact = torch.autograd.grad((f(leaf * 1) * weight).sum(), leaf)[0]
    with compress_saved(bits=8):
        y = torch.compile(lambda x: (f(x * 1) * weight).sum(), backend=backend)(leaf)
    assert (torch.autograd.grad(y, leaf)[0] - exact).norm() < 0.1 * exact.norm()


def test_one_symbol_for_two_sizes_and_scalars():
    torch._dynamo.reset()
    x = torch.randn(64, 48, requires_grad=True)
    f = torch.compile(lambda x: (x @ x.transpose(-1, -2)).sin() * (x.sum().sin() * x.mean().exp()).tanh(),
                      backend="aot_eager", dynamic=True)
    with compress_saved(bits=8, min_elements=1):
        y = f(x)
    assert torch.autograd.grad(y.sum(), x)[0].isfinite().all()
