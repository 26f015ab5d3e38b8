# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Which module is running."""

from __future__ import annotations

import inspect
import threading
from typing import Any, Callable, Optional

from torch import Tensor, nn
from torch.nn.modules import module as registry

_ALWAYS = ({"always_call": True} if "always_call" in inspect.signature(
    registry.register_module_forward_hook).parameters else {})


class ModuleWatch:
    """While it is on, follows the modules that one thread calls."""

    def __init__(self, model: Optional[nn.Module]) -> None:
        self._model = model
        self.names: dict[nn.Module, str] = {}
        self._handles: list[Any] = []
        self._thread: Optional[int] = None
        self.stack: list[nn.Module] = []
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_on(self) -> bool:
        """Between start and stop."""
        return bool(self._handles)

    def start(self) -> None:
        """Follows the calling thread from now on."""
        if self._model is not None and not self.names:  # not before: a copied model is incomplete at first
            self.names = {m: name or type(m).__name__ for name, m in self._model.named_modules()}
        self._thread = threading.get_ident()
        self._handles = [registry.register_module_forward_pre_hook(self._enter),
                         registry.register_module_forward_hook(self._leave, **_ALWAYS)]

    def stop(self) -> None:
        """Leaves nothing behind."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
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

    def _enter(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if threading.get_ident() != self._thread:
            return
        self.stack.append(module)
        self.on_change()

    def _leave(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if threading.get_ident() != self._thread or module not in self.stack:
            return
        while self.stack.pop() is not module:  # those above it ended with an exception
            pass
        self.on_change()
