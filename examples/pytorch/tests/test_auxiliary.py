# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Layers that keep a stand-in in place of their input."""

import copy
import pickle
import weakref
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import furl_torch
from furl_torch import auxiliary
from furl_torch.auxiliary import AuxConv2d, AuxLinear, Residual, Run, Signs
from furl_torch.stand_ins import PART
from support import TORCH

DTYPES = [torch.float32, torch.bfloat16, torch.float64]
CONVOLUTIONS = [{}, {"stride": 2, "padding": 1}, {"padding": "same"}, {"groups": 2, "dilation": (1, 2)},
                {"bias": False, "stride": (1, 2), "padding": (0, 1)}]


def signs(x, negative):
    return (x > 0).to(x.dtype) * (2 if negative else 1) - (1 if negative else 0)


def saved_bytes(f, **codec):
    """What autograd keeps of f(); without a codec, as it is."""
    context = furl_torch.compress_saved(**codec)
    with context, nullcontext() if codec else furl_torch.skip():
        y = f()
    return context.stats().total.bytes_after, y


def gradients_of(product, total, a, layer, g):
    """Of total, where the weight learns from a: the product of total for its input, that of a for its weight."""
    total = total.detach().requires_grad_()
    of_input, = torch.autograd.grad(product(total), total, g)
    return [of_input, *torch.autograd.grad(product(a), list(layer.parameters()), g)]


def check_signs(layer, product, x, negative):
    x = x.detach().requires_grad_()
    total = (x + PART * signs(x, negative)).detach()
    y = layer(x)
    g = torch.randn_like(y)
    near = {"rtol": 2e-2, "atol": 1e-1} if x.dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(y, product(total), **near)
    ours = torch.autograd.grad(y, [x, *layer.parameters()], g)
    for of_ours, of_torch in zip(ours, gradients_of(product, total, signs(x.detach(), negative), layer, g)):
        torch.testing.assert_close(of_ours, of_torch, **near)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize("shape", [(33, ), (0, 33), (7, 33), (2, 5, 33)])
def test_linear_learns_from_signs(shape, negative, dtype):
    layer = AuxLinear(33, 12, stand_in=Signs(negative), dtype=dtype)
    check_signs(layer, lambda t: F.linear(t, layer.weight, layer.bias), torch.randn(shape, dtype=dtype), negative)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("settings", CONVOLUTIONS)
def test_convolution_learns_from_signs(settings, dtype):
    layer = AuxConv2d(4, 6, 3, **settings, stand_in=Signs(False), dtype=dtype)
    how = layer.stride, layer.padding, layer.dilation, layer.groups
    x = torch.randn(3, 4, 9, 7, dtype=dtype)
    try:
        F.conv2d(x, layer.weight, layer.bias, *how).sum().backward()
    except RuntimeError as lacks:
        pytest.skip(f"this torch cannot: {lacks}")
    check_signs(layer, lambda t: F.conv2d(t, layer.weight, layer.bias, *how), x, False)
    torch.testing.assert_close(layer(x[0]), layer(x)[0], rtol=1e-2, atol=1e-2)


def test_inputs_in_another_order_of_memory():
    linear = AuxLinear(33, 12)
    for x in (torch.randn(33, 7).t(), torch.randn(7, 66)[:, ::2], torch.randn(1, 33).expand(7, 33)):
        check_signs(linear, lambda t: F.linear(t, linear.weight, linear.bias), x, True)
    conv = AuxConv2d(4, 6, 3)
    images = torch.randn(2, 4, 9, 7)
    for x in (images.contiguous(memory_format=torch.channels_last), torch.randn(4, 2, 9, 7).transpose(0, 1)):
        check_signs(conv, lambda t: F.conv2d(t, conv.weight, conv.bias), x, True)


@pytest.mark.parametrize("codec", [{}, {"bits": 2}])
def test_one_bit_per_element_is_kept_inside_and_outside_of_contexts(codec):
    layer = AuxLinear(64, 8)
    x = torch.randn(256, 64, requires_grad=True)
    num_bytes, y = saved_bytes(lambda: layer(x + 0), **codec)
    assert num_bytes == 256 * 64 // 8
    g = torch.randn_like(y)
    of_weight, = torch.autograd.grad(y, layer.weight, g)
    torch.testing.assert_close(of_weight, g.t() @ signs(x.detach(), True), rtol=1e-4, atol=1e-4)


def run_of(length, make=lambda stand_in: AuxLinear(64, 64, stand_in=stand_in)):
    run = Run(length)
    return nn.Sequential(*[make(Residual(run, i)) for i in range(length)])


def test_a_run_keeps_one_tensor_and_learns_from_it():
    net = run_of(3)
    x = torch.randn(256, 64, requires_grad=True)
    num_bytes, y = saved_bytes(lambda: net(x + 0))
    assert num_bytes == 256 * 64 * 4
    g = torch.randn_like(y)
    of_input, *of_weights = torch.autograd.grad(y, [x, *(m.weight for m in net)], g)

    inner = [x.detach().requires_grad_()]
    for i, m in enumerate(net):
        inner.append(F.linear(inner[-1] if i == 0 else inner[-1] + inner[0], m.weight, m.bias))
        inner[-1].retain_grad()
    assert torch.equal(y, inner[-1])
    inner[-1].backward(g)
    torch.testing.assert_close(of_input, inner[0].grad)
    for of_weight, output in zip(of_weights, inner[1:]):
        torch.testing.assert_close(of_weight, output.grad.t() @ x.detach())


