# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Saved activations in a few bits per value: see compress_saved."""

from . import auxiliary, functional, modules
from .context import Codec, compress_saved, skip
from .meter import Count, LiveBytes, Stats
from ._ops import ops
from .noise import manual_seed

__all__ = ["Codec", "Count", "LiveBytes", "Stats", "auxiliary", "compress_saved", "functional",
           "manual_seed", "modules", "ops", "skip"]
