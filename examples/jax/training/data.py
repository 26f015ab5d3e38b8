# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST as Debian ships it, gzipped IDX files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIRECTORY = Path("/usr/share/datasets/fashion-mnist")


def _read(name: str, header_bytes: int) -> NDArray[np.uint8]:
    try:
        with gzip.open(DIRECTORY / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=header_bytes)
    except FileNotFoundError:
        raise SystemExit(f"{DIRECTORY / name} is missing: install Debian's dataset-fashion-mnist") from None


def load_images(kind: str) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Images (count, 28, 28, 1) of mean about 0 and deviation about 1, and labels. kind: "train" or "t10k"."""
    pixels = _read(f"{kind}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28, 1)
    labels = _read(f"{kind}-labels-idx1-ubyte.gz", 8)
    return (pixels.astype(np.float32) - 73.0) / 90.0, labels.astype(np.int32)
