# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the operators for the Paddle that is installed, once for every change of the sources, and loads them.

Variables: FURL_PADDLE_BUILD, the folder to build in, by default build/paddle of the repository; FURL_CXX_FLAGS, by
default -march=native. Kernels are built where Paddle has CUDA and there is a toolkit."""

import functools
import os
from pathlib import Path

import paddle
from paddle.utils import cpp_extension

EXAMPLE = Path(__file__).resolve().parents[1]
REPOSITORY = EXAMPLE.parents[1]


@functools.lru_cache(maxsize=None)
def operators():
    """The module with furl_compress, furl_decompress, furl_pack_positive and furl_unpack_positive."""
    folder = Path(os.environ.get("FURL_PADDLE_BUILD", REPOSITORY / "build" / "paddle"))
    folder.mkdir(parents=True, exist_ok=True)  # load() fails without it
    with_cuda = paddle.is_compiled_with_cuda() and cpp_extension.cpp_extension.CUDA_HOME is not None
    source = EXAMPLE / "csrc" / ("ops_cuda.cu" if with_cuda else "ops.cc")
    flags = os.environ.get("FURL_CXX_FLAGS", "-march=native").split()
    return cpp_extension.load(
        name="furl_paddle_ops", sources=[str(source)], build_directory=str(folder),
        extra_include_paths=[str(REPOSITORY / "include")],
        extra_cxx_cflags=["-O3", "-std=c++17", *flags], extra_cuda_cflags=["-O3", "-std=c++17"])
