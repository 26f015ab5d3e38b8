# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""compress, decompress, pack and unpack."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from furl_jax import compress, decompress, pack, unpack

# Of the mean square of normal data. Rotated codes: FORMAT.md's laws; groups: a twelfth of the step's square, twice.
SQUARED_ERRORS = {1: .571, 2: .135, 3: .0389, 4: .0117, 5: .0052, 6: .00125, 7: .00031, 8: .000076}


def normal(*shape: int, dtype: Any = jnp.float32) -> jax.Array:
    return jax.random.normal(jax.random.key(7), shape).astype(dtype)


def restored(x: jax.Array, key: jax.Array, bits: int = 2) -> jax.Array:
    return decompress(compress(x, key, bits))


@pytest.mark.parametrize("bits", range(1, 9))
def test_the_error_is_what_the_codes_leave(bits: int) -> None:
    x = normal(1 << 17)  # large enough for several threads
    error = float(((restored(x, jax.random.key(bits), bits) - x)**2).mean() / (x**2).mean())
    assert error == pytest.approx(SQUARED_ERRORS[bits], rel=.15)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_it_is_right_on_average(dtype: Any) -> None:
    x = normal(4096, dtype=dtype)
    keys = jax.random.split(jax.random.key(1), 256)
    draws = jax.jit(jax.vmap(lambda key: restored(x, key)))(keys)
    assert draws.dtype == dtype
    draws, exact = np.asarray(draws, np.float64), np.asarray(x, np.float64)
    one = np.linalg.norm(draws[0] - exact)
    assert np.linalg.norm(draws.mean(0) - exact) < 1.2 * one / 16


def test_another_key_gives_other_noise_and_the_same_key_the_same() -> None:
    x = normal(2048)
    keys = jax.random.split(jax.random.key(2))
    blobs = [compress(x, key).blob for key in (keys[0], keys[1], keys[0])]
    assert (blobs[0] == blobs[2]).all() and not (blobs[0] == blobs[1]).all()


def test_old_style_keys_do_too() -> None:
    x = normal(2048)
    assert (compress(x, jax.random.PRNGKey(3)).blob == compress(x, jax.random.key(3)).blob).all()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (1023,), (5, 7, 31)])
