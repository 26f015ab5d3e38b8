# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""compress_residuals: bytes, exactness where it is promised, and gradients that are right on average."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

from furl_jax import compress_residuals, kept_bytes
from gradients import (KEY, TARGET, W, WIDTH, X, check_on_average, check_on_examples, flat, gradient,
                       on_two_shards)


def block(w: Any, x: jax.Array) -> jax.Array:
    """Norm, products, softmax, ReLU and GELU."""
    y = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * w["scale"]
    y = jax.nn.softmax(y @ w["a"]) @ w["b"]
    y = jax.nn.relu(y * 8) @ w["a"]
    return x + jax.nn.gelu(y) @ w["b"]


@pytest.mark.parametrize("bits, ratio, most_error", [(2, 6, .5), (1, 6.5, 1.)])
def test_gradients_are_right_on_average(bits: int, ratio: float, most_error: float) -> None:
    compressed = compress_residuals(block, bits)
    assert kept_bytes(compressed, KEY, W, X) < kept_bytes(block, W, X) / ratio
    check_on_average(compressed, flat(gradient(block)), most_error)


def test_with_checkpoint_few_are_kept() -> None:
    recomputed = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_saveable)
    compressed = compress_residuals(recomputed)
    assert kept_bytes(compressed, KEY, W, X) < kept_bytes(recomputed, W, X) / 7.5
    # What is computed from restored values is not right on average, but close.
    given, exact = flat(jax.jit(lambda: gradient(compressed, KEY))()), flat(gradient(block))
    assert 0 < np.linalg.norm(given - exact) < .3 * np.linalg.norm(exact)


def test_values_are_those_of_the_function() -> None:
    assert (compress_residuals(block)(KEY, W, X) == block(W, X)).all()


def test_noise_follows_the_key() -> None:
    compressed = jax.jit(lambda key: gradient(compress_residuals(block), key))
    a, b, c = (flat(compressed(jax.random.fold_in(KEY, i))) for i in (0, 1, 0))
    assert (a == c).all() and not (a == b).all()


def test_a_relu_is_exact_and_takes_a_bit_per_value() -> None:
    def layer(w: Any, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x @ w["a"])

    compressed = compress_residuals(layer)
    assert kept_bytes(layer, W, X) == X.size  # a byte for each bool
    assert kept_bytes(compressed, KEY, W, X) == X.size // 8
    assert (flat(gradient(compressed, KEY)) == flat(gradient(layer))).all()


def test_what_is_made_of_weights_alone_passes() -> None:
    def layer(w: Any, x: jax.Array) -> jax.Array:
        return jnp.tanh(jnp.tanh(w["a"]) @ x.T).T

    compressed = compress_residuals(lambda w, x: (x @ jnp.sin(w["a"]).astype(jnp.bfloat16)).astype(jnp.float32))
    exact = gradient(lambda w, x: (x @ jnp.sin(w["a"]).astype(jnp.bfloat16)).astype(jnp.float32))
    assert (flat(gradient(compressed, KEY)) == flat(exact)).all()
    noisy = gradient(compress_residuals(layer, weights=()), KEY)
    assert not (flat(noisy) == flat(gradient(layer))).all()


def test_arguments_pass_unless_they_are_activations() -> None:
    def product(w: Any, x: jax.Array) -> jax.Array:
        return x @ w["a"]

    as_argument = compress_residuals(product)
    assert kept_bytes(as_argument, KEY, W, X) == 0
    assert (flat(gradient(as_argument, KEY)) == flat(gradient(product))).all()
    as_activation = compress_residuals(product, activations=1)
    assert X.nbytes / 16 < kept_bytes(as_activation, KEY, W, X) < X.nbytes / 14
    check_on_average(as_activation, flat(gradient(product)), .4)


def test_what_the_backward_pass_does_not_read_is_not_kept() -> None:
    def layer(w: Any, x: jax.Array) -> jax.Array:
        return jax.nn.softplus(x @ w["a"]) @ w["b"]

    compressed = compress_residuals(layer)
    assert kept_bytes(layer, W, X) > 2 * X.nbytes
    assert kept_bytes(compressed, KEY, W, X) < 1.3 * X.size  # a byte of exp, and 2 bits for a product
    check_on_average(compressed, flat(gradient(layer)), .5)


def test_small_arrays_pass() -> None:
    compressed = compress_residuals(block, min_elements=10**6)
    np.testing.assert_allclose(flat(gradient(compressed, KEY)), flat(gradient(block)), rtol=1e-4, atol=1e-4)


def test_statistics_and_denominators_pass() -> None:
    def scale(w: Any, x: jax.Array) -> jax.Array:
        lines = x.reshape(-1, 8)
        return (lines * w["scale"][0] / (1 + (lines**2).sum(-1, keepdims=True))).reshape(x.shape)

    kept = jax.tree.leaves(jax.eval_shape(lambda: jax.vjp(compress_residuals(scale), KEY, W, X)[1]))
    floats = [leaf.shape for leaf in kept if leaf.dtype == jnp.float32]
    assert (1024, 1) in floats  # 1024 or more of them, yet exact


