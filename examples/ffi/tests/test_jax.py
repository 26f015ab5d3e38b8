# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""furl_tvm_jax under jit: bytes as the headers make them, gradients, and what a backward pass keeps."""
import cases
import furl_tvm_jax
import jax
import jax.numpy as jnp
import numpy
import pytest

DTYPES = {"f32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16}
KEY = numpy.array([cases.KEY[0], 0, cases.KEY[1], 0], numpy.uint32)


@pytest.mark.parametrize("case", [c for c in cases.CODED if c.name != "empty"], ids=lambda case: case.name)
def test_bytes_are_those_of_the_headers(case):
    plan = furl_tvm_jax.make_plan(case.shape, **case.codec)
    assert plan == case.read("plan").tobytes()
    x = jnp.asarray(case.read("x")).view(DTYPES[case.dtype]).reshape(case.shape)

    @jax.jit
    def both(x, key):
        blob = furl_tvm_jax.compress(plan, x, key)
        return blob, furl_tvm_jax.decompress(plan, blob, key, case.shape, x.dtype)

    blob, y = both(x, KEY)
    assert numpy.asarray(blob).tobytes() == case.read("blob").tobytes()
    assert numpy.asarray(y).tobytes() == case.read("y").tobytes()


def test_gradients_of_kept_blobs():
    x = jax.random.normal(jax.random.key(0), (64, 256))
    w = jax.random.normal(jax.random.key(1), (256, 256)) / 16

    def block(x, w):
        return jax.nn.gelu(x @ w)

    kept = furl_tvm_jax.keep_compressed(block, bits=4, coding="rotated")
    exact = jax.grad(lambda w: jnp.sum(jnp.cos(block(x, w))))(w)
    found = jax.jit(jax.grad(lambda w, key: jnp.sum(jnp.cos(kept(x, key, w)))))
    first, second = found(w, KEY), found(w, KEY + numpy.array([0, 0, 1, 0], numpy.uint32))
    for gradient in (first, second):
        assert jnp.linalg.norm(gradient - exact) < 0.2 * jnp.linalg.norm(exact)
    assert not (first == second).all()  # the key is an operand, not a constant of the compiled function
    assert (kept(x, KEY, w) == block(x, w)).all()
    residuals = jax.tree.leaves(jax.vjp(lambda x: kept(x, KEY, w), x)[1])
    assert sum(leaf.nbytes for leaf in residuals if leaf.shape != w.shape) < 0.14 * x.nbytes


def test_a_refusal_is_an_error_of_jax():
    x = jnp.zeros((4, 300))
    plan = furl_tvm_jax.make_plan((4, 301))
    with pytest.raises(Exception, match="x is 1200: must have as many elements as the plan's shape"):
        jax.block_until_ready(furl_tvm_jax.compress(plan, x, KEY))
