# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""For the Trainer of Lightning, which this module imports."""

from __future__ import annotations

import importlib
from typing import Any, Optional

from .auto import refuse_automatic
from .context import compress_saved

_lightning: Any = importlib.import_module("lightning.pytorch")


class CompressSaved(_lightning.Callback):  # type: ignore[misc,unused-ignore]
    """Surrounds every batch of training with compress_saved(**settings): Trainer(callbacks=[CompressSaved(bits=2)]).
    Its `context` has stats() of the last batch. Not for bits="auto": no step is measured."""

    def __init__(self, **settings: Any) -> None:
        refuse_automatic(settings.get("bits"))
        self._settings = settings
        self.context: Optional[compress_saved] = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Makes the context, which knows the names of the modules."""
        self.context = compress_saved(**{"model": pl_module, **self._settings})

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Before training_step."""
        assert self.context is not None
        self.context.__enter__()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """After the backward pass and the optimizer."""
        self._leave()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """A batch that ends the epoch before its training_step has no end."""
        self._leave()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """In the middle of a batch."""
        self._leave()

    def _leave(self) -> None:
        if self.context is not None and self.context.is_on:
            self.context.__exit__(None, None, None)
