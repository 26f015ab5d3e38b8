# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Compressed residuals for JAX: what the backward pass needs is kept in a few bits per value."""

from .checkpoints import keep
from .codes import Compressed, Packed, compress, decompress, pack, unpack
from .residuals import compress_residuals, kept_bytes

__all__ = [
    "Compressed", "Packed", "compress", "compress_residuals", "decompress", "keep", "kept_bytes", "pack", "unpack"]
