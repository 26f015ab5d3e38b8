# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""SiLU in CuPy whose backward pass restores its input from about 2 bits per value: python silu.py, where there is a GPU.

The kernels of silu.cu are compiled when they are first called. Arrays are float32 and contiguous.
"""
import pathlib

import cupy
import numpy

_here = pathlib.Path(__file__).resolve().parent
OPTIONS = ("--std=c++17", f"-I{_here.parents[1] / 'include'}")
SOURCE = (_here / "silu.cu").read_text()
_module = cupy.RawModule(code=SOURCE, options=OPTIONS, backend="nvrtc")
_BITS = 2


def blob_bytes(num_elements: int) -> int:
    """Of a blob: 128 * bits bytes for 1024 elements, and two bf16 for 256, padded to 16 bytes."""
    codes = -(-num_elements // 1024) * 128 * _BITS
    return -(-(codes + -(-num_elements // 256) * 4) // 16) * 16


def _launch(kernel: str, num_elements: int, *arguments) -> None:
    if num_elements == 0:
        return
    tiles_per_block = 4  # a warp each
    blocks = min(-(-num_elements // 1024 // tiles_per_block), 8192)
    _module.get_function(kernel)((blocks,), (32 * tiles_per_block,),
                                 (numpy.int64(num_elements), numpy.int32(_BITS), *arguments))


def forward(x: cupy.ndarray, seed: int, offset: int) -> tuple[cupy.ndarray, cupy.ndarray]:
    """SiLU(x), and the blob that the backward pass needs in place of x. No two calls share seed and offset."""
    y, blob = cupy.empty_like(x), cupy.empty(blob_bytes(x.size), cupy.uint8)
    _launch("silu_forward", x.size, x, y, blob, numpy.uint64(seed), numpy.uint64(offset))
    return y, blob


def backward(blob: cupy.ndarray, gradient: cupy.ndarray) -> cupy.ndarray:
    """The gradient of x, from that of y."""
    out = cupy.empty_like(gradient)
    _launch("silu_backward", gradient.size, blob, gradient, out)
    return out


def main() -> None:
    x = cupy.random.default_rng(1).standard_normal((64, 1000), dtype=cupy.float32)
    y, blob = forward(x, seed=1, offset=0)
    sigmoid = 1 / (1 + cupy.exp(-x))
    exact = sigmoid * (1 + x * (1 - sigmoid))
    error = cupy.linalg.norm(backward(blob, cupy.ones_like(x)) - exact) / cupy.linalg.norm(exact)
    assert cupy.allclose(y, x * sigmoid, rtol=1e-5)
    print(f"{x.nbytes} bytes kept in {blob.nbytes}, relative error of the gradient {float(error):.3f}")


if __name__ == "__main__":
    main()
