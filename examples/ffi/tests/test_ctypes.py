# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""libfurl by ctypes and NumPy: bytes as the headers make them, refusals in words, threads, ages of structs."""
import ctypes
import os
import pathlib
import re
import subprocess
import threading

import cases
import furl
import numpy
import pytest


def by_name(case):
    return case.name


def plan_of(case):
    if case.kind == "codes":
        return furl.make_plan_of_codes(case.shape, case.codec["bits"])
    return furl.make_plan(case.shape, **case.codec)


def tensor(data: numpy.ndarray, case) -> furl.Tensor:
    """Bytes as a tensor of the case's type, by pointer: NumPy has no bf16."""
    return furl.Tensor.from_pointer(data.ctypes.data, case.dtype, case.shape)


def shifted(count: int, shift: int) -> numpy.ndarray:
    """Bytes that lie `shift` behind a boundary of 64."""
    memory = numpy.empty(count + 128, numpy.uint8)
    begin = -memory.ctypes.data % 64 + shift
    return memory[begin:begin + count]


@pytest.mark.parametrize("case", cases.CODED, ids=by_name)
def test_bytes_are_those_of_the_headers(case):
    plan = plan_of(case)
    assert bytes(plan) == case.read("plan").tobytes()
    assert furl.sizes(plan).blob_bytes == case.read("blob").size
    assert furl.sizes(plan).num_elements == numpy.prod(case.shape)
    x, y = case.read("x"), numpy.empty_like(case.read("y"))
    pool = furl.Pool(3)
    for shift in (0, 1, 8):
        for threads in (None, pool):
            blob = shifted(furl.sizes(plan).blob_bytes, shift)
            furl.compress(plan, tensor(x, case), blob, *cases.KEY, pool=threads)
            assert blob.tobytes() == case.read("blob").tobytes()
            y[:] = 0xff
            furl.decompress(plan, blob, tensor(y, case), *cases.KEY, pool=threads)
            assert y.tobytes() == case.read("y").tobytes()


@pytest.mark.parametrize("case", cases.CODES, ids=by_name)
def test_codes(case):
    plan = plan_of(case)
    assert bytes(plan) == case.read("plan").tobytes()
    blob = numpy.empty(furl.sizes(plan).blob_bytes, numpy.uint8)
    furl.pack(plan, case.read("x").reshape(case.shape), blob)
    assert blob.tobytes() == case.read("blob").tobytes()
    codes = numpy.empty(case.shape, numpy.uint8)
    furl.unpack(plan, blob, codes)
    assert codes.tobytes() == case.read("x").tobytes()


def test_tensors_may_begin_behind_their_data():
    case = cases.CODED[0]
    data = case.read("x")
    x = tensor(data, case)
    x.data, x.byte_offset = x.data - 20, 20
    blob = numpy.empty(case.read("blob").size, numpy.uint8)
    furl.compress(plan_of(case), x, blob, *cases.KEY)
    assert blob.tobytes() == case.read("blob").tobytes()


def test_an_empty_tensor_may_have_any_other_sizes():
    shape = (0, 2**62, 4)
    plan, x = furl.make_plan(shape), furl.Tensor.from_pointer(0, "f32", shape)
    furl.compress(plan, x, numpy.empty(0, numpy.uint8), 1, 2)


def test_decompress_adds():
    case = cases.CODED[0]
    plan = plan_of(case)
    y = numpy.full(case.shape, 2, numpy.float32)
    furl.decompress_add(plan, case.read("blob"), y)
    assert (y == 2 + case.read("y").view(numpy.float32).reshape(case.shape)).all()


