# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Planning without running: the tables of papers, and that steps keep what was planned."""

import math
from collections import defaultdict

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import furl_torch
from furl_torch import Codec, compress_saved
from support import TORCH, small_net

pytestmark = [pytest.mark.host_only,
              pytest.mark.skipif(not hasattr(torch, "func"), reason="torch 1 cannot run models on meta tensors")]
GIB = 2**30


class Bottleneck(nn.Module):
    """Of ResNet-50; a wide one has twice the channels between its first and last convolution."""

    def __init__(self, inputs, width, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.short = nn.Sequential() if inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.main(x) + self.short(x))


def resnet50(wide=1):
    """For ImageNet."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for count, channels, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for i in range(count):
            layers.append(Bottleneck(inputs, wide * channels, 4 * channels, stride if i == 0 else 1))
            inputs = 4 * channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def plan_of(wide, batch, codec):
    with torch.device("meta"):
        return furl_torch.estimate(resnet50(wide), torch.empty(batch, 3, 224, 224), codecs={"codec": codec})


def by_division(x, pair_bits=32):
    """Bits of a tensor: 2 for each value, a mean in bf16 for each cell of 8 x 8, and a pair for each plane."""
    n, c, h, w = x.shape
    k = min(8, h)
    return n * c * (2 * h * w + 16 * (h // k) * (w // k) + pair_bits)


def by_actnn(x, pair_bits=64):
    """Bits of a tensor: 2 for each value, and a pair for each 256 values of an example."""
    n = x.shape[0]
    return n * math.ceil(x.shape[1:].numel() / 256) * (512 + pair_bits)


def of_paper(tensors, bits_of):
    """Bytes of each kind, as DIVISION and ActNN keep them: the images as they are, the input of each convolution and of
    each norm on its own, a mask for each ReLU, a byte for each maximum of the pooling, the head's input as it is."""
    total = defaultdict(float)
    for i, x in enumerate(tensors):
        if i == 0:
            total["images"] = 4 * x.shape.numel()
        elif x.operator in ("aten::convolution", "aten::native_batch_norm") and len(x.shape) == 4:
            total["values"] += bits_of(x) / 8
        elif x.operator == "aten::relu_":
            total["masks"] += x.shape.numel() / 8
        elif x.dtype == torch.int64:
            total["places"] += x.shape.numel()
        elif x.operator == "aten::addmm":
            total["head"] += x.before
    return total


# Bytes that the papers' programs allocate, in GiB: DIVISION's figures, with its measurements of ActNN.
TABLE = [
    (1, 64, 5.14, 0.49, 0.49), (1, 128, 10.25, 0.99, 0.97), (1, 256, 20.48, 1.97, 1.94), (1, 512, None, 3.94, 3.89),
    (2, 64, 6.70, 0.64, 0.62), (2, 128, 13.38, 1.27, 1.25), (2, 256, 26.75, 2.52, 2.49), (2, 512, None, 5.02, 4.97)]


@pytest.mark.parametrize("wide,batch,normal,division,actnn", TABLE)
def test_tables_of_the_papers(wide, batch, normal, division, actnn):
    plan = plan_of(wide, batch, Codec(2, 8, 256))
    before = plan.plans["none"].bytes_saved / GIB
    # Without compression nothing is left to choice. The table has two digits, and at batch 64 it has 0.02 GiB more.
    if normal:
        assert normal - 0.021 <= before <= normal + 0.005
    # By the papers' rules the tensors of the plan take less than the programs allocated by up to 0.9 % and 0.014 GiB,
    # of which 0.005 are the rounding of the table; what the programs allocate besides is not known. ActNN's bytes are
    # those of pairs in f32; with pairs in bf16 they would be 5 % less than the table.
    tensors = plan.plans["codec"].tensors
    for bits_of, published in ((by_division, division), (by_actnn, actnn)):
        ours = sum(of_paper(tensors, bits_of).values()) / GIB
        assert 0 <= published - ours <= 0.009 * published + 0.014


