# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Codes as what jax.checkpoint keeps, by the hook that JAX's new rematerialization has for primitives."""

from __future__ import annotations

from typing import Any, Callable, NoReturn

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .codes import KEY_WORDS, VALUE_DTYPES, Compressed, Packed, blob_bytes, check_key, code, restore_after

try:
    from jax.experimental import hijax
except ImportError:
    hijax = None  # type: ignore[assignment]

FLAG = "jax_remat3"
# Whether the rule gives what is kept as a result of its own.
KEPT_IS_A_RESULT = jax.__version_info__ >= (0, 12)
Primitive: Any = getattr(hijax, "HiPrim", getattr(hijax, "VJPHiPrimitive", object))


def keep(x: ArrayLike, key: Array, bits: int = 2) -> Array:
    """x. In a function under jax.checkpoint it is kept for the backward pass in `bits` bits per value: the forward
    pass goes on with x itself, and what the backward pass computes again starts from the restored values.

    x    : of float32, float16 or bfloat16 and of any shape. Bools are kept in one bit each, exact, whatever bits is.
    key  : of jax.random, a new one for each call: it is what the noise, of mean 0, depends on.
    bits : 1 to 8. The codes are those of compress.

    A gradient is right on average where the backward pass uses a restored value as it is, as a factor, and not where
    it computes functions of it. Under vmap every example has a blob of its own; if the key is not mapped too, all
    examples have the same noise.

    RuntimeError if JAX's flag jax_remat3 is off or missing: it must be on before jax.checkpoint is called.
    TypeError for derivatives outside of jax.checkpoint, where nothing would be kept in codes, and for those in
    forward mode or of second order. TypeError and ValueError name the argument that is refused.
    """
    if not getattr(jax.config, FLAG, False):
        raise RuntimeError(f"keep needs JAX's flag {FLAG}, which is off, or which jax {jax.__version__} does not have: "
                           f"jax.config.update('{FLAG}', True) before jax.checkpoint is called")
    check_key(key)
    x = jnp.asarray(x)
    if x.dtype not in VALUE_DTYPES and x.dtype != jnp.bool_:
        raise TypeError(f"dtype of x is {x.dtype}: must be float32, float16, bfloat16 or bool")
    blob_bytes(x.size, bits, are_codes=False)  # which checks bits
    words = jax.random.bits(key, (KEY_WORDS,), jnp.uint32)
    return _Keep(jax.typeof(x), jax.typeof(words), bits)(x, words)


class _Keep(Primitive):  # type: ignore[misc]
    """The identity of the first of its operands, with vmap's dimensions in front of both."""

    def __init__(self, x: Any, words: Any, bits: int, num_mapped: int = 0):
        self.in_avals, self.out_aval = (x, words), x
        self.params = {"bits": bits, "num_mapped": num_mapped}
        super().__init__()

    def expand(self, x: Array, words: Array) -> Array:
        return x

    def remat(self, policy: Any, x: Array, words: Array) -> tuple[Any, ...]:
        """What is computed now, what is kept, and what is computed in the backward pass instead."""
        bits = self.params["bits"]
        kept = self._mapped(lambda x, words: code(x, words, bits))(x, words)

        def restored(kept: Compressed | Packed, x: Array, words: Array) -> Array:
            # Not before the words are there: jax.checkpoint holds them back until it computes again.
            value: Array = self._mapped(restore_after)(kept, words)
            return value if value.dtype == jnp.bool_ else _with_derivative_of(value, x)

        if KEPT_IS_A_RESULT:
            return self(x, words), kept, restored
        return self(x, words), lambda x, words: restored(kept, x, words)

    def batch(self, axis: Any, operands: Any, dimensions: Any) -> tuple[Array, int]:
        x, words = (jnp.broadcast_to(operand, (axis.size, *operand.shape)) if dimension is None
                    else jnp.moveaxis(operand, dimension, 0)
                    for operand, dimension in zip(operands, dimensions, strict=True))
        mapped = _Keep(jax.typeof(x), jax.typeof(words), self.params["bits"], self.params["num_mapped"] + 1)
        return mapped(x, words), 0

    def vjp_fwd(self, *_: Any) -> NoReturn:
        raise TypeError("keep is differentiated outside of jax.checkpoint, with a policy that saves everything, in "
                        f"forward mode, or in what jax.checkpoint made when {FLAG} was off: no codes would be kept")

    jvp = lin = vjp_fwd

    def _mapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        for _ in range(self.params["num_mapped"]):
            function = jax.vmap(function)
        return function


@jax.custom_jvp
def _with_derivative_of(value: Array, x: Array) -> Array:
    return value


@_with_derivative_of.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return primals[0], tangents[1]