@pytest.mark.parametrize("kind", ["mask", "positives"])
def test_relu(kind):
    x = numpy.random.default_rng(1).normal(size=(3, 1000)).astype(numpy.float32)
    plan = furl.make_plan(x.shape, coding=2) if kind == "positives" else furl.make_plan_of_codes(x.shape, 1)
    blob = numpy.empty(furl.sizes(plan).blob_bytes, numpy.uint8)
    y, g, out = numpy.empty_like(x), numpy.arange(3000, dtype=numpy.float32).reshape(x.shape), numpy.empty_like(x)
    furl.relu(plan, x, y, blob, 1, 2)
    furl.relu_backward(plan, blob, g, out)
    assert (y == numpy.maximum(x, 0)).all()
    assert (out == numpy.where(x > 0, g, 0)).all()
    if kind == "positives":
        compressed = numpy.empty_like(blob)
        furl.compress(plan, x, compressed, 1, 2)
        assert (compressed == blob).all()


def read_only(array: numpy.ndarray) -> numpy.ndarray:
    view = array[...]
    view.flags.writeable = False
    return view


def test_what_is_read_may_be_read_only():
    case = next(c for c in cases.CODED if c.dtype == "f32")
    plan, x = plan_of(case), case.read("x").view(numpy.float32).reshape(case.shape)
    blob, y = numpy.empty(furl.sizes(plan).blob_bytes, numpy.uint8), numpy.empty_like(x)
    furl.compress(plan, read_only(x), blob, *cases.KEY)
    assert blob.tobytes() == case.read("blob").tobytes()
    furl.decompress(plan, numpy.frombuffer(blob.tobytes(), numpy.uint8), y, *cases.KEY)
    assert y.tobytes() == case.read("y").tobytes()
    bools, plan = numpy.arange(24).reshape(2, 12) % 3 == 0, furl.make_plan_of_codes((2, 12), 1)
    blob, codes = numpy.empty(furl.sizes(plan).blob_bytes, numpy.uint8), numpy.empty_like(bools)
    furl.pack(plan, read_only(bools), blob)
    furl.unpack(plan, read_only(blob), codes)
    assert (codes == bools).all()


def test_a_read_only_array_of_another_kind_is_refused():
    for array, text in [(X.astype(">f4"), "the type of a read-only array is >f4: must be"),
                        (X.astype(numpy.complex64), "is <c8: must be"), (X.astype(numpy.float64), "x is 64: "),
                        (X.T.copy().T, "x is 2: .rank. strides must be"),
                        (numpy.broadcast_to(X[:, :1], X.shape), "x is 2: .rank. strides must be")]:
        with pytest.raises(ValueError, match=text):
            furl.compress(PLAN, read_only(array), BLOB, 1, 2)


def test_a_read_only_output_is_refused():
    codes, codes_plan = numpy.zeros((4, 300), numpy.uint8), furl.make_plan_of_codes(X.shape, 1)
    calls = {
        "blob": [lambda: furl.compress(PLAN, X, read_only(BLOB), 1, 2),
                 lambda: furl.pack(codes_plan, codes, read_only(BLOB)),
                 lambda: furl.relu(codes_plan, X, X.copy(), read_only(BLOB))],
        "y": [lambda: furl.decompress(PLAN, BLOB, read_only(X)), lambda: furl.decompress_add(PLAN, BLOB, read_only(X)),
              lambda: furl.relu(codes_plan, X, read_only(X), BLOB)],
        "codes": [lambda: furl.unpack(codes_plan, BLOB, read_only(codes))],
        "out": [lambda: furl.relu_backward(codes_plan, BLOB, X, read_only(X))]}
    for name, those in calls.items():
        for call in those:
            with pytest.raises(ValueError, match=f"furl: {name} is read-only: must be an array that can be written"):
                call()


X = numpy.zeros((4, 300), numpy.float32)
PLAN = furl.make_plan(X.shape)
BLOB = numpy.zeros(furl.sizes(PLAN).blob_bytes, numpy.uint8)
POSITIVES = furl.make_plan(X.shape, coding=2)
LARGE = numpy.zeros(X.nbytes + furl.sizes(POSITIVES).blob_bytes, numpy.uint8)