def test_contexts_compress_the_tensor_of_a_run_once():
    net = run_of(3)
    x = torch.randn(256, 64, requires_grad=True)
    exact = torch.autograd.grad(net(x + 0).square().sum(), list(net.parameters()))
    num_bytes, y = saved_bytes(lambda: net(x + 0), bits=4)
    assert num_bytes < 256 * 64 * 4 / 7
    for ours, theirs in zip(torch.autograd.grad(y.square().sum(), list(net.parameters())), exact):
        assert ((ours - theirs).norm() / theirs.norm()).item() < 0.2


def test_a_layer_that_gets_the_first_input_again_gets_no_sum():
    a, b = run_of(2)
    x = torch.randn(8, 64)
    for on in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=on):
            want = F.linear(x, a.weight, a.bias) + F.linear(x, b.weight, b.bias)
            assert torch.equal(a(x) + b(x), want)


@pytest.mark.parametrize("net", [nn.Sequential(AuxLinear(64, 64)), run_of(2)], ids=["asa", "ara"])
def test_what_needs_no_gradient_keeps_nothing_and_computes_the_same(net):
    x = torch.randn(256, 64, requires_grad=True)
    y = net(x + 0).detach()
    with torch.no_grad():
        assert torch.equal(saved_bytes(lambda: net.eval()(x + 0))[1], y)
    for p in net.parameters():
        p.requires_grad_(False)
    num_bytes, frozen = saved_bytes(lambda: net(x + 0))
    assert num_bytes == 0 and torch.equal(frozen, y)
    assert torch.autograd.grad(frozen.sum(), x)[0].abs().sum() > 0


@pytest.mark.parametrize("net, num_bytes", [(nn.Sequential(AuxLinear(64, 64)), 256 * 8), (run_of(3), 256 * 64 * 2)],
                         ids=["asa", "ara"])
def test_autocast_keeps_no_copy_of_weights(net, num_bytes, device):
    x = torch.randn(256, 64, requires_grad=True)
    exact = torch.autograd.grad(net(x).square().sum(), [x, *net.parameters()])
    with torch.autocast(device, torch.bfloat16):
        kept, y = saved_bytes(lambda: net(x + 0))
    assert y.dtype == torch.bfloat16 and kept == num_bytes
    for ours, theirs in zip(torch.autograd.grad(y.float().square().sum(), [x, *net.parameters()]), exact):
        assert ours.dtype == torch.float32
        assert ((ours - theirs).norm() / theirs.norm()).item() < 0.03


def test_runs_under_checkpoints():
    net = run_of(3)
    x = torch.randn(8, 64, requires_grad=True)
    exact = torch.autograd.grad(net(x).sum(), list(net.parameters()))
    ours = torch.autograd.grad(checkpoint(net, x, use_reentrant=False).sum(), list(net.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(ours, exact))
    y = checkpoint(nn.Sequential(net[1], net[2]), net[0](x), use_reentrant=False)
    with pytest.raises(RuntimeError, match="layer 1 of a run .* layer 0 had None"):
        y.sum().backward()


def test_a_run_wants_one_shape():
    a, b = run_of(2)
    a(torch.randn(4, 64))
    with pytest.raises(RuntimeError, match=r"layer 1 of a run .* \[5, 64\], and layer 0 had \[4, 64\]"):
        b(torch.randn(5, 64))


class SomeLayers(nn.Sequential):
    """Leaves out those layers that it is told to."""

    def forward(self, x, *left_out):
        for i, layer in enumerate(self):
            x = x if i in left_out else layer(x)
        return x


@pytest.mark.parametrize("is_copy", [False, True])
def test_a_pass_without_the_last_layer_of_a_run_leaves_nothing_for_the_next(is_copy):
    net = SomeLayers(*[nn.Linear(64, 64) for _ in range(3)])
    x = torch.randn(8, 64)
    assert auxiliary.convert(net, "ara", x, names="*") == 3
    if is_copy:
        net = pickle.loads(pickle.dumps(copy.deepcopy(net)))
    y = net(x * 1, 2)
    torch.testing.assert_close(y, F.linear(net[0](x) + x, net[1].weight, net[1].bias))
    y.sum().backward()
    net[0](x * 1)  # outside of a pass: nobody ends it
    for graph in (torch.enable_grad, torch.no_grad):
        with graph(), pytest.raises(RuntimeError, match="layer 1 of a run .* layer 0 had None"):
            net(x * 1, 0)
    given = x * 1
    dies = weakref.ref(given)
    net(given, 2)
    del given
    assert dies() is None


@pytest.mark.host_only
def test_copies_of_a_run_are_runs():
    net = run_of(2)
    x = torch.randn(4, 64)
    net[0](x)  # begins
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other[0].stand_in.run is other[1].stand_in.run is not net[0].stand_in.run
        assert other[0].stand_in.run.value is None
        assert torch.equal(other(x), net(x))


@pytest.mark.host_only
def test_padding_that_is_not_zeros_is_refused():
    for settings in ({"padding": 1, "padding_mode": "reflect"}, {"padding": "same", "kernel_size": 2}):
        with pytest.raises(ValueError, match="padding is"):
            AuxConv2d(4, 4, **{"kernel_size": 3, **settings})


def images_net():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(8, 8, 3, padding=1), nn.Flatten(), nn.Linear(8 * 64, 32), nn.Tanh(),
                         nn.Linear(32, 4))


