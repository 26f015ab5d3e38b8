# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""`pip install --no-build-isolation examples/pytorch` builds for the torch that is installed. Variables:
FURL_CUDA, 1 or 0 for with or without kernels, by default with them where torch has CUDA and there is a toolkit;
TORCH_CUDA_ARCH_LIST, by default for the cards of this machine, or for all since Turing where it has none;
FURL_INCLUDE, the folder of furl's headers, if this folder has been copied elsewhere;
FURL_CXX_FLAGS, by default -march=native: all files of one library need the same."""

import os
import runpy
import shutil
from pathlib import Path

import torch
from setuptools import setup
from setuptools.command.sdist import sdist
from torch.utils import cpp_extension

here = Path(__file__).resolve().parent
ALL_ARCHITECTURES = "7.5;8.0;8.6;8.9;9.0+PTX"


def find_include():
    """A source distribution has the headers beside this file."""
    named = os.environ.get("FURL_INCLUDE")
    for folder in [Path(named)] if named else [here / "include", here.parents[1] / "include"]:
        if (folder / "furl" / "furl.hpp").is_file():
            return folder
    raise SystemExit("there is no furl/furl.hpp: set FURL_INCLUDE to the folder of furl's headers")


def wants_cuda():
    wish = os.environ.get("FURL_CUDA", "auto")
    if wish not in ("0", "1", "auto"):
        raise SystemExit(f"FURL_CUDA is {wish!r}: must be 0, 1 or auto")
    lacks = ("torch has no CUDA" if torch.version.cuda is None else
             "there is no CUDA toolkit" if cpp_extension.CUDA_HOME is None else None)
    if wish == "1" and lacks:
        raise SystemExit(f"FURL_CUDA is 1, but {lacks}")
    return wish != "0" and not lacks


class Build(cpp_extension.BuildExtension.with_options(use_ninja=shutil.which("ninja") is not None)):
    """Names the library after the version of torch."""

    def get_ext_filename(self, name):
        library_name = runpy.run_path(str(here / "furl_torch" / "_libraries.py"))["library_name"]
        folders = name.split(".")[:-1]
        return os.path.join(*folders, library_name(torch.__version__, torch.compiled_with_cxx11_abi()))


class SourceDistribution(sdist):
    """With furl's headers."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        shutil.copytree(find_include(), Path(base_dir) / "include", dirs_exist_ok=True)


include = find_include()
with_cuda = wants_cuda()
if with_cuda and not torch.cuda.is_available():
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", ALL_ARCHITECTURES)
sources = ["csrc/ops.cpp", "csrc/inspect.cpp", "csrc/consumer.cpp"] + (["csrc/ops_cuda.cu"] if with_cuda else [])
kind = cpp_extension.CUDAExtension if with_cuda else cpp_extension.CppExtension
flags = os.environ.get("FURL_CXX_FLAGS", "-march=native").split()
library = kind("furl_torch._library", sources, include_dirs=[str(include)],
               extra_compile_args={"cxx": ["-O3", "-std=c++20", *flags], "nvcc": ["-O3", "-std=c++20"]})
setup(ext_modules=[library], cmdclass={"build_ext": Build, "sdist": SourceDistribution})
