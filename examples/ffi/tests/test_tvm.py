# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""libfurl_tvm with the arrays of the framework that FURL_FRAMEWORK names: bytes as the headers make them.
JAX, whose arrays nobody may write, has test_jax.py."""
import importlib
import os

import cases
import numpy
import pytest
import tvm_ffi

FRAMEWORK = os.environ.get("FURL_FRAMEWORK", "numpy")
furl = tvm_ffi.load_module(os.environ["FURL_TVM_LIBRARY"])
module = importlib.import_module("mlx.core" if FRAMEWORK == "mlx" else FRAMEWORK)  # missing: an error, not a skip
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}


def array(data: numpy.ndarray, dtype: str, shape):
    """Bytes as an array of the framework."""
    shape = list(shape)
    if FRAMEWORK == "numpy":
        if dtype == "bfloat16":
            pytest.skip("NumPy has no bfloat16")
        return data.view(dtype).reshape(shape)
    if FRAMEWORK == "torch":
        return module.frombuffer(bytearray(data), dtype=getattr(module, dtype)).reshape(shape) if data.size else \
            module.empty(shape, dtype=getattr(module, dtype))
    if FRAMEWORK == "paddle":
        return module.view(module.to_tensor(data), dtype).reshape(shape) if data.size else module.zeros(shape, dtype)
    made = module.array(data).view(getattr(module, dtype)).reshape(shape)
    module.eval(made)
    return made


def content(a) -> bytes:
    """The bytes of an array."""
    if FRAMEWORK == "numpy":
        return a.tobytes()
    if FRAMEWORK == "torch":
        return a.contiguous().view(module.uint8).numpy().tobytes()
    if FRAMEWORK == "paddle":
        return module.view(a, "uint8").numpy().tobytes() if a.size else b""
    return numpy.asarray(a.view(module.uint8)).tobytes()


def to_write(count: int, dtype: str, shape):
    """An array that a call may write, of garbage."""
    return array(numpy.full(count, 0x5a, numpy.uint8), dtype, shape)


def plan_of(case):
    if case.kind == "codes":
        return furl.plan_of_codes(case.shape, case.codec["bits"])
    return furl.plan(case.shape, case.codec)


@pytest.mark.parametrize("case", cases.CODED, ids=lambda case: case.name)
def test_bytes_are_those_of_the_headers(case):
    plan = plan_of(case)
    assert bytes(plan) == case.read("plan").tobytes()
    count = case.read("y").size
    x = array(case.read("x"), DTYPES[case.dtype], case.shape)
    for key in (cases.KEY, numpy.array(cases.KEY, numpy.uint64), numpy.array([11, 0, 12, 0], numpy.uint32)):
        blob = to_write(furl.blob_bytes(plan), "uint8", [furl.blob_bytes(plan)])
        y = to_write(count, DTYPES[case.dtype], case.shape)
        furl.compress(plan, x, key, blob)
        assert content(blob) == case.read("blob").tobytes()
        furl.decompress(plan, blob, key, y)
        assert content(y) == case.read("y").tobytes()


@pytest.mark.parametrize("case", cases.CODES, ids=lambda case: case.name)
def test_codes(case):
    plan = plan_of(case)
    assert bytes(plan) == case.read("plan").tobytes()
    blob = to_write(furl.blob_bytes(plan), "uint8", [furl.blob_bytes(plan)])
    codes = to_write(case.read("x").size, "uint8", case.shape)
    furl.pack(plan, array(case.read("x"), "uint8", case.shape), blob)
    assert content(blob) == case.read("blob").tobytes()
    furl.unpack(plan, blob, codes)
    assert content(codes) == case.read("x").tobytes()


def test_relu_and_sums():
    case = next(c for c in cases.CODED if c.name == "positives")
    x = case.read("x").view(numpy.float32)
    given = array(case.read("x"), "float32", case.shape)
    blob = to_write(case.read("blob").size, "uint8", [case.read("blob").size])
    y, out = (to_write(x.nbytes, "float32", case.shape) for _ in range(2))
    furl.relu(case.read("plan").tobytes(), given, cases.KEY, y, blob)
    assert content(blob) == case.read("blob").tobytes()
    assert content(y) == numpy.maximum(x, numpy.float32(0)).tobytes()
    furl.relu_backward(case.read("plan").tobytes(), blob, given, out)
    assert content(out) == numpy.maximum(x, numpy.float32(0)).tobytes()
    furl.decompress_add(case.read("plan").tobytes(), blob, cases.KEY, out)
    assert content(out) == (numpy.maximum(x, numpy.float32(0)) + case.read("y").view(numpy.float32)).tobytes()


ONES = numpy.ones((4, 300), numpy.float32)
REFUSALS = {
    "codec.bits is 9: must be 1..8": lambda: furl.plan((4, 300), {"bits": 9}),
    "codec.bits is -1: must be 1..8": lambda: furl.plan((4, 300), {"bits": (1 << 32) + 2}),
    'codec has no field "bit"': lambda: furl.plan((4, 300), {"bit": 2}),
    "codec.coding is -1: must be a value of its enum in furl.h": lambda: furl.plan((4, 300), {"coding": "rotten"}),
    "codec.window.rank is 2: must be the rank of the shape, or 0 for no window":
        lambda: furl.plan((4, 300, 1), {"window": (1, 8)}),
    "plan has 3 bytes: must have 96": lambda: furl.blob_bytes(b"abc"),
    "plan_bytes: not a plan of this version": lambda: furl.blob_bytes(bytes(96)),
    "plan has a number 326: must be 0..255":
        lambda: furl.blob_bytes([number + 256 for number in furl.plan((4, 300), {})]),
    "bits is -1: must be 1..8": lambda: furl.plan_of_codes((4, 300), (1 << 32) + 2),
    "key must be a pair of integers of 64 bits, or a tensor of 16 bytes":
        lambda: furl.compress(furl.plan((4, 300), {}), ONES, ONES, ONES),
    "x is 1200: must have as many elements as the plan's shape":
        lambda: furl.compress(furl.plan((4, 301), {}), ONES, (1, 2), numpy.zeros(1000, numpy.uint8)),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_arrive_as_value_errors(text):
    with pytest.raises(ValueError) as refused:
        REFUSALS[text]()
    assert str(refused.value) == "furl: " + text
