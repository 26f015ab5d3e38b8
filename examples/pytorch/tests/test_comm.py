# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients between processes, which are real ones on gloo."""

import numpy
import pytest
import torch
import torch.distributed as dist

from support import TORCH

HAS_GLOO = dist.is_available() and getattr(dist, "is_gloo_available", lambda: True)()
pytestmark = [pytest.mark.host_only,
              pytest.mark.skipif(not HAS_GLOO, reason="this torch was built without distributed or without gloo")]
if HAS_GLOO:
    import ranks
    from furl_torch import comm
try:
    from torch.distributed.fsdp import FSDPModule
    HAS_FSDP2 = hasattr(FSDPModule, "set_custom_reduce_scatter")
except (ImportError, ValueError):  # ValueError: torch 1.13 has dataclasses that Python 3.11 refuses
    HAS_FSDP2 = False

ODD = [(37, 1001), (37, ), (1, ), (5, 3, 7, 11), (1023, 3)]
# Squared error of codes in parts of the square: of rotated ones as for normal values, of 8 bits for `gradient_of`.
ERROR = {8: 5e-4, 4: 0.0117, 2: 0.135}


def average_of(gradients):
    return sum(g.double() for g in gradients).numpy() / len(gradients)


def error(found, exact):
    """Squared, in parts of the exact one's square."""
    return ((found - exact) ** 2).sum() / (exact ** 2).sum()


def check_equal_on_all(found):
    """Of one step or more, each a list of tensors."""
    for other in found[1:]:
        for ours, theirs in zip(sum(other, []), sum(found[0], [])):
            numpy.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("num_ranks", [2, 4])
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_averages_are_near_and_equal_on_all_ranks(bits, num_ranks, tmp_path):
    found = ranks.run(num_ranks, tmp_path, ranks.averages, ODD, bits, steps=2)
    check_equal_on_all(found)
    # The ranks' gradients are independent: their squares together are num_ranks times those of their sum.
    most = 1.2 * ERROR[bits] * ((num_ranks - 1) / num_ranks + 1 + ERROR[bits])
    first, second = found[0]
    for shape, average, again in zip(ODD, first, second):
        exact = average_of([ranks.gradient_of(r, shape) for r in range(num_ranks)])
        if len(shape) < 2:
            numpy.testing.assert_allclose(average, exact, rtol=1e-5, atol=1e-6)
        else:
            assert (average != again).any()  # fresh noise
    coded = [numpy.concatenate([a.ravel() for a in some if a.ndim > 1]) for some in (
        first, [average_of([ranks.gradient_of(r, s) for r in range(num_ranks)]) for s in ODD])]
    assert most / 10 < error(*coded) < most


def test_averages_have_no_bias(tmp_path):
    shape = (64, 129)
    found = ranks.run(2, tmp_path, ranks.averages, [shape], 2, steps=100)[0]
    exact = average_of([ranks.gradient_of(r, shape) for r in range(2)])
    one = error(found[0][0], exact)
    assert error(numpy.mean([f[0] for f in found], 0), exact) < one / 50


@pytest.mark.parametrize("error_feedback", [False, True])
def test_nan_and_infinity_reach_all_ranks_and_no_other_block(error_feedback, tmp_path):
    found = ranks.run(2, tmp_path, ranks.averages, [(100, 301), (7, )], 4, steps=3, change=ranks.nan_of_rank_1,
                      error_feedback=error_feedback)
    check_equal_on_all(found)
    _, with_nan, after = found[0]
    lost = numpy.isnan(with_nan[0]).ravel()
    assert lost[5000] and lost[9000] and lost.sum() == 2 * 256
    assert numpy.isfinite(with_nan[1]).all() and all(numpy.isfinite(f).all() for f in after)


def test_zeros_stay_zeros(tmp_path):
    for bits in (8, 4):
        for average in sum(ranks.run(2, tmp_path, ranks.averages, ODD, bits, change=ranks.no_gradient)[0], []):
            assert not average.any()


def test_one_rank_changes_nothing(tmp_path):
    for shape, average in zip(ODD, ranks.run(1, tmp_path, ranks.averages, ODD, 2)[0][0]):
        numpy.testing.assert_array_equal(average, ranks.gradient_of(0, shape).double())