def test_the_input_of_max_pooling_passes() -> None:
    def pool(w: Any, x: jax.Array) -> jax.Array:
        y = jax.lax.reduce_window(x * w["scale"], -jnp.inf, jax.lax.max, (1, 2), (1, 2), "VALID")
        return jnp.concatenate([y, y], -1)

    assert (flat(gradient(compress_residuals(pool), KEY)) == flat(gradient(pool))).all()


def layers(w: Any, x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda h, _: (block(w, h), None), x, None, 3)[0]


def test_a_scan_inside() -> None:
    compressed = compress_residuals(layers)
    assert kept_bytes(compressed, KEY, W, X) < kept_bytes(layers, W, X) / 6
    check_on_average(compressed, flat(gradient(layers)), .6, 8)


def test_inside_of_a_scan() -> None:
    layer = compress_residuals(block, activations=1)

    def compressed(key: jax.Array, w: Any, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda h, k: (layer(k, w, h), None), x, jax.random.split(key, 3))[0]

    assert kept_bytes(compressed, KEY, W, X) < kept_bytes(layers, W, X) / 6
    check_on_average(compressed, flat(gradient(layers)), .6, 8)


def test_what_checkpoint_names_is_kept_compressed() -> None:
    def named(w: Any, x: jax.Array) -> jax.Array:
        h = jax.nn.gelu(checkpoint_name(x @ w["a"], "kept"))
        return jax.nn.gelu(checkpoint_name(h @ w["b"], "kept"))

    policy = jax.checkpoint_policies.save_only_these_names("kept")
    compressed = compress_residuals(jax.checkpoint(named, policy=policy))
    assert 2 * X.size / 2 < kept_bytes(compressed, KEY, W, X) < 1.05 * 2 * X.size / 2  # 4 bits each
    check_on_average(compressed, flat(gradient(named)), .3)


def test_vmap_over_examples_with_keys() -> None:
    compressed = compress_residuals(lambda w, x: jax.nn.relu(x @ w["a"]) @ w["b"])

    def one(key: jax.Array, x: jax.Array) -> Any:
        return jax.grad(lambda w: compressed(key, w, x).sum())(W)

    check_on_examples(one)


def test_gradients_under_shard_map() -> None:
    def function(w: Any, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x @ w["a"]) @ w["b"]

    sharded = on_two_shards(compress_residuals(function, activations=1))
    given, exact = jax.jit(lambda keys: gradient(sharded, keys))(jax.random.split(KEY, 2)), flat(gradient(function))
    assert 0 < np.linalg.norm(flat(given) - exact) < .5 * np.linalg.norm(exact)
    assert flat(given) @ exact / (exact @ exact) == pytest.approx(1, abs=.1)


def test_integers_keys_and_other_leaves_are_arguments_too() -> None:
    def drop(w: Any, x: jax.Array, key: jax.Array, rows: jax.Array, name: str) -> jax.Array:
        y = x[rows] @ w[name]
        return jnp.where(jax.random.bernoulli(key, .5, y.shape), y, 0) * 2

    rows = jnp.arange(128)[::-1]
    exact = gradient(lambda w, x: drop(w, x, KEY, rows, "a"))
    compressed = compress_residuals(drop, activations=1)
    given = gradient(lambda key, w, x: compressed(key, w, x, KEY, rows, "a"), KEY)
    assert (flat(given[1]) == flat(exact[1])).all()  # of the mask, exact
    assert not (flat(given[0]) == flat(exact[0])).all()


def test_equinox_modules() -> None:
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(WIDTH, WIDTH, 128, 2, key=KEY)

    def apply(model: Any, x: jax.Array) -> jax.Array:
        return jax.vmap(model)(x)

    compressed = compress_residuals(apply)
    assert kept_bytes(compressed, KEY, model, X) < kept_bytes(apply, model, X) / 6
    exact = eqx.filter_grad(lambda m: (apply(m, X) * TARGET).sum())(model)
    given = eqx.filter_jit(eqx.filter_grad(lambda m: (compressed(KEY, m, X) * TARGET).sum()))(model)
    assert jax.tree.structure(given) == jax.tree.structure(exact)
    assert flat(given) @ flat(exact) / (flat(exact) @ flat(exact)) == pytest.approx(1, abs=.1)


def test_flax_modules() -> None:
    nn = pytest.importorskip("flax.linen")
    model = nn.Sequential([nn.Dense(128), nn.relu, nn.LayerNorm(), nn.Dense(WIDTH)])
    weights = model.init(KEY, X)
    compressed = compress_residuals(model.apply)
    exact = jax.grad(lambda w: (model.apply(w, X) * TARGET).sum())(weights)
    given = jax.jit(jax.grad(lambda w: (compressed(KEY, w, X) * TARGET).sum()))(weights)
    assert flat(given) @ flat(exact) / (flat(exact) @ flat(exact)) == pytest.approx(1, abs=.1)


