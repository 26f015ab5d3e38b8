# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The operators themselves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from furl_torch import ops

LAYOUTS = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(1, 3),
    "with gaps": lambda x: x[:, ::2],
    "offset": lambda x: x.flatten()[1:],
}


def round_trip(x, bits=8, window=(), group=256):
    blob = ops.compress(x, bits, list(window), group, 1, 2)
    stride = ops.dense_stride(x)
    return ops.decompress(blob, x.shape, stride, x.dtype, bits, list(window), group)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_come_back_in_their_places(layout, dtype):
    x = LAYOUTS[layout](torch.randn(3, 4, 10, 12).to(dtype))
    y = round_trip(x)
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert y.stride() == torch.empty_like(x).stride()
    torch.testing.assert_close(y, x, rtol=0.02, atol=0.05)


@pytest.mark.parametrize("size", [0, 1, 255, 1023, 1024, 1025])
def test_odd_sizes(size):
    x = torch.randn(size)
    torch.testing.assert_close(round_trip(x), x, rtol=0.02, atol=0.05)


def test_window_follows_its_dimensions():
    planes = torch.randint(99, (2, 64, 1, 1)).float().expand(2, 64, 16, 16)  # each of one value
    for layout in (torch.contiguous_format, torch.channels_last):
        x = planes.contiguous(memory_format=layout)
        assert torch.equal(round_trip(x, bits=1, window=(1, 1, 8, 8)), x)
    assert not torch.equal(round_trip(x, bits=1, window=(1, 8, 1, 1)), x)


@pytest.mark.parametrize("shape", [(4, 1, 16, 24), (1, 1, 40, 40), (3, 1, 1, 64), (2, 1, 64, 1)])
def test_strides_of_dimensions_of_one_element_do_not_matter(shape):
    x = torch.randn(shape)
    n, c, h, w = torch.empty(shape, memory_format=torch.channels_last).stride()
    y = x.as_strided(shape, (n, 1, h, w))  # as images with channels last
    assert y.stride() != x.stride()
    blobs = [ops.compress(z, 2, [1, 1, 8, 8], 256, 1, 2) for z in (x, y)]
    assert torch.equal(*blobs)
    flat = ops.compress(x, 2, [], 256, 1, 2)
    assert blobs[0].numel() > flat.numel()  # the means of cells


def test_decompress_add_adds():
    x, y = torch.randn(2, 3000), torch.randn(2, 3000)
    blob = ops.compress(x, 4, [], 256, 1, 2)
    total = y.clone()
    ops.decompress_add_(total, blob, 4, [], 256)
    assert torch.equal(total, y + ops.decompress(blob, x.shape, x.stride(), x.dtype, 4, [], 256))


@pytest.mark.parametrize("bits", range(1, 9))
def test_small_integers_are_exact(bits):
    codes = torch.randint(2**bits, (7, 300), dtype=torch.uint8)
    blob = ops.pack(codes, bits)
    assert torch.equal(ops.unpack(blob, codes.shape, codes.stride(), torch.uint8, bits), codes)
    assert blob.numel() == 3 * 128 * bits


def test_results_have_shapes_without_memory():
    x = torch.randn(2, 3, 8, 8)
    meta = x.to("meta")
    blob = ops.compress(meta, 2, [1, 1, 8, 8], 256, 0, 0)
    assert blob.device.type == "meta" and blob.shape == ops.compress(x, 2, [1, 1, 8, 8], 256, 0,
                                                                     0).shape
    y = ops.decompress(blob, meta.shape, meta.stride(), torch.float32, 2, [1, 1, 8, 8], 256)
    assert y.device.type == "meta" and y.shape == x.shape
    pooled, places = ops.max_pool2d(meta, [2, 2], [2, 2], [0, 0])
    real, real_places = ops.max_pool2d(x, [2, 2], [2, 2], [0, 0])
    assert pooled.shape == real.shape and places.shape == real_places.shape


@pytest.mark.skipif(not hasattr(torch, "_subclasses"), reason="no fake tensors")
def test_fake_tensors_have_shapes():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        x = torch.empty(5000)
        assert ops.compress(x, 2, [], 256, 0, 0).shape == (5 * 256 + 20 * 4, )


@pytest.mark.parametrize("refused, words", [
    (lambda x: ops.compress(x.double(), 2, [], 256, 0, 0), "must be float32, float16 or bfloat16"),
    (lambda x: ops.compress(x, 9, [], 256, 0, 0), "codec.bits is 9: must be 1..8"),
    (lambda x: ops.compress(x, 2, [], 100, 0, 0), "codec.group is 100"),
    (lambda x: ops.compress(x, 2, [1, 8], 256, 0, 0), "window has 2 widths"),
    (lambda x: ops.decompress(ops.compress(x, 2, [], 256, 0, 0), x.shape, x.stride(), x.dtype, 3,
                              [], 256), "made with other settings"),
    (lambda x: ops.unpack_levels(ops.pack_positive(x), x.shape, [0], x.dtype, 1.0), "stride leaves gaps or overlaps"),
    (lambda x: ops.decompress(x, x.shape, x.stride(), x.dtype, 2, [], 256), "must be uint8"),
    (lambda x: ops.decompress_add_(x, ops.compress(x, 2, [], 256, 0, 0).to("meta"), 2, [], 256),
     "the blob is on meta, the tensor on"),
    (lambda x: ops.pack(x, 1), "must be uint8 or bool"),
    (lambda x: ops.max_pool2d(x.view(2, 600), [2, 2], [2, 2], [2, 2]), "window.padding"),
    (lambda x: ops.dropout(x, 1.0, 0, 0), "p is 1"),
])
def test_refusals_say_why(refused, words):
    with pytest.raises((RuntimeError, TypeError), match=words.replace(".", r"\.")):
        refused(torch.randn(1200))


@pytest.mark.host_only
def test_missing_library_says_how_to_build_it():
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment["FURL_TORCH_LIBRARY"] = "/nowhere.so"
    answer = subprocess.run([sys.executable, "-c", "import furl_torch"], env=environment, text=True,
                            capture_output=True)
    assert "FURL_TORCH_LIBRARY is /nowhere.so: there is no such file" in answer.stderr


@pytest.mark.host_only
def test_workers_that_fork_can_compress():
    def compress():  # enough for threads; the child must not use torch's own, which do not survive
        return bytes(ops.compress(x, 2, [], 256, 1, 2).tolist())

    x = torch.randn(1 << 17)
    expected = compress()
    child = os.fork()
    if child == 0:
        os._exit(0 if compress() == expected else 1)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child waits for threads that it does not have")
    assert os.waitstatus_to_exitcode(status) == 0
