# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the compiled operators, as torch.ops.furl."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

from ._libraries import HOW_TO_BUILD, VARIABLE, find_library

TILE = 1024  # elements that a blob packs together
KEY_BYTES = 16  # behind the blob of rotated codes


def _load(path: Path) -> None:
    try:
        torch.ops.load_library(str(path))  # type: ignore[no-untyped-call,unused-ignore]
    except OSError as error:  # the processor lacks instructions, or the system's libraries are too old
        reason = error.__cause__ or error  # newer versions of torch say no more than the name
        raise ImportError(f"the operators of furl_torch do not load: {reason}. Here, {HOW_TO_BUILD}") from error


def _check_version(made_for: str) -> None:
    """A library that is named may be of another version, whose layouts it reads."""
    if made_for.split(".")[:2] != torch.__version__.split(".")[:2]:
        raise ImportError(f"the operators of furl_torch are for torch {made_for}, and this is {torch.__version__}: "
                          f"{HOW_TO_BUILD}")


_library = find_library(Path(__file__).parent, torch.__version__, torch.compiled_with_cxx11_abi()).resolve()
if str(_library) not in torch.ops.loaded_libraries and torch._C._jit_get_schemas_for_operator("furl::compress"):
    raise ImportError("this process has loaded operators of furl from another library, and torch would end it at a "
                      f"second one: import furl_torch first, or give the path of the first in {VARIABLE}")
_load(_library)
_check_version(torch.ops.furl.torch_version())


HAS_KERNELS = torch._C._dispatch_has_kernel_for_dispatch_key("furl::compress", "CUDA")  # for the GPU


def warn_of_no_kernels() -> None:
    """If there is a GPU, and the operators cannot work on it."""
    if not HAS_KERNELS and torch.cuda.is_available():
        warnings.warn("this furl_torch has no kernels for the GPU, and cannot compress what lies there: build it from "
                      "source, with FURL_CUDA=1", stacklevel=3)


class _Operators:
    """torch.ops.furl without the search for an overload, which takes longer than to inspect a tensor."""

    def __getattr__(self, name: str) -> Any:
        operator = getattr(torch.ops.furl, name).default
        setattr(self, name, operator)
        return operator


ops = _Operators()
