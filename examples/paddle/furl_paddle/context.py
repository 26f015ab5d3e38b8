# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""compress_saved, and how it knows what reads a saved tensor.

Paddle's hook gets the tensor alone, whose grad_fn is the operator that made it, not the one that saves it. So the
layers say it: while the forward of a layer that is Paddle's own and named below runs, its input or output is what it
saves. Whatever else is saved passes, since its reader is unknown: max pooling, for one, compares what it saved, and a
log-softmax is read by its small differences."""

from __future__ import annotations

from dataclasses import dataclass

import paddle
from paddle import nn
from paddle.jit.dy2static.program_translator import StaticFunction

from .saved import FLOATS, ROTATED, Codes, Passed, Signs

# By the forward method: a subclass with another one may save other tensors.
LINEAR = {layer.forward for layer in (nn.Linear, nn.Conv1D, nn.Conv2D, nn.Conv3D, nn.Conv1DTranspose,
                                      nn.Conv2DTranspose, nn.Conv3DTranspose)}
SMOOTH = {layer.forward for layer in (nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D, nn.LayerNorm, nn.GroupNorm,
                                      nn.InstanceNorm1D, nn.InstanceNorm2D, nn.InstanceNorm3D, nn.GELU, nn.Silu)}
RELU = {nn.ReLU.forward}
# Backward passes of cross-entropies write the gradient over the softmax that was saved.
OVERWRITES = "CrossEntropy"


@dataclass
class _Running:
    """A layer whose forward runs, and its input, or None where that is given by its keyword. What is alive shares its
    place in memory with no other tensor."""
    layer: nn.Layer
    input: paddle.Tensor | None

    def has_input(self, x):
        """Whether x is the input, or autocast's copy of it: that of the weight has the weight's shape."""
        if self.input is None:
            return False
        weight = getattr(self.layer, "weight", None)
        is_cast = (x.dtype != self.input.dtype and x.shape == self.input.shape
                   and (weight is None or x.shape != weight.shape))
        return x.data_ptr() == self.input.data_ptr() or is_cast


def _in_range(name, value, low, high):
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"furl: {name} is {value!r}: must be an integer from {low} to {high}")


class compress_saved:
    """A context in which what autograd saves is compressed, and restored when the backward pass reads it.

    model        : a layer. What its sublayers save is compressed, if they are named here; all else passes.
    bits         : for the inputs of Linear and convolutions: 1 to 4. The codes are rotated ones, as EDEN (Vargaftik et
                   al., ICML 2022). ReLU keeps a bit per value.
    other_bits   : for the inputs of batch, layer, group and instance norms, GELU and SiLU: 1 to 8, in groups of 256
                   with a minimum and a step, as ActNN (Chen et al., ICML 2021). None: they pass.
    min_elements : tensors with fewer values pass.

    Integers, bools, other floats, parameters, buffers and tensors with gaps in memory always pass. The context can be
    entered again and again, but not twice at a time. Raises ValueError for an argument out of range, and RuntimeError
    for layers made by paddle.jit.to_static, whose graphs save without calling hooks."""

    def __init__(self, model, bits=2, other_bits=8, min_elements=1024):
        if not isinstance(model, nn.Layer):
            raise TypeError(f"furl: model is a {type(model).__name__}: must be a paddle.nn.Layer")
        _in_range("bits", bits, 1, 4)
        if other_bits is not None:
            _in_range("other_bits", other_bits, 1, 8)
        _in_range("min_elements", min_elements, 1, 2**62)
        self.model, self.bits, self.other_bits, self.min_elements = model, bits, other_bits, min_elements
        self._hooks = None  # while it is entered

    def __enter__(self):
        if self._hooks is not None:
            raise RuntimeError("furl: this context is entered already")
        layers = list(self.model.named_sublayers(include_self=True))
        for name, layer in layers:
            if isinstance(layer.forward, StaticFunction) or isinstance(layer, paddle.jit.TranslatedLayer):
                _refuse_graph(name)
        self._counts = {}
        self._running = None  # after a layer that raises, until the next one ends
        self._own_memory = {p.data_ptr() for p in [*self.model.parameters(), *self.model.buffers()]}
        self._hooks = []
        for _, layer in layers:
            if type(layer).forward in LINEAR | SMOOTH | RELU:
                self._hooks.append(layer.register_forward_pre_hook(self._begin))
                self._hooks.append(layer.register_forward_post_hook(self._end))
        self._saved_tensors = paddle.autograd.saved_tensors_hooks(self._pack, _unpack)
        self._saved_tensors.__enter__()
        return self

    def __exit__(self, *error):
        self._saved_tensors.__exit__(*error)
        for hook in self._hooks:
            hook.remove()
        self._hooks = None
        self._running = None

    def stats(self):
        """Of what was saved since the context was last entered: a dict from "codes", "signs" and "passed" to (number of
        tensors, bytes before, bytes kept). Parameters and buffers do not count. What passes several times counts as
        often, and may be alive anyway."""
        return {kind: tuple(count) for kind, count in self._counts.items()}

    def _begin(self, layer, inputs):
        if not paddle.in_dynamic_mode():
            _refuse_graph(layer.full_name())
        self._running = _Running(layer, inputs[0] if inputs else None)

    def _end(self, layer, inputs, output):
        self._running = None

    def _pack(self, x):
        if x.persistable or (x._is_initialized() and x.data_ptr() in self._own_memory):
            return Passed(x, False)
        saved = self._compress(x)
        count = self._counts.setdefault(type(saved).__name__.lower(), [0, 0, 0])
        for i, more in enumerate((1, saved.bytes_before, saved.bytes_kept)):
            count[i] += more
        return saved

    def _compress(self, x):
        made_by = x.grad_fn.name() if x.grad_fn else ""
        if self._running and x.dtype in FLOATS and x.is_contiguous() and x.size >= self.min_elements:
            forward, reads = type(self._running.layer).forward, self._running.has_input
            if forward in RELU and made_by == "ReluGradNode":
                return Signs(x)
            if forward in LINEAR and reads(x):
                return Codes(x, self.bits, ROTATED)
            if forward in SMOOTH and self.other_bits is not None and reads(x):
                return Codes(x, self.other_bits, 256)
        return Passed(x, OVERWRITES in made_by)


def _unpack(saved):
    return saved.restore()


def _refuse_graph(name):
    raise RuntimeError(f"furl: layer '{name}' runs in a graph of paddle.jit.to_static, which saves its tensors without "
                       "calling hooks: use compress_saved with the layer as it was before to_static")
