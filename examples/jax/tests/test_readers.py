# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Which residuals get few bits: not those whose noise a derivative would enlarge."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from furl_jax import compress_residuals, kept_bytes

KEY = jax.random.key(5)
X, TARGET = (jax.random.normal(jax.random.fold_in(KEY, i), (128, 64)) for i in (0, 1))
W = {name: jax.random.normal(jax.random.fold_in(KEY, ord(name)), (64, 64)) / 8 for name in "abv"}


def errors(function: Callable[..., jax.Array], bits: int = 2) -> tuple[float, float]:
    """Of the gradient over its norm, and of its projection on the exact one."""
    def gradient(g: Callable[..., jax.Array], *key: jax.Array) -> np.ndarray:
        tree = jax.jit(jax.grad(lambda w: (g(*key, w, X) * TARGET).sum()))(W)
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]).astype(np.float64)

    exact, given = gradient(function), gradient(compress_residuals(function, bits), KEY)
    square = float(exact @ exact)
    return float(np.linalg.norm(given - exact)) / square**.5, abs(float(given @ exact) / square - 1)


def branches(y: jax.Array) -> jax.Array:
    return jax.lax.cond(y[0, 0] > 9, jnp.sin, lambda z: z / (z * z + .05), y)


def steps(y: jax.Array) -> jax.Array:
    parts = y.reshape(2, 64, 64)
    return jax.lax.scan(lambda carry, z: (carry, z / (z * z + .05)), 0., parts)[1].reshape(y.shape)


QUOTIENTS = {
    "reciprocal": lambda y: 1 / (y * y + .05),
    "fraction": lambda y: y / (y * y + .05),
    "negative power": lambda y: (y * y + .05)**-1.5,
    "square root": lambda y: jnp.sqrt(y * y + 1e-4),
    "sinc": jnp.sinc,
    "softmax before": lambda y: jnp.log(jax.nn.softmax(3 * y) + 1e-9),
    "tanh before": lambda y: jnp.log(1 - jnp.tanh(y)**2 + 1e-6),
    "sigmoid before": lambda y: jnp.log(jax.nn.sigmoid(3 * y) + 1e-6),
    "tanh behind": lambda y: jnp.tanh(1 / (y * y + .01)),
    "in a branch": branches,
    "in a scan": steps,
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_factors_beside_a_quotient_pass(name: str) -> None:
    error, bias = errors(lambda w, x: QUOTIENTS[name](x @ w["a"] @ w["b"] * 2))
    assert 0 < error < .5  # that of the products, at 2 bits
    assert bias < .1


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    logits = q @ k.T
    total = jax.nn.logsumexp(logits, -1, keepdims=True)
    return jnp.exp(logits - total) @ v, total


@jax.custom_vjp
def flash(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return attention(q, k, v)[0]


def flash_forward(q: jax.Array, k: jax.Array, v: jax.Array) -> Any:
    out, total = attention(q, k, v)
    return out, (q, k, v, out, total)


def flash_backward(kept: Any, cotangent: jax.Array) -> Any:
    """Computes the attention again, from products of what has been kept."""
    q, k, v, out, total = kept
    p = jnp.exp(q @ k.T - total)
    ds = p * (cotangent @ v.T - (cotangent * out).sum(-1, keepdims=True))
    return ds @ k, ds.T @ q, p.T @ cotangent


flash.defvjp(flash_forward, flash_backward)


def test_what_an_exponential_of_a_product_reads_passes() -> None:
    def function(w: Any, x: jax.Array) -> jax.Array:
        return flash(x @ w["a"] * 2, x @ w["b"] * 2, x @ w["v"])

    for bits, most_error in ((4, 1.), (8, .1)):
        error, bias = errors(function, bits)
        assert 0 < error < most_error and bias < .1
    kept = jax.eval_shape(lambda: jax.vjp(lambda *a: compress_residuals(function)(KEY, *a), W, X)[1])
    num_floats = sum(leaf.dtype == jnp.float32 and leaf.size == X.size for leaf in jax.tree.leaves(kept))
    assert num_floats == 3  # q, k and the argument x; v and the result are codes


@jax.custom_vjp
def doubled(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.exp(jax.lax.scan(lambda h, _: (h * b, None), a, None, 2)[0])


doubled.defvjp(lambda a, b: (doubled(a, b), (a, b)), lambda kept, c: (
    c * jnp.exp(jax.lax.scan(lambda h, _: (h * kept[1], None), kept[0], None, 2)[0]) * kept[1]**2,
    jnp.zeros_like(kept[1])))


def test_a_product_in_a_loop_is_looked_through() -> None:
    def function(w: Any, x: jax.Array) -> jax.Array:
        return doubled(x @ w["a"], x @ w["b"])

    exact = jax.grad(lambda w: (function(w, X) * TARGET).sum())(W)["a"]
    given = jax.grad(lambda w: (compress_residuals(function)(KEY, w, X) * TARGET).sum())(W)["a"]
    np.testing.assert_allclose(given, exact, rtol=1e-4, atol=1e-4 * float(abs(exact).max()))


def norm_and_softmax(w: Any, x: jax.Array) -> jax.Array:
    y = x @ w["a"]
    y = (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + 1e-5)
    z = jnp.exp(y @ w["b"])
    return x + jax.nn.silu(z / z.sum(-1, keepdims=True) @ w["v"])


def test_dividing_by_statistics_costs_nothing() -> None:
    compressed = compress_residuals(norm_and_softmax, 2)
    assert kept_bytes(compressed, KEY, W, X) < kept_bytes(norm_and_softmax, W, X) / 5
