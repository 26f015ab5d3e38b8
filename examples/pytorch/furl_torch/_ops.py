# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the compiled operators, as torch.ops.furl."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

LIBRARY_VARIABLE = "FURL_TORCH_LIBRARY"
TILE = 1024  # elements that a blob packs together
KEY_BYTES = 16  # behind the blob of rotated codes


def _find_library() -> str:
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise ImportError(f"{LIBRARY_VARIABLE} is {named}: there is no such file")
        return named
    found = sorted(Path(__file__).parent.glob("_library*.so"))
    if not found:
        raise ImportError(
            "the operators of furl_torch are not built: build them with `pip install "
            "--no-build-isolation examples/pytorch`, or with `cmake --preset pytorch && cmake --build "
            f"--preset pytorch` and give the path of _library.so in {LIBRARY_VARIABLE}")
    return str(found[0])


torch.ops.load_library(_find_library())  # type: ignore[no-untyped-call,unused-ignore]


class _Operators:
    """torch.ops.furl without the search for an overload, which takes longer than to inspect a tensor."""

    def __getattr__(self, name: str) -> Any:
        operator = getattr(torch.ops.furl, name).default
        setattr(self, name, operator)
        return operator


ops = _Operators()
