# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Fused attention, whose output and log-sums are computed again: gradients that were infinite or wrong."""

from importlib import import_module

import pytest
import torch
from torch.nn import functional as F

from furl_torch import compress_saved, ops, skip
from furl_torch.attention import OPERATORS, Calls, call_fused
from furl_torch.policy import OUTPUT
from support import TORCH, values

if not hasattr(F, "scaled_dot_product_attention"):
    pytest.skip("torch 1 has no fused attention", allow_module_level=True)

ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"  # a GPU has others
of_the_cpu = pytest.mark.skipif(not hasattr(torch.ops.aten, ATTENTION[6:]), reason="this torch has another on the CPU")


def inputs():
    return [torch.randn(2, 64, 4, 64) for _ in range(3)]


def attention(q, k, v, **settings):
    """Of tokens whose heads lie side by side, as layers make them."""
    y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), **settings)
    return y.transpose(1, 2)


def errors(q, k, v, context, **settings):
    """Of the gradients of q, k and v, over their norms."""
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    weight = torch.randn(2, 64, 4, 64)
    gradients = []
    for c in (skip(), context):
        with c:
            loss = (attention(*(x * 1 for x in leaves), **settings) * weight).sum()
        gradients.append(torch.autograd.grad(loss, leaves))
    return [float((g - exact).norm() / exact.norm()) for exact, g in zip(*gradients)]


def large_logits(q, k, v):
    q *= 8  # a deviation of 8


def loud_token(q, k, v):
    for x in (q, k, v):
        x[:, 5] *= 50


def sink(q, k, v):
    """All look at one token, whose v is next to nothing."""
    q += 2
    k[:, 0] = 1
    v[:, 0] *= 0.02


def outlier_channels(q, k, v):
    k[..., :6] += 20
    v[..., :6] *= 10


@pytest.mark.skipif(TORCH < (2, 1), reason="torch 2.0 writes attention out on the CPU")
@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("change", [large_logits, loud_token, sink, outlier_channels])
def test_no_case_is_much_worse_than_the_ordinary_one(change, causal, bits):
    x = inputs()
    ordinary = max(errors(*x, compress_saved(bits), is_causal=causal))
    assert ordinary < 0.4
    change(*x)
    assert max(errors(*x, compress_saved(bits), is_causal=causal)) < 4 * ordinary


@of_the_cpu
@pytest.mark.host_only
@pytest.mark.parametrize("settings", [{}, {"is_causal": True}, {"scale": 0.5}, {"attn_mask": torch.randn(64, 64)},
                                      {"attn_mask": torch.rand(64, 64) > 0.5}])
def test_results_are_those_of_the_restored_inputs(settings):
    q, k, v = inputs()
    with compress_saved():
        y = attention(*(x.requires_grad_() * 1 for x in (q, k, v)), **settings)
    node = y.grad_fn.next_functions[0][0]
    output, sums = node._saved_output.detach(), node._saved_logsumexp  # in the other order than the backward pass
    restored = [x.detach() for x in (node._saved_query, node._saved_key, node._saved_value)]
    assert not torch.equal(restored[0], q.transpose(1, 2))
    again, again_sums = getattr(torch.ops.aten, ATTENTION[6:])(
        *restored, 0.0, node._saved_is_causal, attn_mask=node._saved_attn_mask, scale=node._saved_scale)
    assert torch.equal(output, again) and torch.equal(sums, again_sums)
    assert output.stride() == again.stride()
    y.sum().backward(retain_graph=True)
    first = q.grad.clone()
    y.sum().backward()
    assert torch.equal(q.grad, 2 * first)


@pytest.mark.parametrize("places", [(0, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0)])
def test_one_tensor_may_be_two_arguments(places):
    leaf = torch.randn(2, 4, 64, 64, requires_grad=True)
    different = [leaf * 1, leaf.flip(0)]
    gradients = []
    for context in (skip(), compress_saved(8)):
        with context:
            y = F.scaled_dot_product_attention(*(different[i] for i in places))
        gradients.append(torch.autograd.grad(y.sin().sum(), leaf, retain_graph=True)[0])
    assert (gradients[1] - gradients[0]).norm() < 0.1 * gradients[0].norm()


@of_the_cpu
@pytest.mark.host_only
def test_each_argument_is_kept_by_its_place():
    q, k, v = (values(1, 2, 64, 64) for _ in range(3))
    context = compress_saved()
    with context:
        y = F.scaled_dot_product_attention(q, k, v)
    bits = 6 + 6 + 3  # and a scale for each head vector; neither output nor log-sums
    assert context.live.now == context.stats().compressed.bytes_after == 8192 // 8 * bits + 3 * 8192 // 64 * 4
    assert context.stats().compressed.num_tensors == 5
    with context:
        z = y.exp()
    assert context.live.now > 8192 // 8 * (bits + 2)
    (y.sum() + z.sum()).backward()


