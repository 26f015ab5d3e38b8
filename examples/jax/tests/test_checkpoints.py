# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""keep: what jax.checkpoint keeps in codes, and what it computes from them."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from furl_jax import compress, decompress, keep, kept_bytes
from gradients import KEY, TARGET, W, X, check_on_average, check_on_examples, flat, gradient, on_two_shards

FLAG = "jax_remat3"
NUM_LAYERS = 6
# Of one array of X's size: codes of 2 bits with the key's four words, and a mask.
CODES, MASK = X.size // 4 + 64 + 16, X.size // 8

pytestmark = pytest.mark.skipif(not hasattr(jax.config, FLAG), reason=f"jax {jax.__version__} has no {FLAG}")


@pytest.fixture(autouse=True)
def flag() -> Iterator[None]:
    before = getattr(jax.config, FLAG)
    jax.config.update(FLAG, True)
    yield
    jax.config.update(FLAG, before)


def plain(w: Any, x: jax.Array) -> jax.Array:
    return x + jax.nn.relu(x @ w["a"]) @ w["b"]


def marked(key: jax.Array, w: Any, x: jax.Array) -> jax.Array:
    keys = jax.random.split(key, 3)
    y = keep(x, keys[0]) @ w["a"]
    y = jnp.where(keep(y > 0, keys[1]), y, 0)
    return x + keep(y, keys[2]) @ w["b"]


