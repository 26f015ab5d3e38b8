# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Two small networks: functions of weights and images, which return 10 logits for each image."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Weights = dict[str, Any]


def _normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Of deviation sqrt(2 / fan-in)."""
    fan_in = 1
    for width in shape[:-1]:
        fan_in *= width
    return jax.random.normal(key, shape) * (2.0 / fan_in)**0.5


def new_cnn(key: Array) -> Weights:
    widths = [1, 16, 32, 32, 64]
    keys = jax.random.split(key, len(widths))
    return {"kernels": [_normal(k, (3, 3, a, b)) for k, a, b in zip(keys, widths, widths[1:])],
            "scales": [jnp.ones(b) for b in widths[1:]], "shifts": [jnp.zeros(b) for b in widths[1:]],
            "out": _normal(keys[-1], (widths[-1], 10))}


def cnn(weights: Weights, images: Array) -> Array:
    """Four convolutions with batch norm and ReLU, the second and the fourth of stride 2."""
    h = images
    for i, kernel in enumerate(weights["kernels"]):
        strides = (2, 2) if i % 2 else (1, 1)
        h = jax.lax.conv_general_dilated(h, kernel, strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        h = _normalise(h, (0, 1, 2)) * weights["scales"][i] + weights["shifts"][i]
        h = jax.nn.relu(h)
    return h.mean((1, 2)) @ weights["out"]


def new_transformer(key: Array, depth: int = 2, width: int = 64) -> Weights:
    keys = iter(jax.random.split(key, 3 + 4 * depth))
    blocks = [{"norms": jnp.ones((2, width)), "qkv": _normal(next(keys), (width, 3 * width)),
               "project": _normal(next(keys), (width, width)) / 4, "up": _normal(next(keys), (width, 4 * width)),
               "down": _normal(next(keys), (4 * width, width)) / 4} for _ in range(depth)]
    return {"patch": _normal(next(keys), (16, width)), "place": _normal(next(keys), (49, width)) / 4,
            "blocks": blocks, "out": _normal(next(keys), (width, 10))}


def transformer(weights: Weights, images: Array) -> Array:
    """49 patches of 4 x 4, transformer blocks, and the mean of the tokens."""
    patches = images.reshape(-1, 7, 4, 7, 4).swapaxes(2, 3).reshape(-1, 49, 16)
    h = patches @ weights["patch"] + weights["place"]
    for block in weights["blocks"]:
        h = h + _attention(_normalise(h, (-1,)) * block["norms"][0], block)
        h = h + jax.nn.gelu(_normalise(h, (-1,)) * block["norms"][1] @ block["up"]) @ block["down"]
    return _normalise(h, (-1,)).mean(1) @ weights["out"]


def _attention(h: Array, block: Weights, num_heads: int = 4) -> Array:
    q, k, v = jnp.split((h @ block["qkv"]).reshape(*h.shape[:2], num_heads, -1), 3, axis=-1)
    logits = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1]**0.5
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(logits), v).reshape(h.shape) @ block["project"]


def _normalise(x: Array, axes: tuple[int, ...]) -> Array:
    return (x - x.mean(axes, keepdims=True)) * jax.lax.rsqrt(x.var(axes, keepdims=True) + 1e-5)
