# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Which file has the compiled operators for the torch that runs. setup.py runs this, too, before there is a package.

The operators read parts of torch that have another layout in each minor version, so that each has a library of its own.
A package built here has one of them, the wheel of build_wheel.py has many."""

from __future__ import annotations

import os
import re
from pathlib import Path

VARIABLE = "FURL_TORCH_LIBRARY"
HOW_TO_BUILD = ("build them in furl's folder with `pip install --no-build-isolation examples/pytorch`, or with `cmake "
                f"--preset pytorch && cmake --build --preset pytorch` and give the path of _library.so in {VARIABLE}")


def library_name(version: str, has_new_strings: bool) -> str:
    """Of the library for this version of torch: for all patches of a release, but for one pre-release alone, and for
    one commit where the version has that. torch from PyPI has the strings of before C++11 up to version 2.6."""
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\.post\d+)?(\+.*)?", version)
    return f"_library-{release[1] if release else version}{'' if has_new_strings else '-pre-cxx11'}.so"


def find_library(folder: Path, version: str, has_new_strings: bool) -> Path:
    """In this folder, or the one that the variable names."""
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise ImportError(f"{VARIABLE} is {named}: there is no such file")
        return Path(named)
    wanted = folder / library_name(version, has_new_strings)
    if wanted.is_file():
        return wanted
    found = sorted((path.name[len("_library-"):-len(".so")] for path in folder.glob("_library-*.so")),
                   key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    if not found:
        raise ImportError(f"there are no operators in {folder}: if furl_torch is installed, run Python in another "
                          f"folder than furl's sources; else {HOW_TO_BUILD}")
    this = version if has_new_strings else f"{version} with the strings of before C++11 (pre-cxx11)"
    raise ImportError(f"furl_torch has operators for torch {', '.join(found)}, and this is {this}: {HOW_TO_BUILD}")
