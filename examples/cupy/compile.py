# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels of silu.cu by NVRTC, without a GPU: python compile.py [ARCHITECTURE ...]."""
import pathlib
import sys

from cuda.core import Program, ProgramOptions

here = pathlib.Path(__file__).resolve().parent


def compile_for(architecture: str) -> bytes:
    """The machine code of both kernels for one architecture, such as sm_90."""
    options = ProgramOptions(std="c++17", arch=architecture, include_path=str(here.parents[1] / "include"))
    made = Program((here / "silu.cu").read_text(), "c++", options).compile("cubin").code
    for kernel in (b"silu_forward", b"silu_backward"):
        assert kernel in made, f"{kernel.decode()} is missing"
    return made


for name in sys.argv[1:] or ["sm_80", "sm_90", "sm_100", "sm_120"]:
    print(f"{name}: {len(compile_for(name))} bytes")
