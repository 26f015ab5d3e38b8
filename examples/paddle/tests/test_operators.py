# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The operators: their bytes against FORMAT.md and against a second computation, their errors."""

import numpy as np
import paddle
import pytest

from furl_paddle.build import operators

SEED, OFFSET = 5, 7


def values(n, dtype="float32"):
    return paddle.to_tensor(np.random.default_rng(n).standard_normal(n).astype("float32")).astype(dtype)


def round_trip(x, bits, group, key=(SEED, OFFSET)):
    blob = operators().furl_compress(x, bits, group, *key)
    return blob, operators().furl_decompress(blob, x.shape, str(x.dtype).split(".")[1], bits, group, *key)


def decode(blob, bits, num_elements):
    """FORMAT.md in NumPy, for groups of 256: codes, and lo and step of each element."""
    tiles = -(-num_elements // 1024)
    columns = blob[:128 * bits * tiles].reshape(tiles, bits, 128).transpose(0, 2, 1)
    strings = np.unpackbits(columns, axis=2, bitorder="little").reshape(tiles, 128, 8, bits)
    codes = (strings.astype(int) << np.arange(bits)).sum(3).transpose(0, 2, 1).reshape(-1)[:num_elements]
    groups = -(-num_elements // 256)
    pairs = blob[128 * bits * tiles:][:4 * groups].view(np.uint16).astype(np.uint32) << 16
    return codes, *np.repeat(pairs.view(np.float32).reshape(-1, 2), 256, axis=0)[:num_elements].T


@pytest.mark.parametrize("bits", [1, 2, 3, 8])
def test_bytes_are_those_of_the_format(bits):
    x = values(2500)
    blob, y = round_trip(x, bits, 256)
    codes, lo, step = decode(blob.numpy(), bits, 2500)
    place = (x.numpy() - lo) / step
    assert (np.abs(codes - place) < 1 + 1e-5 * 2 ** bits).all()
    assert np.allclose(y.numpy(), lo + codes * step, rtol=0, atol=1e-6)
    assert blob.shape == [3 * 128 * bits + 48]


def test_mask_has_a_bit_for_each_positive_value():
    x = values(3000)
    blob = operators().furl_pack_positive(x)
    assert np.unpackbits(blob.numpy()).sum() == (x.numpy() > 0).sum()
    y = operators().furl_unpack_positive(blob, [3, 1000], "float16")
    assert y.shape == [3, 1000] and y.dtype == paddle.float16
    assert (y.numpy().reshape(-1) == (x.numpy() > 0)).all()


@pytest.mark.parametrize("group", [0, 64, 256])
def test_the_key_alone_decides_the_bytes(group):
    x = values(5000)
    first, again = (round_trip(x, 2, group)[0].numpy() for _ in range(2))
    other = round_trip(x, 2, group, (SEED, OFFSET + 1))[0].numpy()
    assert (first == again).all() and (first != other).any()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_error_of_stochastic_rounding_is_below_a_step(bits, dtype):
    """ActNN: values of a group of range R get codes of step R / (2^b - 1), and lose less than one step."""
    x = values(10 * 256, dtype)
    y = round_trip(x, bits, 256)[1].astype("float32").numpy().reshape(-1, 256)
    x = x.astype("float32").numpy().reshape(-1, 256)
    spread = np.ptp(x, axis=1, keepdims=True)
    # lo and step are bf16: lo is lowered and step raised by up to 1/128 of themselves.
    step = (spread + np.abs(x).max(1, keepdims=True) / 128) / (2 ** bits - 1) * (1 + 1 / 128)
    rounding_of_y = np.abs(x).max() / 256 if dtype == "bfloat16" else np.abs(x).max() / 2048
    assert (np.abs(y - x) <= step + rounding_of_y).all()


@pytest.mark.parametrize("bits, group, squared_error", [(1, 0, .7), (2, 0, .14), (4, 0, .012), (8, 256, 1e-4)])
def test_decompressed_is_unbiased_with_a_small_error(bits, group, squared_error):
    x = values(20 * 1024)
    draws = np.stack([round_trip(x, bits, group, (SEED, n))[1].numpy() for n in range(64)])
    x = x.numpy()
    one = np.mean((draws - x) ** 2) / np.mean(x ** 2)
    mean = np.mean((draws.mean(0) - x) ** 2) / np.mean(x ** 2)
    assert one < squared_error
    assert mean < 1.3 * one / 64


def test_values_that_are_not_finite_spoil_their_group_alone():
    x = values(2048)
    x[300] = float("nan")
    y = round_trip(x, 4, 256)[1].numpy()
    assert np.isnan(y[256:512]).all() and np.isfinite(np.delete(y, np.s_[256:512])).all()


@pytest.mark.parametrize("shape", [[0], [0, 8], [1], [1023], [3, 5, 7], [2, 1, 3, 1, 2, 1, 2, 1, 2]])
def test_any_shape(shape):
    x = paddle.ones(shape)
    y = round_trip(x, 8, 256)[1]
    assert y.shape == shape and (y.numpy() == 1).all()


@pytest.mark.parametrize("call, text", [
    (lambda x: operators().furl_compress(x, 9, 256, 0, 0), "bits"),
    (lambda x: operators().furl_compress(x, 2 ** 32 + 2, 256, 0, 0), "bits"),
    (lambda x: operators().furl_compress(x, 2, 100, 0, 0), "group"),
    (lambda x: operators().furl_compress(x, 8, 0, 0, 0), "rotated"),
    (lambda x: operators().furl_compress(x.astype("float64"), 2, 0, 0, 0),
     "dtype is float64: must be float32, float16 or bfloat16"),
    (lambda x: operators().furl_pack_positive(x.astype("int32")), "dtype is int32"),
    (lambda x: operators().furl_decompress(x, [2048], "float32", 2, 0, 0, 0),
     "the blob's dtype is float32: must be uint8"),
    (lambda x: operators().furl_decompress(operators().furl_pack_positive(x), [2048], "float32", 2, 0, 0, 0),
     "the blob has 256 bytes, and this shape and codec need 528"),
    (lambda x: operators().furl_unpack_positive(operators().furl_pack_positive(x), [2048], "int8"),
     "dtype is int8: must be float32, float16 or bfloat16"),
])
def test_refusals(call, text):
    with pytest.raises(OSError, match="furl: .*" + text):
        call(values(2048))