@pytest.mark.parametrize("wide,codec,bits_of,pair_bits,total,published", [
    (1, Codec(2, 8, 256), by_division, 32, 1.762, 1.97), (2, Codec(2, 8, 256), by_division, 32, 2.333, 2.52),
    (1, Codec(2, 1, 256), by_actnn, 32, 1.588, 1.94), (2, Codec(2, 1, 256), by_actnn, 32, 2.102, 2.49)])
def test_why_furl_keeps_less_than_the_papers(wide, codec, bits_of, pair_bits, total, published):
    """At batch 256, with the papers' settings: 11 and 7 % less than DIVISION, 18 and 16 % less than ActNN."""
    plan = plan_of(wide, 256, codec).plans["codec"]
    assert plan.bytes_saved / GIB == pytest.approx(total, abs=0.0005)
    theirs = of_paper(plan.tensors, lambda x: bits_of(x, pair_bits))
    ours, twice, seen = defaultdict(float), 0.0, set()
    for i, x in enumerate(plan.tensors):
        if x.number not in seen:
            ours["images" if i == 0 else "places" if x.dtype == torch.int64 else "others"] += x.after
        elif x.operator == "aten::convolution":
            is_second = any(y.number == x.number and y.operator == x.operator for y in plan.tensors[:i])
            twice += bits_of(x, pair_bits) / 8 if is_second else 0
        seen.add(x.number)
    # The images, in 2 bits, too; the places of maxima, in 4 bits in place of 8.
    assert ours["images"] < 0.075 * theirs["images"]
    assert ours["places"] == pytest.approx(theirs["places"] / 2, rel=0.001)
    # The inputs of the four blocks that two convolutions read, kept once.
    assert twice / GIB == pytest.approx(0.107, abs=0.007)
    # The rest is what the papers keep. ActNN's codec is the same here, but for its pairs in bf16. With means, furl
    # spends 5 % more than DIVISION: planes of 28 x 28 and 14 x 14 have means at their edges, too, and pairs are of 256
    # values.
    rest = ours["others"] / (theirs["values"] + theirs["masks"] + theirs["head"] - twice)
    assert rest == pytest.approx(1.0485 if bits_of is by_division else 0.999, abs=0.001)


class Layer(nn.Module):
    """Of a transformer as Korthikanti et al. count it: attention written out, three dropouts, GELU."""

    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        weights = F.dropout((q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1), 0.1)
        x = x + F.dropout(self.out((weights @ v).transpose(1, 2).flatten(-2)), 0.1)
        return x + F.dropout(self.down(F.gelu(self.up(self.norms[1](x)))), 0.1)


@pytest.mark.parametrize("s,b,h,a", [(2048, 4, 4096, 32), (512, 1, 1024, 16), (8192, 2, 2048, 16)])
def test_a_layer_of_a_transformer_in_16_bits(s, b, h, a):
    with torch.device("meta"):
        layer, x = Layer(h, a).bfloat16(), torch.empty(b, s, h, dtype=torch.bfloat16)
    before = furl_torch.estimate(layer, x, codecs={"2 bits": Codec()}).plans["none"].bytes_saved
    statistics = 2 * 2 * b * s * 4  # of the norms, which the formula leaves out
    assert before == s * b * (34 * h + 5 * a * s) + statistics
    fused = nn.TransformerEncoderLayer(h, a, 4 * h, 0.1, "gelu", batch_first=True, norm_first=True, device="meta",
                                       dtype=torch.bfloat16)
    kept = furl_torch.estimate(fused, x, codecs={"2 bits": Codec()}).plans["none"].bytes_saved
    # Without the weights between tokens, but with the output of attention, of which torch makes a copy where there are
    # several examples; with a fourth dropout, of 4 h; and with log-sums of 32 bits and two numbers for the dropout,
    # which attention of torch 2.0 does not have.
    assert kept == s * b * ((40 if b > 1 else 38) * h + 4 * a) + statistics + (16 if TORCH > (2, 0) else 0)


@pytest.mark.skipif(TORCH < (2, 1), reason="this attention of torch 2.0 has no mask")
def test_attention_keeps_its_mask():
    class Masked(nn.Module):
        def forward(self, q):
            return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(64, 64, dtype=torch.bool))

    for shape in (2, 4, 64, 32), (8, 64, 32):
        q = torch.empty(shape, requires_grad=True)
        without = q.numel() * 4 + 2 * 4 * 64 * 4 + 16  # the output, log-sums, two numbers for dropout; q is a leaf
        kept = furl_torch.estimate(Masked(), q, codecs={"2 bits": Codec()}).plans["none"].bytes_saved
        assert kept == without + 64 * 64 * 4  # the same for all heads