def of_lanes(lanes: int) -> furl.Tensor:
    x = furl.Tensor.from_pointer(X.ctypes.data, "f32", (1200 // lanes,))
    x.lanes = lanes
    return x


REFUSALS = {
    "codec.bits is 9: must be 1..8": lambda: furl.make_plan(X.shape, bits=9),
    "codec.rounding is 3: must be a value of its enum in furl.h": lambda: furl.make_plan(X.shape, rounding=3),
    "codec.meta is 258: must be a value of its enum in furl.h": lambda: furl.make_plan(X.shape, meta=258),
    "codec.by_lines is 2: must be 0 or 1": lambda: furl.make_plan(X.shape, by_lines=2),
    "codec.bits is 1099511627776: must fit 32 bits": lambda: furl.make_plan(X.shape, bits=2**40),
    "codec.window is 4294967304: must fit 32 bits": lambda: furl.make_plan(X.shape, window=(1, 2**32 + 8)),
    "shape is 18446744073709551620: must fit 64 bits": lambda: furl.make_plan((2**64 + 4, 300)),
    "num_threads is 4294967298: must fit 32 bits": lambda: furl.Pool(2**32 + 2),
    "seed is -1: must fit 64 bits": lambda: furl.compress(PLAN, X, BLOB, seed=-1, offset=0),
    "codec is 3: struct_bytes must be the struct's size": lambda: furl.make_plan(X.shape, struct_bytes=3),
    "plan_bytes: not a plan of this version": lambda: furl.sizes(furl.Plan()),
    "sizes is 0: struct_bytes must be the struct's size":
        lambda: furl._call("plan_sizes", ctypes.byref(PLAN), ctypes.byref(furl.Sizes())),
    "shape: must not be null": lambda: furl._call("plan_make", None, None, 2, ctypes.byref(furl.Plan())),
    "plan: must not be null": lambda: furl._call("plan_make", None, None, 0, None),
    "rank is -1: must not be negative": lambda: furl._call("plan_make", None, None, -1, ctypes.byref(furl.Plan())),
    "x: must not be null":
        lambda: furl._call("compress", ctypes.byref(PLAN), None, None, ctypes.c_uint64(), ctypes.c_uint64(), None),
    "x is 1199: must have as many elements as the plan's shape":
        lambda: furl.compress(PLAN, X.reshape(-1)[1:], BLOB, 1, 2),
    "x is 64: (bits of an element) dtype must be f32, f16 or bf16":
        lambda: furl.compress(PLAN, X.astype(numpy.float64), BLOB, 1, 2),
    "x is 2: (rank) strides must be those of rows without gaps": lambda: furl.compress(PLAN, X.T.copy().T, BLOB, 1, 2),
    "blob is 32: (bits of an element) dtype must be u8, i8 or bool": lambda: furl.compress(PLAN, X, X, 1, 2),
    f"blob is {BLOB.size - 1}: must have at least plan.size_bytes() bytes":
        lambda: furl.compress(PLAN, X, BLOB[1:], 1, 2),
    "x: must not overlap the blob":
        lambda: furl.compress(PLAN, X, X.reshape(-1).view(numpy.uint8)[:BLOB.size], 1, 2),
    "x: must be in memory of the host or of a CUDA device":
        lambda: furl.compress(PLAN, furl.Tensor.from_pointer(X.ctypes.data, "f32", X.shape, 8), BLOB, 1, 2),
    "blob: must be in the memory of the other tensors": lambda: furl.compress(
        PLAN, X, furl.Tensor.from_pointer(BLOB.ctypes.data, "u8", BLOB.shape, 2), 1, 2),
    "x is -1: sizes must not be negative":
        lambda: furl.compress(PLAN, furl.Tensor.from_pointer(X.ctypes.data, "f32", (-1, 300)), BLOB, 1, 2),
    "x is 2: (rank) sizes must not multiply to 2^63":
        lambda: furl.compress(PLAN, furl.Tensor.from_pointer(X.ctypes.data, "f32", (1 << 62, 4)), BLOB, 1, 2),
    "plan: must come from plan::make_codes": lambda: furl.pack(PLAN, X.astype(numpy.uint8), BLOB),
    "options.device_key: is for tensors on a device": lambda: furl._call(
        "unpack", ctypes.byref(furl.make_plan_of_codes((8,), 1)), furl._Argument(BLOB), furl._Argument(BLOB[:8]),
        ctypes.byref(furl.Options(ctypes.sizeof(furl.Options), device_key=16))),
    "x is 2: (lanes of an element) must have 1": lambda: furl.compress(PLAN, of_lanes(2), BLOB, 1, 2),
    "options.reserved is 5: must be 0": lambda: furl._call(
        "unpack", ctypes.byref(furl.make_plan_of_codes((8,), 1)), furl._Argument(BLOB), furl._Argument(BLOB[:8]),
        ctypes.byref(furl.Options(ctypes.sizeof(furl.Options), reserved=5))),
    "plan: must be one that furl_relu takes":
        lambda: furl.relu_backward(furl.make_plan_of_codes(X.shape, 3), BLOB, X, numpy.empty_like(X)),
    "out: must not overlap the blob": lambda: furl.relu_backward(  # its codes: the mask is behind them
        POSITIVES, LARGE[X.nbytes - 4:], X, LARGE[:X.nbytes].view(numpy.float32)),
    "options is 2: struct_bytes must be the struct's size": lambda: furl._call(
        "unpack", ctypes.byref(PLAN), furl._Argument(BLOB), furl._Argument(BLOB), ctypes.byref(furl.Options(2))),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_name_argument_value_and_limit(text):
    before = BLOB.tobytes()
    with pytest.raises(ValueError) as refused:
        REFUSALS[text]()
    assert str(refused.value) == "furl: " + text
    assert BLOB.tobytes() == before and not X.any()


def test_text_may_be_null():
    assert furl._library.furl_plan_make(None, None, 2, ctypes.byref(furl.Plan()), None) == 2  # FURL_NULL_POINTER


def test_symbols_are_those_of_the_header():
    library = os.environ["FURL_LIBRARY"]
    found = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    header = (pathlib.Path(__file__).parents[1] / "furl.h").read_text()
    declared = re.findall(r"^FURL_API .*?(furl_\w+)\(", header, re.MULTILINE)
    assert sorted(re.findall(r" T (\S+)", found)) == sorted(f"{name}@@FURL_1" for name in declared)
    dynamic = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
    assert "soname: [libfurl.so.1]" in dynamic.lower()
    assert "libstdc++" not in dynamic


class LaterCodec(furl.Codec):
    _fields_ = [("later", ctypes.c_int32)]


def test_structs_of_other_ages():
    """A program older than the library lacks fields, one that is later has more, which must be 0."""
    assert bytes(furl.make_plan(X.shape, bits=3, group=64, struct_bytes=8)) == bytes(furl.make_plan(X.shape, bits=3))
    later, plan = LaterCodec(), furl.Plan()
    later.later = 1
    furl._library.furl_codec_init(ctypes.byref(later), ctypes.c_uint32(ctypes.sizeof(later)))
    assert (later.struct_bytes, later.bits, later.later) == (ctypes.sizeof(later), 2, 0)
    arguments = ctypes.byref(later), (ctypes.c_int64 * 2)(4, 300), 2, ctypes.byref(plan)
    furl._call("plan_make", *arguments)
    assert bytes(plan) == bytes(PLAN)
    later.later = 1
    with pytest.raises(ValueError, match="codec is 68: has a field of a later libfurl"):
        furl._call("plan_make", *arguments)
    older = furl.Sizes(8)
    older.blob_bytes = 77
    furl._call("plan_sizes", ctypes.byref(furl.make_plan(X.shape, coding=1)), ctypes.byref(older))
    assert (older.needs_key, older.blob_bytes) == (1, 77)


def test_many_threads_call_at_once_with_one_pool():
    pool = furl.Pool(2)
    case = next(c for c in cases.CODED if c.name == "positives")
    plan, x = plan_of(case), case.read("x")
    wrong = []

    def work():
        blob = numpy.empty(furl.sizes(plan).blob_bytes, numpy.uint8)
        for _ in range(50):
            blob[:] = 0
            furl.compress(plan, tensor(x, case), blob, *cases.KEY, pool=pool)
            if blob.tobytes() != case.read("blob").tobytes():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
