# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays to blobs and back, under jit, vmap, scan and shard_map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from ._library import blob_bytes

KEY_WORDS = 4  # of furl's keys, 32 bits each
VALUE_DTYPES = (jnp.float32, jnp.float16, jnp.bfloat16)
CODE_DTYPES = (jnp.uint8, jnp.bool_)


@partial(jax.tree_util.register_dataclass, data_fields=["blob", "key"], meta_fields=["shape", "dtype", "bits"])
@dataclass(frozen=True)
class Compressed:
    """An array in a few bits per value: a pytree of two arrays, which may be carried, stacked and sharded."""

    blob: Array  # uint8, one dimension, and those of batches before it
    key: Array  # uint32, 4 words, which decompress needs too
    shape: tuple[int, ...]  # of the array, without batches
    dtype: Any  # of the array
    bits: int


@partial(jax.tree_util.register_dataclass, data_fields=["blob"], meta_fields=["shape", "dtype", "bits"])
@dataclass(frozen=True)
class Packed:
    """Bools or small integers, exact, in `bits` bits each: a pytree of one array."""

    blob: Array
    shape: tuple[int, ...]
    dtype: Any
    bits: int


def compress(x: ArrayLike, key: Array, bits: int = 2) -> Compressed:
    """Codes x, of float32, float16 or bfloat16 and of any shape, in 1 to 8 bits per value, without bias.

    Codes of 1 to 4 bits are rotated ones (see the guide), those of more have a minimum and a step for each 256
    values in the order of memory. key: of jax.random, a new one for each call.

    Under vmap every example has a blob of its own. If the key is not mapped too, all examples have the same noise.
    Not differentiable. TypeError and ValueError name the argument that is refused.
    """
    check_key(key)
    return compress_with_words(jnp.asarray(x), jax.random.bits(key, (KEY_WORDS,), jnp.uint32), bits)


def check_key(key: Any) -> None:
    """TypeError if that is not one key of jax.random, of either kind."""
    if isinstance(key, (Array, np.ndarray)):
        if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.ndim == 0:
            return
        if key.dtype == jnp.uint32 and key.ndim == 1:
            return
        key = f"an array of {key.dtype} and shape {key.shape}"
    raise TypeError(f"key is {key}: must be one key of jax.random")


def compress_with_words(x: Array, words: Array, bits: int) -> Compressed:
    """compress, with the four random words of uint32 that it draws from its key."""
    if x.dtype not in VALUE_DTYPES:
        raise TypeError(f"dtype of x is {x.dtype}: must be float32, float16 or bfloat16")
    blob = shaped((blob_bytes(x.size, bits, are_codes=False),), jnp.uint8, jax.typeof(x))
    return Compressed(_call("furl_compress", blob, bits, x, words), words, x.shape, x.dtype, bits)


def decompress(compressed: Compressed) -> Array:
    """The array that compress had, up to the error of its codes, which is 0 on average."""
    return decompress_after(compressed, compressed.key)


def decompress_after(compressed: Compressed, after: Array) -> Array:
    """decompress, but not before `after` has been computed: XLA would do all at once at the beginning of the
    backward pass."""
    y = shaped(compressed.shape, compressed.dtype, jax.typeof(compressed.blob))
    return _call("furl_decompress", y, compressed.bits, compressed.blob, compressed.key, jax.lax.stop_gradient(after))


def pack(codes: ArrayLike, bits: int = 1) -> Packed:
    """Bools, or integers of uint8 below 2**bits (higher bits are dropped), in 1 to 8 bits each. Exact."""
    codes = jnp.asarray(codes)
    if codes.dtype not in CODE_DTYPES:
        raise TypeError(f"dtype of codes is {codes.dtype}: must be uint8 or bool")
    blob = shaped((blob_bytes(codes.size, bits, are_codes=True),), jnp.uint8, jax.typeof(codes))
    return Packed(_call("furl_pack", blob, bits, codes), codes.shape, codes.dtype, bits)


def unpack(packed: Packed) -> Array:
    """What pack had."""
    return unpack_after(packed, packed.blob)


def unpack_after(packed: Packed, after: Array) -> Array:
    """unpack, but not before `after` has been computed."""
    codes = shaped(packed.shape, packed.dtype, jax.typeof(packed.blob))
    return _call("furl_unpack", codes, packed.bits, packed.blob, jax.lax.stop_gradient(after))


def code(x: Array, words: Array, bits: int) -> Compressed | Packed:
    """Bools packed, in one bit each whatever bits is, and values compressed with these random words."""
    return pack(x) if x.dtype == jnp.bool_ else compress_with_words(x, words, bits)


def restore_after(kept: Compressed | Packed, after: Array) -> Array:
    """What `code` had, but not before `after` has been computed."""
    return unpack_after(kept, after) if isinstance(kept, Packed) else decompress_after(kept, after)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _call(name: str, result: jax.ShapeDtypeStruct, bits: int, *operands: Array) -> Array:
    """What a handler of XLA computes."""
    call = jax.ffi.ffi_call(name, result, vmap_method="broadcast_all")
    return call(*operands, bits=np.int64(bits))


@_call.defjvp
def _(*_: Any) -> NoReturn:
    raise TypeError("codes are differentiated: compress has no derivative, and what compress_residuals and keep made "
                    "has none of second order")


def shaped(shape: tuple[int, ...], dtype: Any, like: Any) -> jax.ShapeDtypeStruct:
    """An array's type that varies with the devices of a shard_map as another type does."""
    axes = getattr(like, "manual_axis_type", None)  # which jax 0.9 lacks
    if axes is None or axes.empty:
        return jax.ShapeDtypeStruct(shape, dtype)
    mesh = NamedSharding(like.sharding.mesh, PartitionSpec())
    return jax.ShapeDtypeStruct(shape, dtype, sharding=mesh, manual_axis_type=axes)
