# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""furl in JAX, under jit too, by libfurl_tvm and jax-tvm-ffi.

    gelu = furl_tvm_jax.keep_compressed(jax.nn.gelu, bits=2)
    y = gelu(x, key)  # the backward pass gets x back from a blob

A key is uint32[4]: seed and offset, 64 bits each, the lower half first. It is an operand, not a constant: every step
and every tensor needs another one, such as (seed, 0, step, layer).
FURL_TVM_LIBRARY names the library; JAX's platform chooses between host and device.
"""
import os
from typing import Any, Callable

import jax
import jax_tvm_ffi
import numpy
import tvm_ffi

library = tvm_ffi.load_module(os.environ.get("FURL_TVM_LIBRARY", "libfurl_tvm.so"))
for _name in ("compress", "decompress"):
    for _platform in ("cpu", "gpu"):
        jax_tvm_ffi.register_ffi_target(f"furl.{_name}", getattr(library, _name), ["attrs.plan", "args", "rets"],
                                        platform=_platform, allow_cuda_graph=True)


def make_plan(shape: tuple, **codec: Any) -> bytes:
    """The plan of a codec, by the fields of furl_codec, for a shape."""
    return bytes(library.plan(tuple(shape), codec))


def compress(plan: bytes, x: jax.Array, key: jax.Array) -> jax.Array:
    """The blob of x: uint8[n]."""
    blob = jax.ShapeDtypeStruct((library.blob_bytes(plan),), numpy.uint8)
    return jax.ffi.ffi_call("furl.compress", blob)(x, key, plan=numpy.frombuffer(plan, numpy.uint8))


def decompress(plan: bytes, blob: jax.Array, key: jax.Array, shape: tuple, dtype: Any) -> jax.Array:
    """What a blob was made of, with the key of compress."""
    y = jax.ShapeDtypeStruct(shape, dtype)
    return jax.ffi.ffi_call("furl.decompress", y)(blob, key, plan=numpy.frombuffer(plan, numpy.uint8))


def keep_compressed(function: Callable, **codec: Any) -> Callable:
    """function(x, *rest), of one large array and perhaps small ones such as weights, as f(x, key, *rest). It keeps a
    blob of x and the rest, and its backward pass calls function once more."""

    def wrapped(x, key, *rest):
        plan = make_plan(x.shape, **codec)
        shape, dtype = x.shape, x.dtype

        @jax.custom_vjp
        def call(x, key, *rest):
            return function(x, *rest)

        def forward(x, key, *rest):
            return function(x, *rest), (compress(plan, x, key), key, rest)

        def backward(kept, gradient):
            blob, key, rest = kept
            restored = decompress(plan, blob, key, shape, dtype)
            of_x, *of_rest = jax.vjp(function, restored, *rest)[1](gradient)
            return of_x, numpy.zeros(key.shape, jax.dtypes.float0), *of_rest

        call.defvjp(forward, backward)
        return call(x, key, *rest)

    return wrapped
