# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Loads the compiled handlers and registers them with XLA."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import jax
import numpy as np

LIBRARY_VARIABLE = "FURL_JAX_LIBRARY"


def _load() -> ctypes.CDLL:
    named = os.environ.get(LIBRARY_VARIABLE)
    path = Path(named) if named else Path(__file__).parent / "_library.so"
    if not path.is_file():
        raise ImportError(
            f"{path}: there is no such file. Build the handlers of furl_jax with `cmake --preset jax && cmake --build "
            f"--preset jax` and give the path of _library.so in {LIBRARY_VARIABLE}")
    return ctypes.CDLL(str(path))


_library = _load()
for _call in ("compress", "decompress", "pack", "unpack"):
    for _suffix, _platform in (("cpu", "cpu"), ("cuda", "CUDA")):
        _symbol = getattr(_library, f"furl_jax_{_call}_{_suffix}", None)
        if _symbol is not None:
            jax.ffi.register_ffi_target(f"furl_{_call}", jax.ffi.pycapsule(_symbol), platform=_platform)

_blob_bytes = _library.furl_jax_blob_bytes
_blob_bytes.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int, ctypes.c_char_p, ctypes.c_int64]
_blob_bytes.restype = ctypes.c_int64


def blob_bytes(num_elements: int, bits: int, are_codes: bool) -> int:
    """Size of the blob of so many elements, codes that are packed as they are or values. TypeError and ValueError
    say which argument is refused, and why."""
    if not isinstance(bits, (int, np.integer)):
        raise TypeError(f"bits is {bits}: must be an integer, 1..8")
    message = ctypes.create_string_buffer(256)
    size = _blob_bytes(num_elements, bits, are_codes, message, len(message))
    if size < 0:
        raise ValueError(f"furl: {message.value.decode()}")
    return int(size)