def test_shapes_and_sizes(shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    y = restored(x, jax.random.key(4), 8)
    assert y.shape == x.shape
    np.testing.assert_allclose(y, x, atol=.05)


def test_vmap_gives_every_example_its_blob() -> None:
    x, keys = normal(2, 3, 700), jax.random.split(jax.random.key(5), (2, 3))
    many = jax.vmap(jax.vmap(compress))(x, keys)
    values = jax.vmap(jax.vmap(decompress))(many)
    for i in range(2):
        for j in range(3):
            one = compress(x[i, j], keys[i, j])
            assert (one.blob == many.blob[i, j]).all()
            assert (decompress(one) == values[i, j]).all()


def test_vmap_over_keys_alone_or_values_alone() -> None:
    x, keys = normal(2, 700), jax.random.split(jax.random.key(5), 2)
    by_keys = jax.vmap(restored, (None, 0))(x[0], keys)
    assert (by_keys[1] == restored(x[0], keys[1])).all()
    by_values = jax.vmap(restored, (0, None))(x, keys[0])
    assert (by_values[1] == restored(x[1], keys[0])).all()


def test_blobs_are_stacked_by_scan() -> None:
    x, keys = normal(3, 1500), jax.random.split(jax.random.key(6), 3)

    @jax.jit
    def there_and_back() -> jax.Array:
        _, kept = jax.lax.scan(lambda _, pair: (None, compress(*pair)), None, (x, keys))
        return jax.lax.scan(lambda _, one: (None, decompress(one)), None, kept)[1]

    y = there_and_back()
    for i in range(3):
        assert (y[i] == restored(x[i], keys[i])).all()


@pytest.mark.parametrize("bits", range(1, 9))
def test_packed_integers_are_exact(bits: int) -> None:
    codes = np.random.default_rng(bits).integers(0, 2**bits, (3, 1111), np.uint8)
    kept = pack(codes, bits)
    assert kept.blob.nbytes == -(-codes.size // 1024) * 128 * bits
    assert (unpack(kept) == codes).all()
    assert (jax.vmap(lambda row: unpack(pack(row, bits)))(codes) == codes).all()


def test_packed_bools_are_exact() -> None:
    mask = normal(1025) > 0
    y = jax.jit(lambda m: unpack(pack(m)))(mask)
    assert y.dtype == jnp.bool_ and (y == mask).all()


@pytest.mark.parametrize("bits", [2, 8])
def test_what_is_not_finite_does_not_vanish(bits: int) -> None:
    x = normal(3000).at[1500].set(jnp.nan).at[2999].set(-jnp.inf)
    y = restored(x, jax.random.key(4), bits)
    assert not jnp.isfinite(y[jnp.array([1500, 2999])]).any() and jnp.isfinite(y[:1024]).all()


def test_derivatives_are_refused() -> None:
    for differentiate in (jax.grad, jax.jacfwd):
        with pytest.raises(TypeError, match="compress has no derivative"):
            differentiate(lambda x: restored(x, jax.random.key(4)).sum())(normal(10))


def test_what_is_refused_is_named() -> None:
    key = jax.random.key(0)
    for bits in (0, 9, -3):
        with pytest.raises(ValueError, match=r"bits is .*must be 1\.\.8"):
            compress(normal(10), key, bits)
        with pytest.raises(ValueError, match="bits is"):
            pack(jnp.zeros(10, jnp.uint8), bits)
    with pytest.raises(TypeError, match="bits is 2.5: must be an integer"):
        compress(normal(10), key, 2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dtype of x is int32"):
        compress(jnp.arange(10), key)
    with pytest.raises(TypeError, match="dtype of codes is float32"):
        pack(normal(10))


def test_a_blob_of_another_size_is_refused_by_the_handler() -> None:
    call = jax.ffi.ffi_call("furl_compress", jax.ShapeDtypeStruct((16,), jnp.uint8))
    with pytest.raises(Exception, match="blob has 16 bytes: must have 272"):
        jax.block_until_ready(call(normal(1024), jnp.zeros(4, jnp.uint32), bits=np.int64(2)))
    blob = jax.ShapeDtypeStruct((272,), jnp.uint8)
    with pytest.raises(Exception, match="key must have 4 words"):
        jax.block_until_ready(jax.ffi.ffi_call("furl_compress", blob)(
            normal(1024), jnp.zeros(2, jnp.uint32), bits=np.int64(2)))


def test_shards_are_compressed_apart_under_shard_map() -> None:
    mesh = jax.make_mesh((2,), ("data",))
    rows = PartitionSpec("data")
    x, keys = jax.device_put((normal(4, 1000), jax.random.split(jax.random.key(8), 2)), NamedSharding(mesh, rows))

    def of_shard(x: jax.Array, key: jax.Array) -> jax.Array:
        return restored(x, key[0])

    run = jax.jit(jax.shard_map(of_shard, mesh=mesh, in_specs=(rows, rows), out_specs=rows))
    y, x_here, keys_here = map(np.asarray, (run(x, keys), x, jax.random.key_data(keys)))
    for part, k in enumerate(jax.random.wrap_key_data(jnp.asarray(keys_here))):
        assert (y[2 * part:2 * part + 2] == restored(jnp.asarray(x_here[2 * part:2 * part + 2]), k)).all()
    assert "all-gather" not in run.lower(x, keys).compile().as_text()


def test_sharded_arrays_are_gathered_under_jit() -> None:
    mesh = jax.make_mesh((2,), ("data",))
    x, key = normal(4, 1000), jax.random.key(9)
    run = jax.jit(restored)
    sharded = jax.device_put(x, NamedSharding(mesh, PartitionSpec("data")))
    assert (run(sharded, key) == restored(x, key)).all()
    assert "all-gather" in run.lower(sharded, key).compile().as_text()
