# SPDX-License-Identifier: Apache-2.0
"""What the tests of Python share: their seed, keys, and arrays on a GPU by CUDA's driver alone, or on the double of one."""

import ctypes
import os
import random
import unittest

import weft
from weft._declarations import _c, _Stripe, DEVICE

DOUBLE = "DEVICE_DOUBLE" in os.environ


def main():
    seed = int(os.environ.get("WEFT_TEST_SEED", "0"), 0) or random.randrange(1 << 48)
    print("WEFT_TEST_SEED=%#x" % seed, flush=True)
    random.seed(seed)
    unittest.main()


def key():
    """Of whatever takes one."""
    return random.randbytes(32)


class Array:
    """What says of itself what it is told to, as arrays of CuPy do."""

    def __init__(self, at, shape, strides=None, typestr="|u1", read_only=False, version=3, **more):
        self.__cuda_array_interface__ = {"data": (at, read_only), "shape": shape, "strides": strides,
                                         "typestr": typestr, "version": version, **more}


class _Tensor(ctypes.Structure):
    """DLTensor (https://dmlc.github.io/dlpack/latest/c_api.html)."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi))


class Tensor:
    """What speaks DLPack and nothing else. strides: in elements. version: None before DLPack 1.0."""

    def __init__(self, at, shape, strides=None, bits=8, code=1, offset=0, device=2, version=(1, 0), read_only=False):
        self.version, self.device, self.asked = version, device, []
        tensor = _Tensor(at, (device, 0), len(shape), code, bits, 1, self._numbers(shape),
                         None if strides is None else self._numbers(strides), offset)
        self.held = _Managed(tensor) if version is None else _Versioned(version, None, None, int(read_only), tensor)

    @staticmethod
    def _numbers(some):
        return (ctypes.c_int64 * len(some))(*some)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        if self.version is None and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.asked.append(options)
        self.name = b"dltensor" if self.version is None else b"dltensor_versioned"
        return _new_capsule(ctypes.addressof(self.held), self.name, None)


# --- Devices

class _Device:
    """Memory that test cases have till their end, and streams."""

    def __init__(self, context):
        self.context, self.blocks, self.streams = context, [], []  # what frees each

    def new(self, data):
        """A flat array of these bytes."""
        return Array(self.address(data), (len(data),))

    def address(self, data):
        at = self.alloc(max(len(data), 1))
        self.write(at, bytes(data))
        return at

    def bytes(self, array):
        """Of all that it has, row for row."""
        interface = array.__cuda_array_interface__
        at, shape, strides = interface["data"][0], interface["shape"], interface["strides"]
        if strides is None:
            size = 1
            for number in shape:
                size *= number
            return self.read(at, size)
        return b"".join(self.read(at + i * strides[0], shape[1]) for i in range(shape[0]))

    def close(self):
        for free in self.streams + self.blocks:  # streams may be at work in blocks
            free()


class _Double(_Device):
    """Its memory is the host's, and must be had from the library."""

    def __init__(self, context):
        super().__init__(context)
        self.queues = {}

    def alloc(self, size):
        at = ctypes.c_void_p()
        assert _c.weft_alloc(self.context._at, DEVICE, size, ctypes.byref(at)) == 0
        self.blocks.append(lambda: _c.weft_free(self.context._at, DEVICE, at))
        return at.value

    write = staticmethod(lambda at, data: ctypes.memmove(at, data, len(data)))
    read = staticmethod(lambda at, size: ctypes.string_at(at, size))

    def stream(self):
        """That of a queue of the library's, whose second word it is."""
        queue = ctypes.c_void_p()
        _c.weft_queue_new(ctypes.c_void_p(self.context._at), ctypes.byref(queue))
        self.streams.append(lambda: _c.weft_queue_free(queue))
        stream = (ctypes.c_void_p * 2).from_address(queue.value)[1]
        self.queues[stream] = queue, weft.Code(self.context, "matrix", 1, 1, parity=b"\1")
        return stream

    def copy_later(self, to, at, size, stream):
        """A code whose parity is the data."""
        queue, code = self.queues[stream]
        stripe = _Stripe(shards=(ctypes.c_void_p * 2)(at, to), bytes=size, mem=DEVICE)
        assert _c.weft_code_encode(code._at, ctypes.byref(stripe), 1, queue) == 0

    def is_busy(self, stream):
        return stream in self.queues  # it gets on by chance, and nobody can ask


class Cuda(_Device):
    """The driver's, in the primary context of GPU 0."""

    def __init__(self, context):
        super().__init__(context)
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.cuda_context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.cuda_context), 0)
        self.call("cuCtxSetCurrent", self.cuda_context)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError("%s: CUDA error %d" % (name, status))

    def alloc(self, size, how="cuMemAlloc_v2", *more, free="cuMemFree_v2"):
        at = ctypes.c_uint64()
        self.call(how, ctypes.byref(at), ctypes.c_size_t(size), *more)
        self.blocks.append(lambda: self.call(free, at))
        return at.value

    def write(self, at, data):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(at), data, ctypes.c_size_t(len(data)))
        self.call("cuCtxSynchronize")

    def read(self, at, size):
        data = ctypes.create_string_buffer(max(size, 1))
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(at), ctypes.c_size_t(size))
        return data.raw[:size]

    def stream(self):
        """One that waits for no other."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)  # CU_STREAM_NON_BLOCKING
        self.streams.append(lambda: self.call("cuStreamDestroy_v2", stream))
        return stream.value

    def copy_later(self, to, at, size, stream):
        self.call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(at), ctypes.c_size_t(size),
                  ctypes.c_void_p(stream))

    def is_busy(self, stream):
        return self.driver.cuStreamQuery(ctypes.c_void_p(stream)) == 600  # CUDA_ERROR_NOT_READY


def device_of(context):
    return _Double(context) if DOUBLE else Cuda(context)


def device_context():
    """A Context of a GPU; without one the test is skipped, or fails where WEFT_NEEDS_GPU says that there is one."""
    try:
        return weft.Context(backend="cuda")
    except weft.Error as error:
        if error.name != "WEFT_E_BACKEND_ABSENT" or "WEFT_NEEDS_GPU" in os.environ:
            raise
        built = any(name.startswith("cuda") for name, _, _ in weft.backends())
        raise unittest.SkipTest("there is no GPU here that weft can use" if built
                                else "needs a GPU, and %s was built without CUDA" % _c._name) from None
