# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST as Debian ships it: gzipped IDX files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy
import torch
from torch import Tensor

DIRECTORY = Path("/usr/share/datasets/fashion-mnist")


def _read(path: Path, header_bytes: int) -> numpy.ndarray:
    try:
        with gzip.open(path) as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=header_bytes).copy()
    except FileNotFoundError:
        raise SystemExit(f"{path} is missing: install Debian's dataset-fashion-mnist") from None


def load(kind: str, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images (count, 1, 28, 28) of mean about 0 and deviation about 1, and labels.

    kind: "train" or "t10k".
    """
    labels = torch.from_numpy(_read(DIRECTORY / f"{kind}-labels-idx1-ubyte.gz", 8)).long()
    pixels = torch.from_numpy(_read(DIRECTORY / f"{kind}-images-idx3-ubyte.gz", 16))
    images = (pixels.view(-1, 1, 28, 28).float() - 73.0) / 90.0
    return images.to(device), labels.to(device)
