# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""For the Trainer of transformers, which this module imports."""

from __future__ import annotations

import importlib
from typing import Any, Optional

from .auto import refuse_automatic
from .context import compress_saved

_transformers: Any = importlib.import_module("transformers")


class CompressSaved(_transformers.TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Surrounds every step with compress_saved(**settings): Trainer(..., callbacks=[CompressSaved(bits=2)]). Its
    `context` has stats() of the last step. Not for bits="auto": no step is measured."""

    def __init__(self, **settings: Any) -> None:
        refuse_automatic(settings.get("bits"))
        self._settings = settings
        self.context: Optional[compress_saved] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        """Makes the context, which knows the names of the model's modules."""
        self._leave()  # an exception may have ended an earlier training
        self.context = compress_saved(**{"model": model, **self._settings})

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Before the first of the batches whose gradients are added up."""
        assert self.context is not None
        self.context.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """After the optimizer."""
        self._leave()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """The last batches of a stream may be too few for a step, which has no end then."""
        self._leave()

    def _leave(self) -> None:
        if self.context is not None and self.context.is_on:
            self.context.__exit__(None, None, None)