def scanned(layer: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def layers(key: jax.Array, w: Any, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda h, k: (layer(k, w, h), None), x, jax.random.split(key, NUM_LAYERS))[0]

    return layers


EXACT_LAYERS = scanned(lambda key, w, x: plain(w, x))


def test_codes_alone_are_kept_and_gradients_are_right_on_average() -> None:
    layer = jax.checkpoint(marked)
    assert kept_bytes(layer, KEY, W, X) == 2 * CODES + MASK
    check_on_average(layer, flat(gradient(plain)), .5)


def test_values_are_those_of_the_function() -> None:
    layer = jax.checkpoint(marked)
    values, _ = jax.vjp(lambda w, x: layer(KEY, w, x), W, X)
    assert (values == plain(W, X)).all()


@pytest.mark.parametrize("function, num_products", [(marked, 4), (lambda key, w, x: plain(w, keep(x, key)), 5)])
def test_what_is_behind_marks_is_not_computed_again(function: Callable[..., jax.Array], num_products: int) -> None:
    _, pull = jax.vjp(jax.checkpoint(function), KEY, W, X)
    assert jax.jit(lambda pull, target: pull(target)).lower(pull, TARGET).as_text().count("dot_general") == num_products


def test_layers_in_a_scan() -> None:
    layers = scanned(jax.checkpoint(marked))
    assert kept_bytes(layers, KEY, W, X) < NUM_LAYERS * (2 * CODES + MASK + 16)
    check_on_average(layers, flat(gradient(EXACT_LAYERS, KEY)), .6, 8)


def test_a_scan_and_a_branch_inside() -> None:
    outside, inside = scanned(jax.checkpoint(marked)), jax.checkpoint(scanned(marked))
    branch = jax.checkpoint(lambda key, w, x: jax.lax.cond(x[0, 0] < 9, marked, lambda key, w, x: x, key, w, x))
    assert kept_bytes(inside, KEY, W, X) <= kept_bytes(outside, KEY, W, X)
    assert kept_bytes(branch, KEY, W, X) == 2 * CODES + MASK
    for one, other in ((inside, outside), (branch, jax.checkpoint(marked))):
        given, expected = (jax.jit(lambda f=f: gradient(f, KEY))() for f in (one, other))
        np.testing.assert_allclose(flat(given), flat(expected), rtol=1e-4, atol=1e-3)


def test_the_input_of_a_layer_that_is_computed_again() -> None:
    def layer(key: jax.Array, w: Any, x: jax.Array) -> jax.Array:
        return plain(w, keep(x, key))

    def allocated(function: Callable[..., jax.Array]) -> int:
        step = jax.jit(lambda key, w, x: jax.grad(lambda w: (function(key, w, x)**2).sum())(w))
        return step.lower(KEY, W, jnp.ones((4096, X.shape[1]))).compile().memory_analysis().temp_size_in_bytes

    as_jax = scanned(jax.checkpoint(lambda key, w, x: plain(w, x)))
    in_codes = scanned(jax.checkpoint(layer))
    assert kept_bytes(as_jax, KEY, W, X) == NUM_LAYERS * X.nbytes
    assert kept_bytes(in_codes, KEY, W, X) < NUM_LAYERS * (CODES + 16)
    assert allocated(in_codes) < .55 * allocated(as_jax)


@pytest.mark.parametrize("dtype, bits", [(jnp.float32, 1), (jnp.float16, 4), (jnp.bfloat16, 8)])
@pytest.mark.parametrize("shape", [(), (3, 5), (1025,), (0, 4)])
def test_the_backward_pass_reads_what_compress_restores(dtype: Any, bits: int, shape: tuple[int, ...]) -> None:
    x = jax.random.normal(KEY, shape).astype(dtype)
    product = jax.checkpoint(lambda w, x: (keep(x, KEY, bits) * w).sum())
    of_w, of_x = jax.grad(product, argnums=(0, 1))(jnp.full(shape, 3, dtype), x)
    assert of_w.dtype == of_x.dtype == dtype
    assert (of_w == decompress(compress(x, KEY, bits))).all() and (of_x == 3).all()


def test_vmap_over_examples_with_keys() -> None:
    layer = jax.checkpoint(marked)

    @jax.jit
    def one(key: jax.Array, x: jax.Array) -> Any:
        return jax.grad(lambda w: layer(key, w, x).sum())(W)

    check_on_examples(one)


def test_vmap_over_the_last_dimension_with_one_key() -> None:
    layer, x = jax.checkpoint(marked), X[:96].reshape(32, -1, 3)

    def many(w: Any) -> jax.Array:
        return jax.vmap(layer, in_axes=(None, None, 2), out_axes=2)(KEY, w, x)

    def one_by_one(w: Any) -> jax.Array:
        return jnp.stack([layer(KEY, w, x[..., i]) for i in range(3)], 2)

    given, expected = (jax.jit(jax.grad(lambda w: (f(w)**2).sum()))(W) for f in (many, one_by_one))
    np.testing.assert_allclose(flat(given), flat(expected), rtol=1e-4, atol=1e-3)
    assert kept_bytes(many, W) < 1.05 * (2 * x.size / 4 + x.size / 8)


def test_gradients_under_shard_map_are_those_of_the_shards() -> None:
    layer, keys = jax.checkpoint(marked), jax.random.split(KEY, 2)

    @jax.jit
    def of_shard(key: jax.Array, x: jax.Array, target: jax.Array) -> Any:
        return jax.vjp(lambda w, x: layer(key, w, x), W, x)[1](target)

    (of_w_0, of_x_0), (of_w_1, of_x_1) = map(of_shard, keys, jnp.split(X, 2), jnp.split(TARGET, 2))
    expected = jax.tree.map(jnp.add, of_w_0, of_w_1), of_x_0, of_x_1
    given = jax.jit(lambda keys: gradient(on_two_shards(layer, check_vma=False), keys))(keys)
    np.testing.assert_allclose(flat(given), flat(expected), rtol=1e-4, atol=1e-3)


def test_flax_modules() -> None:
    nn = pytest.importorskip("flax.linen")

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            return x + nn.Dense(x.shape[-1])(keep(x, self.make_rng("noise")))

    model = nn.remat(Layer)()
    weights = model.init({"params": KEY, "noise": KEY}, X)

    def loss(weights: Any) -> jax.Array:
        return (model.apply(weights, X, rngs={"noise": KEY}) * TARGET).sum()

    of_kernel = jax.grad(loss)(weights)["params"]["Dense_0"]["kernel"]
    exact = X.T @ TARGET
    assert 0 < float(jnp.linalg.norm(of_kernel - exact)) < .5 * float(jnp.linalg.norm(exact))
    assert kept_bytes(loss, weights) <= CODES + TARGET.nbytes


def test_derivatives_that_would_keep_nothing_in_codes_are_refused() -> None:
    layer = jax.checkpoint(marked)
    for differentiate in (lambda: gradient(marked, KEY), lambda: jax.jvp(lambda x: layer(KEY, W, x), (X,), (X,))):
        with pytest.raises(TypeError, match="keep is differentiated outside of jax.checkpoint"):
            differentiate()


def test_derivatives_of_second_order_are_refused() -> None:
    layer = jax.checkpoint(lambda key, w, x: jnp.tanh(keep(x @ w["a"], key)))
    for differentiate in (jax.jvp, lambda f, w, t: jax.vjp(f, *w)[1](*t)):
        with pytest.raises(TypeError, match="none of second order"):
            differentiate(jax.jit(jax.grad(lambda w: layer(KEY, w, X).sum())), (W,), (W,))


def test_linearize_and_its_transpose() -> None:
    layer = jax.checkpoint(marked)
    _, derivative = jax.linearize(lambda w: layer(KEY, w, X), W)
    expected = jax.grad(lambda w: (layer(KEY, w, X) * TARGET).sum())(W)
    given, = jax.linear_transpose(derivative, W)(TARGET)
    np.testing.assert_allclose(flat(given), flat(expected), rtol=1e-4, atol=1e-3)


def test_what_is_refused_is_named() -> None:
    for x, key, bits, error, refused in [
            (X, KEY, 9, ValueError, "bits"), (X, KEY, 2.5, TypeError, "bits is 2.5"),
            (X, 0, 2, TypeError, "key is 0: must be one key"),
            (jnp.arange(3), KEY, 2, TypeError, "dtype of x is int32")]:
        with pytest.raises(error, match=refused):
            keep(x, key, bits)  # type: ignore[arg-type]


def test_without_the_flag_it_is_refused() -> None:
    jax.config.update(FLAG, False)
    with pytest.raises(RuntimeError, match="jax_remat3, which is off"):
        gradient(jax.checkpoint(marked), KEY)
