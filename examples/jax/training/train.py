# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Trains two small networks on Fashion-MNIST from the same weights, with and without compressed residuals."""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from data import load_images
from jax import Array
from nets import cnn, new_cnn, new_transformer, transformer

import furl_jax

NETS = {"CNN": (new_cnn, cnn, 0.05), "transformer": (new_transformer, transformer, 0.02)}


def variants(net: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Functions of key, weights and images."""
    recomputed = jax.checkpoint(net, policy=jax.checkpoint_policies.dots_saveable)
    return {
        "as JAX": lambda key, *arguments: net(*arguments),
        "2 bits": furl_jax.compress_residuals(net, bits=2),
        "1 bit": furl_jax.compress_residuals(net, bits=1),
        "checkpoint of products": lambda key, *arguments: recomputed(*arguments),
        "checkpoint of products, 4 bits": furl_jax.compress_residuals(recomputed),
    }


def loss_of(net: Callable[..., Any], weights: Any, key: Array, images: Array, labels: Array) -> Array:
    """The loss stays outside of what is compressed."""
    return -jax.nn.log_softmax(net(key, weights, images))[jnp.arange(labels.size), labels].mean()


def compile_step(net: Callable[..., Any], rate: float, *arguments: Any) -> Any:
    """Stochastic gradient descent with momentum, compiled for arguments of these shapes."""
    def step(weights: Any, momentum: Any, key: Array, images: Array, labels: Array) -> Any:
        loss, gradient = jax.value_and_grad(partial(loss_of, net))(weights, key, images, labels)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return jax.tree.map(lambda w, m: w - rate * m, weights, momentum), momentum, loss

    return jax.jit(step).lower(*arguments).compile()


def train(step: Any, weights: Any, batches: list[tuple[Any, Any]], seed: int) -> tuple[Any, list[float], float]:
    """The weights after these batches, the losses, and seconds of the processor per step."""
    momentum = jax.tree.map(jnp.zeros_like, weights)
    losses = []
    started = time.process_time()
    for i, (images, labels) in enumerate(batches):
        key = jax.random.fold_in(jax.random.key(seed), i)
        weights, momentum, loss = step(weights, momentum, key, images, labels)
        losses.append(float(loss))
    return weights, losses, (time.process_time() - started) / len(batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--nets", nargs="+", choices=list(NETS), default=list(NETS))
    options = parser.parse_args()
    images, labels = load_images("train")
    test_images, test_labels = (part[:2000] for part in load_images("t10k"))
    marks = [options.steps * part // 4 for part in (1, 2, 3, 4)]
    columns = " | ".join(f"loss to step {mark}" for mark in marks)
    print(f"| network | kept, MB | ratio | XLA's, MB | {columns} | accuracy, % | s/step |")
    print(f"|{'---|' * (len(marks) + 6)}")
    for name in options.nets:
        new_weights, net, rate = NETS[name]
        test = jax.jit(net)
        exact_bytes = 0
        for variant, function in variants(net).items():
            weights = new_weights(jax.random.key(0))
            one = jax.random.key(0), images[:options.batch], labels[:options.batch]
            kept = furl_jax.kept_bytes(partial(loss_of, function), weights, *one)
            exact_bytes = exact_bytes or kept
            step = compile_step(function, rate, weights, weights, *one)
            results = []
            for seed in range(options.seeds):
                draw = np.random.default_rng(seed).permutation(len(images))[:options.steps * options.batch]
                batches = [(images[some], labels[some]) for some in draw.reshape(-1, options.batch)]
                weights, losses, seconds = train(step, new_weights(jax.random.key(seed)), batches, seed)
                accuracy = float((test(weights, test_images).argmax(-1) == test_labels).mean())
                quarters = [np.mean(losses[mark - options.steps // 4:mark]) for mark in marks]
                results.append([*quarters, 100 * accuracy, seconds])
            *quarters, accuracy, seconds = np.mean(results, 0)
            print(f"| {name}, {variant} | {kept / 1e6:.2f} | {exact_bytes / kept:.1f}x | "
                  f"{step.memory_analysis().temp_size_in_bytes / 1e6:.1f} | "
                  f"{' | '.join(f'{loss:.3f}' for loss in quarters)} | {accuracy:.1f} | {seconds:.3f} |", flush=True)


if __name__ == "__main__":
    main()
