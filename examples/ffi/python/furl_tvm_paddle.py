# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""furl in Paddle's dynamic graphs, by libfurl_tvm.

    with furl_tvm_paddle.compress_saved(seed=step, bits=2, coding="rotated"):
        loss = model(x)
    loss.backward()

Inputs of linear layers, convolutions and products bear few bits. ReLU, softmax and log-softmax, whose outputs do not,
belong outside of the context. FURL_TVM_LIBRARY names the library.
"""
import os
from typing import Any

import paddle
import tvm_ffi

library = tvm_ffi.load_module(os.environ.get("FURL_TVM_LIBRARY", "libfurl_tvm.so"))
_FLOATS = (paddle.float32, paddle.float16, paddle.bfloat16)


def compress_saved(seed: int, least_elements: int = 1024, **codec: Any) -> paddle.autograd.saved_tensors_hooks:
    """A context whose forward passes keep blobs. seed: another one for every step. codec: fields of furl_codec.
    Parameters, tensors of fewer elements, and what is no float stay as they are."""
    num_saved = 0

    def pack(x):
        nonlocal num_saved
        num_saved += 1
        if x.dtype not in _FLOATS or x.size < least_elements or x.persistable:
            return (x,)
        plan = library.plan(tuple(x.shape), codec)
        blob = paddle.empty([library.blob_bytes(plan)], dtype="uint8")
        key = (seed, num_saved)
        library.compress(plan, x.detach().contiguous(), key, blob)
        return plan, blob, key, x.shape, x.dtype

    def unpack(kept):
        if len(kept) == 1:
            return kept[0]
        plan, blob, key, shape, dtype = kept
        y = paddle.empty(shape, dtype=dtype)
        library.decompress(plan, blob, key, y)
        return y

    return paddle.autograd.saved_tensors_hooks(pack, unpack)