def test_groups_average_for_themselves(tmp_path):
    shape = (100, 301)
    found = ranks.run(4, tmp_path, ranks.averages, [shape], 4, group_size=2)
    check_equal_on_all(found[:2])
    check_equal_on_all(found[2:])
    for pair in (0, 2):
        exact = average_of([ranks.gradient_of(r, shape) for r in (pair, pair + 1)])
        assert error(found[pair][0][0], exact) < 0.03


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes(dtype, tmp_path):
    if dtype == torch.bfloat16 and TORCH < (2, 2):
        pytest.skip("gloo of torch up to 2.1 has no bfloat16")
    found = ranks.run(2, tmp_path, ranks.averages, ODD, 4, dtype=dtype)
    check_equal_on_all(found)
    exact = average_of([ranks.gradient_of(r, ODD[0], dtype) for r in range(2)])
    assert error(found[0][0][0], exact) < (1e-20 if dtype == torch.float64 else 0.03)


def test_small_buckets_are_exact(tmp_path):
    exact = average_of([ranks.gradient_of(r, (3, 30)) for r in range(2)])
    numpy.testing.assert_allclose(ranks.run(2, tmp_path, ranks.averages, [(3, 30)], 2)[0][0][0], exact, rtol=1e-5,
                                  atol=1e-6)


def test_sparse_gradients_are_averaged_as_they_are(tmp_path):
    (first, num_bytes), (second, _) = ranks.run(2, tmp_path, ranks.sparse_averages, 4)
    check_equal_on_all([first[2:], second[2:]])
    for exact, ours in zip(first[:2], first[2:]):
        for a, b in zip(exact, ours):
            numpy.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-8)
    assert num_bytes == 2 * (10 * 8 + 10 * 6 * 4 + 4 * 42)  # indices, values, and the layer, which is small


@pytest.mark.parametrize("num_ranks", [2, 4])
@pytest.mark.parametrize("bits, most", [(8, 0.26), (4, 0.13), (2, 0.07)])
def test_bytes_that_travel(bits, most, num_ranks, tmp_path):
    shape = (500, 1001)
    of_ring = 2 * (num_ranks - 1) / num_ranks * 4 * 500 * 1001
    for written, counted in ranks.run(num_ranks, tmp_path, ranks.traffic, shape, bits):
        assert counted < most * of_ring
        assert counted <= written < 1.02 * counted  # with the headers of messages


def test_errors_are_fed_back(tmp_path):
    shape = (64, 129)
    exact = average_of([ranks.gradient_of(r, shape) for r in range(2)])
    lost = [error(numpy.mean([f[0] for f in ranks.run(2, tmp_path, ranks.averages, [shape], 2, steps=20,
                                                      error_feedback=feedback)[0]], 0), exact)
            for feedback in (False, True)]
    assert lost[1] < lost[0] / 4


@pytest.mark.parametrize("num_ranks", [2, 4])
def test_training_with_4_bits_is_that_without(num_ranks, tmp_path):
    exact = ranks.run(num_ranks, tmp_path, ranks.training, 0, False, 60)
    ours = ranks.run(num_ranks, tmp_path, ranks.training, 4, False, 60)
    for rank in ours[1:]:
        numpy.testing.assert_array_equal(rank[0], ours[0][0])
    losses = [numpy.mean([rank[1] for rank in found]) for found in (ours, exact)]
    assert losses[0] == pytest.approx(losses[1], rel=0.05) and losses[0] < 1


@pytest.mark.skipif(not HAS_FSDP2, reason="this torch has no FSDP2 with a reduce-scatter of others")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_reduce_scatters_of_fsdp(dtype, tmp_path):
    shapes = [(37, 501), (37, ), (6, 3, 7, 11)]
    exact = ranks.run(2, tmp_path, ranks.reduce_scatters, shapes, 0, torch.float32, 1)[0][0]
    for bits in (8, 4):
        found = ranks.run(2, tmp_path, ranks.reduce_scatters, shapes, bits, dtype, 2)
        check_equal_on_all(found)
        for one, again, right in zip(*found[0], exact):
            assert error(one, right) < 2 * ERROR[bits] + 1e-4
            assert (one != again).any()


def test_ranks_have_other_noise(tmp_path):
    keys = sum(ranks.run(2, tmp_path, ranks.keys), [])
    assert len({tuple(k) for k in keys}) == 6


def test_what_is_refused():
    for bits in (0, 9, 2.5):
        with pytest.raises(ValueError, match=f"bits is {bits}: must be an integer of 1 to 8"):
            comm.AllReduceState(bits)


def test_what_a_reduce_scatter_refuses(tmp_path):
    found = ranks.run(2, tmp_path, ranks.refusals)[0]
    assert found[0].startswith("op is ") and ": must be SUM or AVG" in found[0]
    assert found[1:] == ["async_op is True: must be False",
                         "input_tensor has 5 elements: must have 2 times the 4 of output_tensor"]