@pytest.mark.parametrize("codec", [Codec(1), Codec(2), Codec(2, 8, 256), Codec(4, 1, 128)])
def test_a_step_keeps_what_was_planned(codec):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.images, self.tokens = small_net()[:5], nn.Sequential(nn.LayerNorm(196), nn.Linear(196, 300), nn.SiLU())
            self.pool = nn.MaxPool2d(2)

        def forward(self, x, labels):
            y = self.pool(self.images(x)).flatten(2)
            return F.cross_entropy(self.tokens(y).flatten(0, 1).sigmoid(), labels)

    model, x, labels = Mixed(), torch.randn(8, 1, 28, 28), torch.zeros(64, dtype=torch.long)
    context = compress_saved(codec.bits, codec.window, group=codec.group)
    with context:
        loss = model(x, labels)
    planned = furl_torch.estimate(model, x, named_inputs={"labels": labels}, codecs={"codec": codec})
    assert planned.plans["codec"].bytes_saved == context.stats().total.bytes_after
    assert planned.plans["none"].bytes_saved == context.stats().total.bytes_before
    del loss


@pytest.mark.parametrize("kind", ["asa", "ara"])
def test_converted_models_can_be_planned(kind):
    model, x = nn.Sequential(*[nn.Linear(64, 64) for _ in range(5)]), torch.randn(256, 64)
    assert furl_torch.auxiliary.convert(model, kind, x) == 3
    context = compress_saved()
    with context:
        y = model(x)
    planned = furl_torch.estimate(model, x, codecs={"codec": Codec()})
    assert planned.plans["codec"].bytes_saved == context.stats().total.bytes_after
    assert planned.plans["none"].bytes_saved == context.stats().total.bytes_before
    del y


def test_the_largest_batch_fits_and_one_more_does_not():
    net, memory = small_net(), 20_000_000
    result = furl_torch.estimate(net, torch.empty(4, 1, 28, 28), memory=memory, optimizer_states=1)
    parameters = sum(p.numel() for p in net.parameters())
    assert result.model_bytes == 4 * 3 * parameters + 4 * 2 * 8 + 8
    largest = 4 * 8 * 28 * 28 * 4
    assert [plan.working_bytes for plan in result.plans.values()] == [2 * largest] + 5 * [3 * largest]
    batches = [plan.largest_batch for plan in result.plans.values()]
    assert batches[0] < batches[3] < batches[2] < batches[1]  # none, 4, 2 and 1 bits
    for name in ("none", "2 bits"):
        for more, fits in ((0, True), (1, False)):
            batch = result.plans[name].largest_batch + more
            plan = furl_torch.estimate(net, torch.empty(batch, 1, 28, 28)).plans[name]
            assert (plan.bytes_saved + plan.working_bytes <= memory - result.model_bytes) == fits
    assert "largest batch" in str(result) and "of 0.020." in str(result)
    small = furl_torch.estimate(net, torch.empty(4, 1, 28, 28), memory=1000, codecs={"a": Codec()})
    assert [plan.largest_batch for plan in small.plans.values()] == [0, 0]


def test_nothing_of_the_model_changes_and_refusals():
    net = small_net().append(furl_torch.modules.Dropout())
    images = torch.randn(4, 1, 28, 28)
    before, generator = {name: t.clone() for name, t in net.state_dict().items()}, torch.get_rng_state()
    furl_torch.estimate(net, images, codecs={"a": Codec()})
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator)
    assert F.dropout.__module__ == "torch.nn.functional"
    with pytest.raises(ValueError, match="no tensor with a batch"):
        furl_torch.estimate(net, 3)
    with pytest.raises(ValueError, match="codecs is empty"):
        furl_torch.estimate(net, torch.empty(4, 1, 28, 28), codecs={})
    with pytest.raises(ValueError, match="memory is 0"):
        furl_torch.estimate(net, torch.empty(4, 1, 28, 28), memory=0)