def test_convert_leaves_the_first_layer_and_the_last():
    net = images_net()
    names = [name for name, _ in net.named_parameters()]
    x = torch.randn(4, 1, 8, 8)
    assert auxiliary.convert(net, "asa", x) == 3
    assert [type(m) for m in net if type(m) in (nn.Linear, AuxLinear, nn.Conv2d, AuxConv2d)] == [
        nn.Conv2d, AuxConv2d, AuxConv2d, AuxLinear, nn.Linear]
    assert [name for name, _ in net.named_parameters()] == names and net.training
    assert net[2].stand_in == Signs(negative=False)  # behind a ReLU
    assert net[6].stand_in == Signs(negative=True)
    assert auxiliary.convert(net, "asa", x, names="8") == 1 and type(net[8]) is AuxLinear


def test_convert_finds_runs_of_one_shape():
    net = images_net()
    assert auxiliary.convert(net, "ara", torch.randn(4, 1, 8, 8)) == 2
    assert net[2].stand_in.run is net[4].stand_in.run
    net(torch.randn(5, 1, 8, 8)).sum().backward()
    assert auxiliary.convert(nn.Sequential(*[nn.Linear(8, 8) for _ in range(9)]), "ara", torch.randn(2, 8),
                             run_length=2) == 6


def test_convert_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="kind is 'aba'"):
        auxiliary.convert(images_net(), "aba", torch.randn(4, 1, 8, 8))
    with pytest.raises(ValueError, match="run_length is 1"):
        auxiliary.convert(images_net(), "ara", torch.randn(4, 1, 8, 8), run_length=1)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_layers_of_torchs_transformer_are_called_in_evaluation_too():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True), 2)
    x = torch.randn(3, 5, 32)
    before = net(x)
    assert auxiliary.convert(net, "asa", x, names=["*"]) == 4
    y = net(x)
    assert not torch.allclose(y, before, atol=1e-3)
    with torch.no_grad():
        torch.testing.assert_close(net.eval()(x), y.detach())


def test_a_refused_conversion_changes_nothing_and_calls_by_keyword_stay():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x):
            return self.layers[3](self.layers[2](input=self.layers[1](self.layers[0](x))))

    encoder = nn.TransformerEncoderLayer(32, 2, 64)
    before = encoder.activation_relu_or_gelu
    with pytest.raises(ValueError, match="inputs is empty"):
        auxiliary.convert(encoder, "asa")
    with pytest.raises((RuntimeError, AssertionError)):
        auxiliary.convert(encoder, "asa", torch.randn(3, 5, 31))
    assert encoder.activation_relu_or_gelu == before != 0
    net = Named()
    assert auxiliary.convert(net, "asa", torch.randn(4, 8)) == 1 and type(net.layers[1]) is AuxLinear


def test_learning_indicators():
    net = images_net()
    x = torch.randn(4, 1, 8, 8)
    auxiliary.convert(net, "ara", x)
    with auxiliary.learning_indicators(net) as found:
        net(x)
    first = F.relu(net[0](x))
    total = F.relu(F.conv2d(first, net[2].weight, net[2].bias, padding=1)) + first
    assert found["2"] == 1.0
    assert found["4"] == pytest.approx(1 - ((total - first).norm() / total.norm()).item() ** 2, rel=1e-4)
    found.clear()
    net(x)
    assert not found


@pytest.mark.parametrize("kind", ["asa", "ara"])
def test_converted_nets_learn(kind):
    net = images_net()
    x = torch.randn(64, 1, 8, 8)
    target = x.flatten(1)[:, :4].argmax(1)
    assert auxiliary.convert(net, kind, x) > 0
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.3


@pytest.mark.skipif(TORCH < (2, 2), reason="the compiler of torch up to 2.1 does not compare tensors by 'is'")
@pytest.mark.parametrize("kind", ["asa", "ara"])
def test_compiled(kind):
    if kind == "ara" and TORCH < (2, 5):
        pytest.skip("the compiler of torch up to 2.4 cannot follow runs, which belong to a thread")
    net = images_net()
    x = torch.randn(4, 1, 8, 8)
    auxiliary.convert(net, kind, x)
    exact = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    torch._dynamo.reset()
    y = torch.compile(net, backend="aot_eager", fullgraph=True)(x)
    for ours, theirs in zip(torch.autograd.grad(y.square().sum(), list(net.parameters())), exact):
        torch.testing.assert_close(ours, theirs)