def test_what_is_refused_is_named() -> None:
    for given, refused in [({"bits": 9}, r"bits is 9: must be 1\.\.8"), ({"bits": 2.5}, "bits is 2.5"),
                           ({"pointwise_bits": 0}, "pointwise_bits is 0"), ({"weights": -1}, "weights is -1"),
                           ({"weights": "a"}, "weights is a"), ({"min_elements": -1}, "min_elements is -1")]:
        with pytest.raises(ValueError, match=refused):
            compress_residuals(block, **given)  # type: ignore[arg-type]
    for name in ("weights", "activations"):
        with pytest.raises(ValueError, match=f"{name} is 2: .* 2 arguments"):
            compress_residuals(block, **{name: 2})(KEY, W, X)  # type: ignore[arg-type]
    for key in (None, 0, jax.random.split(KEY, 2), jnp.ones(2)):
        with pytest.raises(TypeError, match="key is .*: must be one key"):
            compress_residuals(block)(key, W, X)
    with pytest.raises(TypeError, match="x given by keyword"):
        compress_residuals(block)(KEY, W, x=X)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_differentiated_values_that_are_closed_over_are_refused(transform: Callable[..., Any]) -> None:
    for loss in (lambda w: compress_residuals(lambda x: x @ w["a"])(KEY, X).sum(),
                 lambda w: compress_residuals(lambda v, x: x @ w["a"] @ v["b"])(KEY, w, X).sum(),
                 lambda w: jax.vmap(lambda a: compress_residuals(lambda x: x @ a)(KEY, X))(w["a"][None]).sum()):
        with pytest.raises(TypeError, match="closes over a value that is differentiated"):
            transform(jax.grad(loss))(W)


def test_derivatives_of_second_order_are_refused() -> None:
    of_a = jax.jit(jax.grad(lambda a: (compress_residuals(block)(KEY, W | {"a": a}, X)**2).sum()))
    for differentiate in (jax.jacfwd, jax.jacrev):
        with pytest.raises(TypeError, match="none of second order"):
            differentiate(of_a)(W["a"])


def test_the_backward_pass_is_linear_and_has_a_derivative() -> None:
    _, pull = jax.vjp(lambda w: compress_residuals(block)(KEY, w, X), W)
    given, = pull(TARGET)
    of_target, = jax.vjp(pull, TARGET)[1]((W,))
    assert jnp.vdot(of_target, TARGET) == pytest.approx(flat(given) @ flat(W), rel=1e-3)


def test_a_print_in_the_forward_pass_and_in_the_backward_pass(capfd: pytest.CaptureFixture[str]) -> None:
    @jax.custom_vjp
    def printing(y: jax.Array) -> jax.Array:
        return y

    def backward(y: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
        jax.debug.print("backward {}", y[0, 0])
        return cotangent,

    printing.defvjp(lambda y: (y, y), backward)

    def layer(w: Any, x: jax.Array) -> jax.Array:
        jax.debug.print("forward {}", x[0, 0])
        return jax.nn.relu(printing(x @ w["a"]))

    given = jax.jit(lambda: gradient(compress_residuals(layer), KEY))()
    np.testing.assert_allclose(flat(given), flat(gradient(lambda w, x: jax.nn.relu(x @ w["a"]))), rtol=1e-4, atol=1e-3)
    jax.effects_barrier()
    assert [line.split()[0] for line in capfd.readouterr().out.splitlines()] == ["forward", "backward"]


def test_results_may_be_numbers() -> None:
    compressed = compress_residuals(lambda w, x: (x @ w["a"], {"scale": 3, "none": None}))

    def loss(w: Any) -> jax.Array:
        y, other = compressed(KEY, w, X)
        return (y * other["scale"] * TARGET).sum()

    np.testing.assert_allclose(jax.grad(loss)(W)["a"], 3 * X.T @ TARGET, rtol=1e-4, atol=1e-3)


def test_xla_keeps_and_restores_one_layer_after_the_other() -> None:
    def deep(w: Any, x: jax.Array) -> jax.Array:
        for _ in range(8):
            x = jax.nn.relu(x @ w["a"])
        return x

    def allocated(function: Callable[..., jax.Array]) -> int:
        step = jax.jit(lambda key, w, x: jax.grad(lambda w: (function(key, w, x)**2).sum())(w))
        return step.lower(KEY, W, jnp.ones((4096, WIDTH))).compile().memory_analysis().temp_size_in_bytes

    assert allocated(compress_residuals(deep)) < allocated(lambda key, w, x: deep(w, x)) / 2
