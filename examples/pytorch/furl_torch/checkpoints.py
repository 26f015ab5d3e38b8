# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints whose inputs are compressed, and what they compute again, too."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, ContextManager, Iterator, Optional, Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.checkpoint import get_device_states, set_device_states

from ._ops import ops
from .codec import is_skipping, skip
from .contents import PARAMETER, SavedAsIs, SavedCast, save_as_is
from .context import compress_saved, running
from .graph import eagerly
from .saved import SavedView

OPERATOR = "furl::checkpoint"  # its line of the table says how inputs are kept
Form = tuple[Optional[Sequence[int]], torch.dtype]  # a shape, None of a nested tensor

_thread = threading.local()


class _Origin(torch.autograd.Function):
    """Its second input, made by an operator: as a leaf it would be taken for a parameter."""

    @staticmethod
    def forward(ctx: Any, leaf: Tensor, x: Tensor) -> Tensor:
        return x.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, None]:
        return None, None


def _form_of(x: Tensor) -> Form:
    return None if x.is_nested else x.shape, x.dtype


def _said(form: Form) -> str:
    return f"{form[1]} {'nested' if form[0] is None else list(form[0])}"


class _Recorder(compress_saved):
    """A context with the settings, the bits and the live bytes of another, which lists what is saved while it is on."""

    def __init__(self, context: compress_saved) -> None:
        super().__init__(**{**context.settings, "offload": False})
        self.live = context.live
        if self._auto is not None and context._auto is not None:
            self._auto.bits = context._auto.bits
        self.kept: list[SavedView] = []
        self.forms: list[Form] = []

    def _pack(self, x: Tensor) -> SavedView:
        kept = super()._pack(x)
        self.kept.append(kept)
        self.forms.append(_form_of(x))
        return kept


# Of a context, those that are not on: making one takes a tenth of a millisecond.
_spare: "weakref.WeakKeyDictionary[compress_saved, list[_Recorder]]" = weakref.WeakKeyDictionary()


class _Input:
    """A tensor that a checkpoint was called with."""

    def __init__(self, context: compress_saved, x: Tensor) -> None:
        self._has_gradient = x.requires_grad
        self._kept = context.keep(x, OPERATOR)

    def restore(self) -> Tensor:
        """For the second run."""
        x = self._kept.restore()
        if not self._has_gradient:
            return x
        with torch.enable_grad():
            return _Origin.apply(torch.empty(0, requires_grad=True), x)


