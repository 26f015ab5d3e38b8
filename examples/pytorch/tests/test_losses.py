# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Cross entropy: torch's under compress_saved, and the one of functional."""

import pytest
import torch
from torch.nn import functional as F

from furl_torch import compress_saved, functional, skip


def logits_of(num_rows, num_classes, confidence):
    """Normal, and higher where the target is."""
    target = torch.randint(num_classes, (num_rows, ))
    logits = torch.randn(num_rows, num_classes)
    logits[torch.arange(num_rows), target] += confidence
    return logits.requires_grad_(), target


def gradient(loss_of, logits, context=None):
    x = logits * 1
    with context or skip():
        loss = loss_of(x)
    return torch.autograd.grad(loss, logits, torch.ones_like(loss))[0]


@pytest.mark.parametrize("confidence", [0, 8, 14])
@pytest.mark.parametrize("num_classes", [10, 64, 1000, 5001])
def test_gradients_at_any_loss(num_classes, confidence):
    logits, target = logits_of(128, num_classes, confidence)
    exact = gradient(lambda x: F.cross_entropy(x, target), logits)
    for error in (gradient(lambda x: F.cross_entropy(x, target), logits, compress_saved()) - exact,
                  gradient(lambda x: functional.cross_entropy(x, target), logits) - exact):
        assert error.norm() < 0.07 * exact.norm()


def test_bytes_that_are_kept():
    logits, target = logits_of(64, 4096, 0)
    x = logits * 1
    context = compress_saved()
    with context:
        y = F.cross_entropy(x, target)
    rows = 64 * (4096 // 2 + 16 * 4 + 4 + 4)  # codes, scales, the largest and its place
    assert context.live.now == rows + 64 * 8 + 4  # the targets, and the sum of their weights
    del y
    with context:
        y = functional.cross_entropy(x, target)
    assert context.stats().total.bytes_after < 64 * (4096 // 2 + 16 * 4 + 32) + 4096 * 4
    del y


def test_classes_that_are_not_the_last_dimension():
    logits = torch.randn(2, 128, 96, requires_grad=True)
    target = torch.randint(128, (2, 96))
    for loss in (F.cross_entropy, functional.cross_entropy):
        exact = gradient(lambda x: F.cross_entropy(x, target), logits)
        error = gradient(lambda x: loss(x, target), logits, compress_saved()) - exact
        assert error.norm() < 0.05 * exact.norm()


def test_half_precision():
    logits, target = logits_of(64, 1000, 3)
    for dtype in (torch.bfloat16, torch.float16):
        x = logits.detach().to(dtype).requires_grad_()
        y = functional.cross_entropy(x, target)
        y.backward()
        assert y.dtype == x.grad.dtype == dtype
        exact = gradient(lambda x: F.cross_entropy(x, target), logits)
        assert (x.grad - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("settings", [
    {}, {"reduction": "sum"}, {"reduction": "none"}, {"label_smoothing": 0.1}, {"ignore_index": 3},
    {"weight": True}, {"weight": True, "label_smoothing": 0.3, "ignore_index": 3},
    {"weight": True, "label_smoothing": 0.3, "ignore_index": 3, "reduction": "none"},
    {"weight": True, "ignore_index": 3, "reduction": "sum"}], ids=str)
def test_arguments_mean_what_they_mean_to_torch(settings):
    logits, target = logits_of(64, 8, 1)
    if "weight" in settings:
        settings = {**settings, "weight": torch.rand(8) + 0.1}
    assert (target == 3).any()
    y, exact = functional.cross_entropy(logits, target, bits=8, **settings), F.cross_entropy(
        logits, target, **settings)
    torch.testing.assert_close(y, exact)
    g = torch.randn(y.shape)
    ours, theirs = (torch.autograd.grad(f, logits, g)[0] for f in (y, exact))
    assert (ours - theirs).norm() < 0.01 * theirs.norm()


def test_refusals():
    x = torch.randn(4, 8)
    with pytest.raises(TypeError, match="target has probabilities"):
        functional.cross_entropy(x, x.softmax(1))
    for smoothing in (2, -0.1, float("nan")):
        with pytest.raises(ValueError, match=f"label_smoothing is {smoothing}: must be 0 to 1"):
            functional.cross_entropy(torch.randn(4, 5), torch.zeros(4, dtype=torch.long), label_smoothing=smoothing)
    with pytest.raises(ValueError, match=r"weight has the shape \[3\]: must have \[5\]"):
        functional.cross_entropy(torch.randn(4, 5), torch.zeros(4, dtype=torch.long), torch.ones(3))
    with pytest.raises(ValueError, match="reduction is 'average'"):
        functional.cross_entropy(x, torch.zeros(4, dtype=torch.long), reduction="average")
    with pytest.raises(ValueError, match=r"must have \[4\]"):
        functional.cross_entropy(x, torch.zeros(5, dtype=torch.long))


def test_empty_batch_is_as_torch_has_it():
    x = torch.randn(0, 8, requires_grad=True)
    target = torch.zeros(0, dtype=torch.long)
    assert functional.cross_entropy(x, target).isnan() and F.cross_entropy(x, target).isnan()
    assert functional.cross_entropy(x, target, reduction="sum") == 0
