# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The report on a model: who saves what, and which of it makes the gradient wrong."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from furl_torch import policy
from furl_torch.examine import AS_IS, Observer, compare, examine, gradient, main, memory_of, planned, rows_of
from furl_torch.subjects import Wanted, setting, subject_of
from support import small_net


def example():
    model = nn.Sequential(small_net(), nn.Dropout(0.5))

    def draw():
        x, labels = torch.randn(8, 1, 28, 28), torch.randint(10, (8, ))
        return lambda: F.cross_entropy(model(x), labels)

    return model, draw


def test_rows_add_up_to_what_is_kept():
    model, draw = example()
    loss, observer = draw(), Observer(2)
    with observer:
        value = loss()
    rows = {row.operator: row for row in rows_of(observer.notes)}
    total = observer.stats().total
    assert sum(row.before for row in rows.values()) == total.bytes_before
    assert sum(row.after for row in rows.values()) == total.bytes_after
    assert "signs" in rows["aten::relu"].kinds or rows["aten::relu_"].kinds
    assert rows["aten::convolution"].before > 8 * 8 * 28 * 28 * 4
    value.backward()


def test_exact_gradients_are_the_same_in_every_call():
    model, draw = example()
    loss = draw()
    exact = gradient(model, loss, nullcontext())
    assert torch.equal(exact, gradient(model, loss, nullcontext()))
    assert compare(exact, lambda: gradient(model, loss, nullcontext()), 2) == (1, 0, 1)
    loud = compare(exact, lambda: 3 * exact, 4)
    assert loud.projection == pytest.approx(3) and loud.error == pytest.approx(2) and loud.norm == pytest.approx(3)


def test_a_plan_compresses_only_what_it_names():
    model, draw = example()
    loss, observer = draw(), Observer(2)
    exact = gradient(model, loss, observer)
    nothing = Observer(2, [AS_IS] * len(observer.notes))
    assert torch.equal(gradient(model, loss, nothing), gradient(model, loss, nullcontext()))
    plan = [planned(n) if n.operator == "aten::relu" else AS_IS for n in observer.notes]
    assert torch.allclose(gradient(model, loss, Observer(2, plan)), gradient(model, loss, nullcontext()))
    assert not torch.equal(exact, gradient(model, loss, nullcontext()))


def test_the_report_names_who_makes_the_error(monkeypatch):
    monkeypatch.setitem(policy.TABLE, "aten::sin", policy.Need(8))
    weight = nn.Parameter(torch.randn(64, 256))
    model = nn.ParameterList([weight])
    text = examine(model, lambda: ((weight * 3).sin().sum() + (weight * 2).cos().sum()), draws=4)
    rows = {line.split()[0]: line for line in text.splitlines() if line.startswith("aten::")}
    assert "1 x 8 bits in groups of 256" in rows["aten::sin"] and "1 x 2 bits" in rows["aten::cos"]
    assert "The most comes from what aten::cos saves" in text


def test_memory_is_that_of_the_allocator(device):
    x = torch.randn(2048, 1024, requires_grad=True)  # large beside what Python allocates and frees meanwhile
    memory = memory_of(lambda: (x * 1).sin().sum(), torch.device(device), bits=2)
    assert (8 << 20) <= memory.counted.bytes_before < 1.05 * (8 << 20)
    assert 8 << 16 <= memory.counted.bytes_after < 8 << 17
    assert memory.counted.bytes_after + (8 << 20) <= memory.peak < 1.2 * (8 << 20)
    if memory.exact == 0:
        pytest.skip("this allocator does not count")
    assert 0.95 * (8 << 20) <= memory.exact < 1.05 * (8 << 20)
    assert 0.95 * memory.counted.bytes_after <= memory.kept < 1.05 * memory.counted.bytes_after


@pytest.mark.parametrize("name, settings", [
    ("torchvision:resnet50", {}), ("torchvision:densenet121", {}), ("torchvision:mobilenet_v3_large", {}),
    ("torchvision:convnext_tiny", {}), ("timm:vit_small_patch16_224", {}),
    ("transformers:gpt2", {"n_layer": 2, "n_embd": 256, "n_head": 4, "vocab_size": 2000}),
    ("transformers:llama", {"num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 688,
                            "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 2000}),
    ("transformers:bert", {"num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 1024,
                           "num_attention_heads": 4, "vocab_size": 2000}),
    ("transformers:t5", {"num_layers": 2, "d_model": 256, "d_ff": 1024, "vocab_size": 2000})])
def test_counts_agree_with_the_allocator(name, settings, device):
    pytest.importorskip(name.partition(":")[0])
    model, draw = subject_of(name, Wanted(8, settings=settings))
    memory = memory_of(draw(), torch.device(device), bits=2)
    if memory.exact == 0:
        pytest.skip("this allocator does not count")
    assert memory.counted.bytes_before == pytest.approx(memory.exact, rel=0.05)
    assert memory.counted.bytes_after == pytest.approx(memory.kept, rel=0.05)


def test_the_command(capsys, monkeypatch, device):
    monkeypatch.syspath_prepend(__file__.rpartition("/")[0])
    main(["test_examine:example", "--steps", "2", "--draws", "2", "--bits", "4", "--device", device])
    text = capsys.readouterr().out
    assert "aten::batch_norm" in text and "4 bits" in text and "The gradient has a projection of" in text


def test_models_by_name():
    with pytest.raises(ValueError, match="no colon"):
        subject_of("resnet50", Wanted())
    assert setting("n_layer=2") == ("n_layer", 2) and setting("act=gelu") == ("act", "gelu")
    torchvision = pytest.importorskip("torchvision")
    model, draw = subject_of("torchvision:resnet18", Wanted(2, 32, settings={"num_classes": 10}))
    assert isinstance(model, torchvision.models.ResNet) and model.fc.out_features == 10
    assert float(draw()()) > 0


def test_a_language_model_by_type():
    pytest.importorskip("transformers")
    small = {"num_layers": 1, "d_model": 32, "d_ff": 64, "num_heads": 2, "vocab_size": 64}
    _, draw = subject_of("transformers:t5", Wanted(2, length=8, settings=small))
    assert float(draw()()) > 0
