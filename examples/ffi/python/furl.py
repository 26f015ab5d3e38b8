# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""furl.h by ctypes, for every array of the host that has __dlpack__: NumPy, PyTorch, JAX, MLX and others.

    import numpy, furl
    plan = furl.make_plan(x.shape, bits=2)
    blob = numpy.empty(furl.sizes(plan).blob_bytes, numpy.uint8)
    furl.compress(plan, x, blob, seed=1, offset=step)
    furl.decompress(plan, blob, y, seed=1, offset=step)

A call that is refused raises ValueError with the line of text that furl.h promises. What is only read may be a
read-only array of NumPy. FURL_LIBRARY names the library; without it the loader looks for libfurl.so.1.
"""
import ctypes
import operator
import os
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p

_library = ctypes.CDLL(os.environ.get("FURL_LIBRARY", "libfurl.so.1"))
_text = c_char * 256


class Codec(Structure):
    """furl_codec. Its fields are the keywords of make_plan."""
    _fields_ = [("struct_bytes", c_uint32), ("bits", c_int32), ("group", c_int32), ("meta", c_int32),
                ("rounding", c_int32), ("coding", c_int32), ("by_lines", c_int32), ("window_rank", c_int32),
                ("window", c_int32 * 8)]


class Plan(Structure):
    """furl_plan: bytes(plan) are the 96 bytes, and Plan.from_buffer_copy takes them back."""
    _fields_ = [("bytes", ctypes.c_uint8 * 96)]


class Sizes(Structure):
    """furl_sizes."""
    _fields_ = [("struct_bytes", c_uint32), ("needs_key", c_int32), ("num_elements", c_int64), ("blob_bytes", c_int64)]


class Options(Structure):
    """furl_options."""
    _fields_ = [("struct_bytes", c_uint32), ("reserved", c_uint32), ("pool", c_void_p), ("stream", c_void_p),
                ("device_key", c_void_p)]


class Tensor(Structure):
    """furl_tensor, for memory without __dlpack__: see from_pointer."""
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("rank", c_int32),
                ("kind", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]

    @classmethod
    def from_pointer(cls, pointer: int, dtype: str, shape: tuple, device_type: int = 1, device_id: int = 0) -> "Tensor":
        """A tensor at an address. dtype: f32, f16, bf16 or u8."""
        kind, bits = {"f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "u8": (1, 8)}[dtype]
        sizes = (c_int64 * len(shape))(*shape)
        return cls(pointer, device_type, device_id, len(shape), kind, bits, 1, sizes)  # which keeps sizes alive


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]


class _Argument:
    """An array as an argument of a call, kept alive until the call is over. written_as: its name, if the call writes
    it: then it must not be read-only."""

    def __init__(self, array, written_as: str = ""):
        if isinstance(array, Tensor):
            self._kept, self._as_parameter_ = array, byref(array)
        elif _is_read_only(array):  # which NumPy's __dlpack__ refuses
            if written_as:
                raise ValueError(f"furl: {written_as} is read-only: must be an array that can be written")
            tensor = _tensor_of_interface(array.__array_interface__)
            self._kept, self._as_parameter_ = (array, tensor), byref(tensor)
        else:  # the first field of a DLManagedTensor is the DLTensor
            self._kept = array.__dlpack__()
            self._as_parameter_ = c_void_p(_capsule_pointer(self._kept, b"dltensor"))


def _is_read_only(array) -> bool:
    return hasattr(array, "__dlpack__") and getattr(array, "__array_interface__", {"data": (0, False)})["data"][1]


def _tensor_of_interface(interface: dict) -> Tensor:
    """The tensor that an __array_interface__ describes."""
    order, kind, num_bytes = interface["typestr"][0], interface["typestr"][1], int(interface["typestr"][2:])
    kinds = {"i": 0, "u": 1, "f": 2, "b": 6}  # of DLPack
    strides = interface["strides"] or ()
    if kind not in kinds or order not in "|<" or any(stride % num_bytes for stride in strides):
        raise ValueError(f"furl: the type of a read-only array is {interface['typestr']}: must be one of floats, "
                         "integers or bools of the machine's byte order, with strides of whole elements")
    shape, rank = interface["shape"], len(interface["shape"])
    return Tensor(interface["data"][0], 1, 0, rank, kinds[kind], 8 * num_bytes, 1, (c_int64 * rank)(*shape),
                  (c_int64 * rank)(*(stride // num_bytes for stride in strides)) if strides else None)


def _integer(kind, value: int, name: str):
    """The value as a C integer, which would wrap what it cannot hold."""
    if kind(value).value != operator.index(value):
        raise ValueError(f"furl: {name} is {value}: must fit {8 * ctypes.sizeof(kind)} bits")
    return kind(value)


def _shape(shape):
    """Sizes and rank, as arguments of a call."""
    sizes = [_integer(c_int64, size, "shape") for size in shape]
    return (c_int64 * len(sizes))(*sizes), c_int32(len(sizes))


def _call(name: str, *arguments) -> None:
    text = _text()
    function = getattr(_library, "furl_" + name)
    if function(*arguments, text) != 0:
        raise ValueError("furl: " + text.value.decode())


def make_plan(shape, **codec) -> Plan:
    """The plan of a codec, whose fields are given by name, for a shape. window: one size for each dimension."""
    c = Codec()
    _library.furl_codec_init(byref(c), c_uint32(ctypes.sizeof(c)))
    window = codec.pop("window", ())
    c.window_rank = len(window)
    c.window[:min(len(window), 8)] = [_integer(c_int32, width, "codec.window").value for width in window[:8]]
    for name, value in codec.items():
        if name not in [field[0] for field in Codec._fields_]:
            raise TypeError(f"furl: codec has no field {name}")
        setattr(c, name, _integer(dict(Codec._fields_)[name], value, f"codec.{name}").value)
    plan = Plan()
    _call("plan_make", byref(c), *_shape(shape), byref(plan))
    return plan


def make_plan_of_codes(shape, bits: int) -> Plan:
    """The plan of codes of some bits, for pack and unpack, and of the mask of relu with 1 bit."""
    plan = Plan()
    _call("plan_make_codes", _integer(c_int32, bits, "bits"), *_shape(shape), byref(plan))
    return plan


def sizes(plan: Plan) -> Sizes:
    found = Sizes(ctypes.sizeof(Sizes))
    _call("plan_sizes", byref(plan), byref(found))
    return found


class Pool:
    """Threads for calls: pool=Pool(8)."""
    handle = None

    def __init__(self, num_threads: int):
        _library.furl_pool_create.restype = c_void_p
        self.handle = _library.furl_pool_create(_integer(c_int32, num_threads, "num_threads"))
        if not self.handle:
            raise MemoryError("furl: the system has no threads")

    def __del__(self):
        _library.furl_pool_destroy(c_void_p(self.handle))


def _run(name: str, plan: Plan, inputs: tuple, outputs: dict, key: dict, pool, stream) -> None:
    options = Options(ctypes.sizeof(Options), pool=pool.handle if pool else None, stream=stream)
    arrays = [*map(_Argument, inputs), *(_Argument(array, written_as) for written_as, array in outputs.items())]
    words = [_integer(c_uint64, value, of) for of, value in key.items()]
    _call(name, byref(plan), *arrays, *words, byref(options))


def compress(plan, x, blob, seed: int, offset: int, pool=None, stream=None) -> None:
    """Writes the blob of x. stream: the handle of a CUDA stream, for tensors on a device."""
    _run("compress", plan, (x,), {"blob": blob}, {"seed": seed, "offset": offset}, pool, stream)


def decompress(plan, blob, y, seed: int = 0, offset: int = 0, pool=None, stream=None) -> None:
    """Writes y. seed and offset: those of compress; most plans ignore them."""
    _run("decompress", plan, (blob,), {"y": y}, {"seed": seed, "offset": offset}, pool, stream)


def decompress_add(plan, blob, y, seed: int = 0, offset: int = 0, pool=None, stream=None) -> None:
    """Adds to y."""
    _run("decompress_add", plan, (blob,), {"y": y}, {"seed": seed, "offset": offset}, pool, stream)


def pack(plan, codes, blob, pool=None, stream=None) -> None:
    _run("pack", plan, (codes,), {"blob": blob}, {}, pool, stream)


def unpack(plan, blob, codes, pool=None, stream=None) -> None:
    _run("unpack", plan, (blob,), {"codes": codes}, {}, pool, stream)


def relu(plan, x, y, blob, seed: int = 0, offset: int = 0, pool=None, stream=None) -> None:
    """Writes y = max(x, 0) and what relu_backward needs."""
    _run("relu", plan, (x,), {"y": y, "blob": blob}, {"seed": seed, "offset": offset}, pool, stream)


def relu_backward(plan, blob, g, out, pool=None, stream=None) -> None:
    """Writes out = g where x > 0, else 0."""
    _run("relu_backward", plan, (blob, g), {"out": out}, {}, pool, stream)