class _Region:
    """One call of a checkpoint. It keeps the inputs. What autograd saves during the call is a number, in the order in
    which it is saved: the first that is asked for makes it run again."""

    def __init__(self, context: Optional[compress_saved], function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        leaves, self._structure = tree_flatten((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        self._function = function
        self._context = context or _alone()
        self._skips = context is None or is_skipping()
        self._modules = self._context.modules()
        self._autocast = _autocast_of(tensors)
        self._generators = torch.get_rng_state(), get_device_states(*tensors)
        # Leaves that have a gradient, as parameters have, are in the graph anyway.
        inputs = {id(x): _Input(self._context, x) for x in tensors if not (x.is_leaf and x.requires_grad)}
        self._leaves = [inputs.get(id(x), x) for x in leaves]
        self._forms: list[Form] = []  # of what was saved when it ran first
        self._parameters = [SavedAsIs(x, 0) for x in tensors if id(x) not in inputs]  # it was made from these
        self._kept: dict[int, SavedView] = {}  # what was saved when it ran again, until it is asked for

    def run(self, args: Any, kwargs: Any) -> Any:
        """The first time."""
        with saved_tensors_hooks(self._pack, self._unpack):
            return self._function(*args, **kwargs)

    def _pack(self, x: Tensor) -> int:
        if ops.inspect(x, 0)[0] == PARAMETER:
            content = save_as_is(x, PARAMETER)
            parameter = content.parameter if isinstance(content, SavedCast) else content
            assert isinstance(parameter, SavedAsIs)
            self._parameters.append(parameter)
        self._forms.append(_form_of(x))
        return len(self._forms) - 1

    def _unpack(self, number: int) -> Tensor:
        if number not in self._kept:
            self._kept = dict(enumerate(self._run_again()))
        return self._kept.pop(number).restore()

    def _run_again(self) -> Sequence[SavedView]:
        for parameter in self._parameters:
            parameter.restore()  # raises an error if somebody has modified it
        inputs = {x: x.restore() for x in dict.fromkeys(x for x in self._leaves if isinstance(x, _Input))}
        args, kwargs = tree_unflatten([inputs[x] if isinstance(x, _Input) else x for x in self._leaves],
                                      self._structure)
        spare = _spare.setdefault(self._context, [])
        recorder = spare.pop() if spare else _Recorder(self._context)
        skipping = skip() if self._skips else nullcontext()
        with self._as_before(), torch.enable_grad(), skipping, recorder:
            recorder.enter_modules(self._modules)
            self._function(*args, **kwargs)
        kept, recorder.kept = recorder.kept, []
        forms, recorder.forms = recorder.forms, []
        spare.append(recorder)
        if forms != self._forms:
            which = next((i for i, (a, b) in enumerate(zip(forms, self._forms)) if a != b), None)
            how = (f"{len(self._forms)} tensors at first and {len(forms)}" if which is None else
                   f"as tensor {which} {_said(self._forms[which])} at first and {_said(forms[which])}")
            raise RuntimeError(f"a checkpoint saved {how} when it was run again: what it runs must do the same every "
                               "time, with restored inputs, too, and must not be compiled")
        return kept

    @contextmanager
    def _as_before(self) -> Iterator[None]:
        """Torch's generators and autocast."""
        of_cpu, (devices, states) = self._generators
        with torch.random.fork_rng(devices=devices), self._autocast():
            torch.set_rng_state(of_cpu)
            set_device_states(devices, states)
            yield


def _alone() -> compress_saved:
    """What compresses inputs where no context is on."""
    if not hasattr(_thread, "alone"):
        _thread.alone = compress_saved()
    return _thread.alone


def autocast_dtype(kind: str) -> Optional[torch.dtype]:
    """What autocast makes of what is multiplied on this kind of device; None if it is off."""
    if kind == "meta":  # torch asks which device a meta tensor stands for
        return None
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    if kind == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _autocast_of(tensors: Sequence[Tensor]) -> Callable[[], ContextManager[Any]]:
    """Makes autocast as it is now, on the device of these."""
    device = next((x.device.type for x in tensors if x.device.type != "cpu"), "cpu")
    if device not in ("cpu", "cuda"):
        return nullcontext
    dtype = autocast_dtype(device)
    return lambda: torch.autocast(device, dtype=dtype, enabled=dtype is not None)


@eagerly
def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs), which is run again in the backward pass rather than that what it saves is kept.

    All that is kept is the tensors among the arguments, in lists, tuples and dicts, too: those that have a gradient
    in 8 bits in groups that end with a token, as `overrides={"furl::checkpoint": Codec(...)}` of compress_saved may
    change; others as any operator's. Leaves that have a gradient and what is no tensor are kept as they are.

    The compress_saved that is on compresses what the second run saves as well, so that no region is ever there in
    full; its `live` counts both. Where none is on, only inputs are compressed. With bits="auto" the second run has the
    bits that measure() chose, which calls the function as if there were no checkpoint: its batch may be smaller.

    Random numbers, of torch and of furl_torch.functional, are the same in both runs, and so is autocast. The gradient
    is that of the restored inputs. Where use_reentrant=False of torch's checkpoint can be used, this can: with
    autograd.grad, twice, without an input that has a gradient. It does not stop early. Calls may be nested; those
    inside keep their inputs, too. If a parameter was modified in between, RuntimeError.

    The function must do the same with restored inputs. A mixture of experts, which may send a token elsewhere if the
    token is a little different, and masks made by comparison do not: `overrides={"furl::checkpoint": None}` keeps the
    inputs as they are. RuntimeError if the runs save tensors of different shapes; other differences make gradients
    wrong. The function must not be a compiled one: for these, and to be compiled, use torch's.
    """
    context = running()
    is_measured = context is not None and context._auto is not None and context._auto.is_measuring
    if is_measured or not torch.is_grad_enabled():
        return function(*args, **kwargs)
    return _Region(context, function, args, kwargs).run(args, kwargs)


def checkpoint_layers(model: nn.Module) -> int:
    """Lets the layers of a model of transformers that can be checkpointed use this checkpoint, in place of torch's.
    Call it after `model.gradient_checkpointing_enable()`, and after each later call of that. Returns how many layers
    there are; ValueError if there are none."""
    layers = [m for m in model.modules() if callable(getattr(m, "_gradient_checkpointing_func", None))]
    if not layers:
        raise ValueError("the model has no layers with checkpoints: call gradient_checkpointing_enable() first")
    for layer in layers:
        layer._gradient_checkpointing_func = checkpoint  # type: ignore[assignment,unused-ignore]
    return len(layers)
