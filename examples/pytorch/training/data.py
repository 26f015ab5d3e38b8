# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST as Debian ships it, gzipped IDX files; and the text of the help that Python has."""

from __future__ import annotations

import gzip
from pathlib import Path
from pydoc_data.topics import topics

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


def load_images(kind: str, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images (count, 1, 28, 28) of mean about 0 and deviation about 1, and labels.

    kind: "train" or "t10k".
    """
    labels = torch.from_numpy(_read(DIRECTORY / f"{kind}-labels-idx1-ubyte.gz", 8)).long()
    pixels = torch.from_numpy(_read(DIRECTORY / f"{kind}-images-idx3-ubyte.gz", 16))
    images = (pixels.view(-1, 1, 28, 28).float() - 73.0) / 90.0
    return images.to(device), labels.to(device)


def load_text(kind: str, device: torch.device) -> tuple[Tensor, Tensor]:
    """Characters, 64 in a row, and those that follow them: (count, 64) each. A tenth of the text is for tests.

    kind: "train" or "t10k".
    """
    text = "".join(topics[name] for name in sorted(topics))
    border = len(text) * 9 // 10
    return rows_of(text[:border], 1, device) if kind == "train" else rows_of(text[border:], 64, device)


def rows_of(text: str, distance: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Characters, 64 in a row, and those that follow them: (count, 64) each. A row begins every `distance` characters.
    What is not ASCII becomes a question mark."""
    characters = numpy.frombuffer(text.encode("ascii", "replace"), numpy.uint8)
    rows = torch.from_numpy(characters.copy()).long().to(device).unfold(0, 65, distance)
    return rows[:, :-1], rows[:, 1:]
