# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Saved activations in a few bits per value: see compress_saved."""

from . import auxiliary, functional, modules
from .checkpoints import checkpoint, checkpoint_layers
from .codec import LEVELS, Codec, skip
from .context import compress_saved
from .estimate import Estimate, estimate
from .meter import Count, LiveBytes, Stats
from ._ops import ops
from .noise import manual_seed

__all__ = ["Codec", "Count", "Estimate", "LEVELS", "LiveBytes", "Stats", "auxiliary", "checkpoint",
           "checkpoint_layers", "compress_saved", "estimate", "functional", "manual_seed", "modules", "ops", "skip"]
