# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""`pip install --no-build-isolation examples/pytorch` builds for the torch that is installed. Variables:
FURL_INCLUDE, the folder of furl's headers, if this folder has been copied elsewhere; FURL_CXX_FLAGS,
by default -march=native: all files of one library need the same."""

import os
import shutil
from pathlib import Path

import torch
from setuptools import setup
from torch.utils import cpp_extension

here = Path(__file__).resolve().parent
include = Path(os.environ.get("FURL_INCLUDE", here.parents[1] / "include"))
if not (include / "furl" / "furl.hpp").is_file():
    raise SystemExit(f"{include} has no furl/furl.hpp: set FURL_INCLUDE to the folder of furl's headers")

with_cuda = cpp_extension.CUDA_HOME is not None and torch.version.cuda is not None
sources = ["csrc/ops.cpp", "csrc/inspect.cpp", "csrc/consumer.cpp"] + (["csrc/ops_cuda.cu"] if with_cuda else [])
kind = cpp_extension.CUDAExtension if with_cuda else cpp_extension.CppExtension
flags = os.environ.get("FURL_CXX_FLAGS", "-march=native").split()
library = kind("furl_torch._library", sources, include_dirs=[str(include)],
               extra_compile_args={"cxx": ["-O3", "-std=c++20", *flags], "nvcc": ["-O3", "-std=c++20"]})
build = cpp_extension.BuildExtension.with_options(use_ninja=shutil.which("ninja") is not None)
setup(ext_modules=[library], cmdclass={"build_ext": build})