@of_the_cpu
@pytest.mark.host_only
def test_a_call_that_fails_leaves_nothing_to_the_next():
    context = compress_saved()
    with context:
        with pytest.raises(RuntimeError):
            getattr(torch.ops.aten, ATTENTION[6:])(*(values(1, 2, 64, n) for n in (64, 64, 32)))
        x = inputs()
        assert max(errors(*x, context=skip())) == 0
    assert max(errors(*x, context)) < 0.4


@of_the_cpu
@pytest.mark.host_only
def test_an_override_takes_the_place_of_all_this():
    q, k, v = (values(1, 2, 64, 64) for _ in range(3))
    context = compress_saved(overrides={ATTENTION: 8})
    with context:
        y = F.scaled_dot_product_attention(q, k, v)
    assert context.live.now >= 4 * 8192
    node = y.grad_fn
    assert (node._saved_output - y).abs().max() < 0.02
    with compress_saved(overrides={ATTENTION: None}):
        y = F.scaled_dot_product_attention(q, k, v)
    assert torch.equal(y.grad_fn._saved_output, y)


def meta_attention(name, dropout):
    """On the meta device."""
    import_module("torch._meta_registrations")
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, "Meta"):
        pytest.skip("this torch has its shapes for fake tensors alone")
    q = torch.randn(1, 2, 64, 64, device="meta", requires_grad=True)
    return call_fused(name, (q, q, q), None, dropout, False, None)[0]


OF_GPUS = [name for name in OPERATORS if "for_cpu" not in name and hasattr(torch.ops.aten, name)]


@pytest.mark.host_only
@pytest.mark.skipif(TORCH < (2, 1), reason="torch 2.0 has no dropout there on meta tensors")
@pytest.mark.parametrize("name", OF_GPUS)
def test_calls_with_dropout_have_a_name_of_their_own(name):
    seen = []

    class Watching(compress_saved):
        def _pack(self, x):
            seen.append(ops.consumers(x)[0][0])
            return super()._pack(x)

    for dropout in (0.0, 0.5):
        with Watching():
            meta_attention(name, dropout)
    assert set(seen) == {"aten::" + name, "aten::attention with kept results"}


@pytest.mark.host_only
@pytest.mark.parametrize("name", OF_GPUS)
def test_all_operators_are_called_again(name):
    with compress_saved():
        y = meta_attention(name, 0.0)
    output = [x for x in dir(y.grad_fn) if x in ("_saved_output", "_saved_ouput", "_saved_result0")]  # by version
    assert getattr(y.grad_fn, output[0]).shape == y.shape


class Exact:
    """Stands for what is kept of a tensor."""

    saved = None

    def __init__(self, x):
        self.x = x

    def restore(self):
        return self.x


def kept(x=None):
    return lambda: Exact(x)


@of_the_cpu
@pytest.mark.host_only
@pytest.mark.parametrize("order", [
    ("output", "log_sums"), ("log_sums", "seed", "output"), ("output", "log_sums", "seed")])
def test_results_may_be_saved_in_any_order(order):
    calls = Calls()
    for _ in range(2):
        qkv = [torch.randn(1, 2, 64, 64, requires_grad=True) for _ in range(3)]
        operator = getattr(torch.ops.aten, ATTENTION[len("aten::"):])
        results = dict(zip(("output", "log_sums"), operator(*qkv, 0.0, True)), seed=torch.zeros(2, dtype=torch.int64))
        for place, x in enumerate(qkv):
            calls.noted(kept(x), x, ATTENTION, place)
        saved = {name: calls.noted(kept(), results[name], ATTENTION, OUTPUT) for name in order}
        for name in ("output", "log_sums"):
            assert torch.equal(saved[name].call.result(saved[name].which), results[name])


@of_the_cpu
@pytest.mark.host_only
def test_a_call_that_is_half_saved_does_not_spoil_the_next():
    calls = Calls()
    qkv = [torch.randn(1, 2, 64, 64, requires_grad=True) for _ in range(3)]

    def fail():
        raise MemoryError

    calls.noted(kept(qkv[1]), qkv[1], ATTENTION, 0)
    with pytest.raises(MemoryError):
        calls.noted(fail, qkv[1], ATTENTION, 1)
    operator = getattr(torch.ops.aten, ATTENTION[len("aten::"):])
    output, _ = operator(*qkv, 0.0, False)
    for place, x in enumerate(qkv):
        calls.noted(kept(x), x, ATTENTION, place)
    saved = calls.noted(kept(), output, ATTENTION, OUTPUT)
    assert torch.equal(saved.call.result(saved.which), output)
