# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Which module is running."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn
from torch.nn.modules import module as registry
from torch.utils.hooks import RemovableHandle

# What is being compiled has no modules when it runs.
_PLACES: tuple[Any, ...] = (getattr(torch, "compiler", None), torch._utils)  # of 2.4, and of 2.0 and 2.1; 1 has none
_is_compiling: Callable[[], bool] = next(
    (place.is_compiling for place in _PLACES if hasattr(place, "is_compiling")), lambda: False)
# Compiled code is compiled again where hooks have other numbers than before: these are always the same.
_ID = RemovableHandle(OrderedDict()).id
_TABLES: tuple[tuple[str, Any], ...] = (
    ("_global_forward_pre_hooks", lambda module, inputs: _enter(module)),
    ("_global_forward_hooks", lambda module, inputs, output: _leave(module)),
    ("_global_forward_hooks_always_called", True))
_lock = threading.Lock()
_num_watches = 0
_thread = threading.local()


def _enter(module: nn.Module) -> None:
    if not _is_compiling():
        for watch in getattr(_thread, "watches", ()):
            watch.enter(module)


def _leave(module: nn.Module) -> None:
    if not _is_compiling():
        for watch in getattr(_thread, "watches", ()):
            watch.leave(module)


def _count_watches(change: int) -> None:
    """Hooks are there while any thread watches."""
    global _num_watches
    with _lock:
        before, _num_watches = _num_watches, _num_watches + change
        for name, hook in _TABLES if min(before, _num_watches) == 0 else ():
            table = getattr(registry, name, {})  # torch 1 does not have them all
            if before == 0:
                table[_ID] = hook
            else:
                table.pop(_ID, None)


class ModuleWatch:
    """While it is on, follows the modules that one thread calls."""

    def __init__(self, model: Optional[nn.Module]) -> None:
        self._model = model
        self.names: dict[nn.Module, str] = {}
        self.is_on = False
        self.stack: list[nn.Module] = []
        self.on_change: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Follows the calling thread from now on."""
        if self._model is not None and not self.names:  # not before: a copied model is incomplete at first
            self.names = {m: name or type(m).__name__ for name, m in self._model.named_modules()}
        _count_watches(1)
        if not hasattr(_thread, "watches"):
            _thread.watches = []
        _thread.watches.append(self)
        self.is_on = True

    def stop(self) -> None:
        """Leaves nothing behind."""
        self.is_on = False
        _thread.watches.remove(self)
        _count_watches(-1)
        self.stack.clear()

    def name(self) -> str:
        """Of the innermost module: as in the model, or its class."""
        if not self.stack:
            return "outside modules"
        module = self.stack[-1]
        return self.names.get(module) or type(module).__name__

    def holds(self, x: Tensor) -> bool:
        """Whether x is, or is a view of, a parameter, or a buffer of the innermost module."""
        owner = x if x._base is None else x._base
        if isinstance(owner, nn.Parameter):
            return True
        return bool(self.stack) and any(owner is b for b in self.stack[-1]._buffers.values())

    def enter(self, module: nn.Module) -> None:
        """A module begins."""
        self.stack.append(module)
        self.on_change()

    def leave(self, module: nn.Module) -> None:
        """A module ends."""
        if module not in self.stack:
            return
        while self.stack.pop() is not module:  # those above it ended with an exception
            pass
        self.on_change()
