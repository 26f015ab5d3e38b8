# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Saved activations of PaddlePaddle in a few bits: see compress_saved."""

from .context import compress_saved
from .saved import manual_seed

__all__ = ["compress_saved", "manual_seed"]
