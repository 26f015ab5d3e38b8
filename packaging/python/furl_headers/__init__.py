# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Where the headers of furl and its package for CMake are installed."""

from pathlib import Path

_here = Path(__file__).resolve().parent


def include_dir() -> str:
    """The folder for a compiler's include path."""
    return str(_here / "include")


def cmake_dir() -> str:
    """The folder to give CMake as furl_DIR, for find_package(furl)."""
    return str(_here / "share" / "cmake" / "furl")
