# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Weights, an input and a target, and whether gradients are right on average."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

WIDTH = 64
KEY = jax.random.key(11)


def normal(i: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.fold_in(KEY, i), shape)


X, TARGET = normal(0, 128, WIDTH), normal(1, 128, WIDTH)
W = {"a": normal(2, WIDTH, WIDTH) / 8, "b": normal(3, WIDTH, WIDTH) / 8, "scale": jnp.ones(WIDTH)}


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]).astype(np.float64)


def gradient(function: Callable[..., jax.Array], *leading: Any) -> Any:
    """Of the weights and of x; leading: the arguments before them."""
    at = len(leading)
    return jax.grad(lambda *a: (function(*a) * TARGET).sum(), argnums=(at, at + 1))(*leading, W, X)


def check_on_average(compressed: Callable[..., jax.Array], exact: np.ndarray, most_error: float,
                     num_draws: int = 32) -> None:
    draws = jax.jit(jax.vmap(lambda key: gradient(compressed, key)))(jax.random.split(KEY, num_draws))
    rows = np.stack([flat(jax.tree.map(lambda leaf: leaf[i], draws)) for i in range(num_draws)])
    error = np.linalg.norm(rows - exact, axis=1).mean()
    assert 0 < error < most_error * np.linalg.norm(exact)
    assert np.linalg.norm(rows.mean(0) - exact) < 1.2 * error / num_draws**.5
    assert exact @ rows.mean(0) / (exact @ exact) == pytest.approx(1, abs=.05)


def check_on_examples(one: Callable[[jax.Array, jax.Array], Any]) -> None:
    """one: the gradient for a key and an example, is the same alone as under vmap."""
    keys, x = jax.random.split(KEY, 3), X[:96].reshape(3, 32, WIDTH)
    many = jax.jit(jax.vmap(one))(keys, x)
    for i in range(3):
        np.testing.assert_allclose(flat(jax.tree.map(lambda leaf: leaf[i], many)), flat(one(keys[i], x[i])),
                                   rtol=1e-4, atol=1e-4)


def on_two_shards(function: Callable[..., jax.Array], **options: Any) -> Callable[..., jax.Array]:
    """The function, with a key for each shard."""
    rows, whole = jax.sharding.PartitionSpec("data"), jax.sharding.PartitionSpec()
    return jax.shard_map(
        lambda keys, w, x: function(keys[0], w, x), in_specs=(rows, whole, rows), out_specs=rows,
        mesh=jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,)), **options)
