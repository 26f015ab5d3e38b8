# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: what is kept, that the second run is the first one again, and how well gradients come out."""

import contextlib
import gc

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import furl_torch
from furl_torch import Codec, checkpoint, compress_saved, skip
from furl_torch.examine import allocated, kept_by
from furl_torch.subjects import Wanted, subject_of
from support import values

WIDTH = 128


class Block(nn.Module):
    """Of a transformer, before whose parts tokens are normalised."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.dropout = dropout

    def forward(self, x, mask=None):
        q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        weights = q @ k.transpose(-1, -2) / 8
        if mask is not None:
            weights = weights.masked_fill(mask, -1e9)
        y = (weights.softmax(-1) @ v).transpose(1, 2).flatten(-2)
        x = x + F.dropout(self.out(y), self.dropout)
        return x + self.mlp(furl_torch.functional.dropout(self.norms[1](x), self.dropout))


def run(blocks, x, context, call, **settings):
    """The gradient of all parameters and of x, and the bytes that are kept after the forward pass and at most."""
    blocks.zero_grad()
    torch.manual_seed(3)
    furl_torch.manual_seed(3)
    leaf = x.clone().requires_grad_()
    with context:
        y = leaf * 1
        for block in blocks:
            y = call(block, y, **settings)
        loss = y.square().mean()
    live = getattr(context, "live", None)
    kept = live.now if live else None
    loss.backward()
    gradient = torch.cat([leaf.grad.flatten(), *(p.grad.flatten() for p in blocks.parameters())])
    return gradient, kept, live.backward_peak if live else None


def directly(block, *args, **kwargs):
    return block(*args, **kwargs)


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_without_compression_the_gradient_is_exact(dropout):
    blocks, x = nn.ModuleList(Block(dropout) for _ in range(3)), torch.randn(2, 16, WIDTH)
    mask = torch.ones(16, 16, dtype=torch.bool).triu(1)
    exact, _, _ = run(blocks, x, contextlib.nullcontext(), directly, mask=mask)
    again, kept, _ = run(blocks, x, compress_saved(min_elements=10**9), checkpoint, mask=mask)
    assert torch.equal(again, exact)
    assert kept >= 3 * x.numel() * 4


def test_inputs_are_kept_in_8_bits_and_what_runs_again_is_compressed():
    blocks, x = nn.ModuleList(Block() for _ in range(6)), torch.randn(4, 64, WIDTH)
    exact, _, _ = run(blocks, x, contextlib.nullcontext(), directly)
    plain, context = compress_saved(), compress_saved()
    folded, kept_plain, _ = run(blocks, x, plain, directly)
    gradient, kept, peak = run(blocks, x, context, checkpoint)
    boundary = x.numel() * (1 + 4 / 128)  # codes, and a minimum and a step for each token
    assert kept <= 6 * boundary + x.numel() * 4  # and the square's input
    assert kept < kept_plain / 2
    # One region is there again, with what the backward pass reads: much less than a block that is not compressed.
    one_block = 30 * x.numel() * 4
    assert peak < kept + one_block / 2
    for g, least in ((folded, 0.9), (gradient, 0.9)):
        assert F.cosine_similarity(g, exact, 0) > least
    assert abs(gradient @ exact / (exact @ exact) - 1) < 0.05
    del blocks, gradient
    gc.collect()
    assert context.live.now == 0


def test_what_ran_again_is_not_kept_for_another_backward_pass():
    block, context = Block(), compress_saved()
    with context:
        loss = checkpoint(block, values(4, 64, WIDTH)).sum()
    kept = context.live.now
    for _ in range(2):
        loss.backward(retain_graph=True)
        assert context.live.now == kept


def test_bits_of_inputs_can_be_chosen():
    block, x = Block(), torch.randn(4, 64, WIDTH)
    kept = {}
    for name, codec in (("8", Codec(8, 1, 128)), ("4", Codec(4, 1, 128)), ("none", None)):
        context = compress_saved(overrides={} if name == "8" else {"furl::checkpoint": codec})
        with context:
            checkpoint(block, x.clone().requires_grad_() + 0)
        gc.collect()
        with context:
            y = checkpoint(block, x.clone().requires_grad_() + 0)
        kept[name] = context.live.now
        del y
    assert kept == {"8": x.numel() + 256 * 4, "4": x.numel() // 2 + 256 * 4, "none": x.numel() * 4}


def test_one_input_of_many_calls_is_kept_once():
    blocks, x, memory = [Block() for _ in range(3)], values(2, 64, WIDTH), values(2, 64, WIDTH)
    context = compress_saved()
    with context:
        outputs = [checkpoint(lambda t, m, b=b: b(t) + b(m), x, m=memory) for b in blocks]
    assert context.stats().total.num_tensors == 2
    sum(y.sum() for y in outputs).backward()
    del outputs
    assert context.live.now == 0


def test_calls_inside_calls_and_other_ways_to_differentiate():
    inner, x = Block(0.3), torch.randn(2, 16, WIDTH)
    blocks = nn.ModuleList([inner])

    def nested(block, t):
        return checkpoint(lambda u: checkpoint(block, checkpoint(block, u)), t)

    def twice(block, t):
        return block(block(t))

    exact, _, _ = run(blocks, x, contextlib.nullcontext(), twice)
    again, _, _ = run(blocks, x, compress_saved(min_elements=10**9), nested)
    assert torch.equal(again, exact)

    weight = torch.randn(WIDTH, 8, requires_grad=True)
    with skip():
        y = checkpoint(lambda t, pair: (t @ pair["w"]).tanh() * pair["scale"], x, {"w": weight, "scale": 2.0})
    g, = torch.autograd.grad(y.sum(), weight, retain_graph=True)
    h, = torch.autograd.grad(y.sum(), weight, create_graph=True)
    assert torch.equal(g, h)
    expected, = torch.autograd.grad(((x @ weight).tanh() * 2).sum(), weight, create_graph=True)
    torch.testing.assert_close(h, expected)
    second, = torch.autograd.grad(h.square().sum(), weight)
    torch.testing.assert_close(second, torch.autograd.grad(expected.square().sum(), weight)[0])


def test_autocast_and_settings_of_the_context_are_those_of_the_first_run(device):
    layer, x = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Sigmoid(), nn.Linear(WIDTH, WIDTH)), values(64, WIDTH)
    seen = []
    layer[1].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    context = compress_saved(model=nn.ModuleDict({"a": layer}), overrides={"a.2": None})
    furl_torch.manual_seed(1)
    with context, torch.autocast(device, dtype=torch.bfloat16):
        y = checkpoint(layer, x)
    y.float().sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]
    gradient = layer[2].weight.grad.clone()
    assert torch.equal(gradient, checked_gradient(layer, x, device))


def checked_gradient(layer, x, device):
    """Of the last weight, whose input is kept as it is, from an input in 8 bits."""
    furl_torch.manual_seed(1)
    kept = compress_saved().keep(x, "furl::checkpoint").restore()
    layer.zero_grad()
    with torch.autocast(device, dtype=torch.bfloat16):
        layer(kept.requires_grad_()).float().sum().backward()
    return layer[2].weight.grad


def test_modules_outside_the_call_count_in_the_second_run():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            return checkpoint(lambda t: self.inner(t).sin().sum(), x)

    outer, leaf = Outer(), torch.randn(64, WIDTH, requires_grad=True)
    with compress_saved(overrides={Outer: None}):  # nothing is lost
        y = outer(leaf * 1)
    y.backward()
    g = outer.inner.weight.grad.clone()
    outer.zero_grad()
    outer(leaf * 1).backward()
    assert not torch.equal(g, outer.inner.weight.grad)  # without a context, the input has 8 bits
    outer.zero_grad()
    with skip():
        outer(leaf * 1).backward()
    assert torch.equal(g, outer.inner.weight.grad)


def test_refusals():
    counter = iter(range(10))
    y = checkpoint(lambda t: t.sin().cos() if next(counter) else t.sin(), values(64, WIDTH))
    with pytest.raises(RuntimeError, match="saved 1 tensors at first and 2 when it was run again"):
        y.sum().backward()
    with pytest.raises(ValueError, match="no layers with checkpoints"):
        furl_torch.checkpoint_layers(nn.Linear(2, 2))
    with torch.no_grad():
        assert not checkpoint(torch.sin, values(64)).requires_grad


def test_a_second_run_of_other_shapes_is_refused():
    def route(t):
        return t[t > 0.5].square().sum()  # in 8 bits some are on the other side

    x = values(64, WIDTH)
    y = checkpoint(route, x)
    with pytest.raises(RuntimeError, match=r"saved as tensor \d torch.float32 \[\d+\] at first and torch"):
        y.backward()
    with compress_saved(overrides={"furl::checkpoint": None}):
        y = checkpoint(route, x)
    y.backward()


@pytest.mark.parametrize("on", [False, True])
def test_parameters_modified_in_between_are_noticed(on, device):
    layer, leaf = nn.Linear(WIDTH, WIDTH), torch.randn(WIDTH, requires_grad=True)
    for modified in (layer.weight, leaf):
        with torch.autocast(device, dtype=torch.bfloat16, enabled=on):
            y = checkpoint(lambda t, s: layer(t) + s, values(64, WIDTH), leaf)
        with torch.no_grad():
            modified.mul_(2)
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version"):
            y.sum().backward()


def test_an_input_that_is_given_twice_is_one():
    found = []

    def both(a, b):
        b += 1
        found.append(bool((a == b).all()))
        return (a * a).sum()

    given = values(64, WIDTH)
    checkpoint(both, given, given).backward()
    assert found == [True, True]


def test_inputs_go_to_host_memory():
    blocks, x = nn.ModuleList(Block() for _ in range(6)), torch.randn(4, 64, WIDTH)
    here, context = compress_saved(), compress_saved(offload=True)
    exact, kept_here, _ = run(blocks, x, here, checkpoint)
    gradient, kept, _ = run(blocks, x, context, checkpoint)
    assert torch.equal(exact, gradient)
    assert kept < kept_here
    assert context.live.on_host == 0 and context.live.now == 0


@pytest.mark.host_only
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_models_of_transformers(name):
    transformers = pytest.importorskip("transformers")
    sizes = ({"n_layer": 4, "n_embd": 128, "n_head": 2} if name == "gpt2" else
             {"num_hidden_layers": 4, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2,
              "num_key_value_heads": 2})
    config = transformers.AutoConfig.for_model(name, vocab_size=500, use_cache=False, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config).train()
    tokens = torch.randint(500, (2, 64))

    def step(context):
        model.zero_grad()
        torch.manual_seed(0)
        with context:
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    exact = step(contextlib.nullcontext())
    model.gradient_checkpointing_enable({"use_reentrant": False})
    assert furl_torch.checkpoint_layers(model) == 5  # 4, and the model that has them
    torch.testing.assert_close(step(compress_saved(min_elements=10**9)), exact)
    context = compress_saved(8)
    assert F.cosine_similarity(step(context), exact, 0) > 0.999
    inputs = 4 * (2 * 64 * 128 + 128 * 8)
    assert inputs < context.stats().total.bytes_after < inputs + 700_000  # what the head and the loss save


@pytest.mark.host_only
@pytest.mark.skipif(not allocated(torch.device("cpu")), reason="the C library does not count what is allocated")
@pytest.mark.parametrize("checkpoints", [False, True])
def test_what_lora_keeps_is_counted(checkpoints):
    pytest.importorskip("transformers")
    peft = pytest.importorskip("peft")
    settings = {"num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 688, "num_attention_heads": 4,
                "num_key_value_heads": 4, "vocab_size": 500}
    model, draw = subject_of("transformers:llama", Wanted(batch=8, length=256, settings=settings))
    lora = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules="all-linear")).train()
    size = 8 * 256 * 256 * 4
    uncounted = 0
    if checkpoints:
        lora.gradient_checkpointing_enable({"use_reentrant": False})
        furl_torch.checkpoint_layers(lora)
        uncounted = size + 2 * 256 * 64 * 4  # the first layer's input, a leaf; sines and cosines, an argument by name
    context = compress_saved(2)
    kept = kept_by(draw(), torch.device("cpu"), context)
    counted = context.stats().total.bytes_after
    # The allocator counts the nodes of the graph, too: 0.1 MB for each layer with its LoRA.
    assert 0 <= kept - counted - uncounted < 2 * 110_000
    assert counted < (5 if checkpoints else 32) * size / 8
