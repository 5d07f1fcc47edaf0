# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU: how they describe themselves, and where they are according to CUDA's driver.

The interface: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
"""

import ctypes
import functools
import math
import re
import typing

from . import _dlpack
from ._context import _check
from ._declarations import _c, _whole, DEVICE

_INTERFACE = "__cuda_array_interface__"
_LEGACY_STREAM = 1  # the default stream unless compiled for per-thread default streams
_KINDS_OF_BYTES = "biufcmMSUV"  # of typestr; O are objects, t bit fields


class DeviceArray(typing.NamedTuple):
    """GPU memory, as its owner describes it."""

    at: int
    size: int  # bytes
    rows: tuple  # (count, bytes of each, bytes from one to the next); None: contiguous
    read_only: bool
    stream: int  # on which work on it may be pending; None: no work is
    owner: object


def on_device(data):
    """Whether it is an array on a GPU. To be called only for objects without a buffer."""
    return _interface_of(data) is not None or _dlpack.on_cuda(data)


def device_array(data):
    interface = _interface_of(data)
    if interface is not None:
        return _of_interface(data, interface)
    tensor = _dlpack.tensor_of(data, _LEGACY_STREAM)
    size, rows = _laid_out(tensor.shape, tensor.strides, tensor.item_bytes)
    return DeviceArray(tensor.at, size, rows, tensor.read_only, _LEGACY_STREAM, tensor.owner)


def _interface_of(data):
    try:
        return getattr(data, _INTERFACE, None)
    except TypeError:  # PyTorch raises it for types that the interface cannot express
        return None


def _of_interface(data, interface):
    about = "the %s of a %s" % (_INTERFACE, type(data).__name__)
    lacking = [key for key in ("version", "typestr", "data", "shape") if key not in interface]
    if lacking:
        raise TypeError("%s lacks %s" % (about, ", ".join(lacking)))
    if interface["version"] not in (2, 3):
        raise ValueError("%s is of version %s, and only 2 and 3 are known" % (about, interface["version"]))
    if interface.get("mask") is not None:
        raise ValueError("%s has a mask, which would be lost" % about)
    at, read_only = interface["data"]
    shape = [_whole("shape", number, 63) for number in interface["shape"]]
    strides = interface.get("strides")
    if strides is not None and len(strides) != len(shape):
        raise ValueError("%s has %d strides for %d dimensions" % (about, len(strides), len(shape)))
    size, rows = _laid_out(shape, strides, _item_bytes(about, interface["typestr"]))
    stream, ordered = _stream_of(data, interface)
    return DeviceArray(_whole("data", at or 0), size, rows, bool(read_only), stream, (data, ordered))


def _item_bytes(about, typestr):
    found = re.fullmatch(r"[<>|=](.)(\d+)(\[.*\])?", typestr)
    if not found or found[1] not in _KINDS_OF_BYTES:
        raise TypeError("%s has typestr %r: an array needs a dtype of numbers" % (about, typestr))
    return int(found[2]) * (4 if found[1] == "U" else 1)


def _laid_out(shape, strides, item_bytes):
    """Returns its size in bytes and, if its rows are not contiguous, DeviceArray.rows. Strides are in bytes."""
    size = _whole("bytes", item_bytes * math.prod(shape))
    if not size or strides is None:
        return size, None
    row_bytes = item_bytes
    for i in reversed(range(len(shape))):
        if shape[i] > 1 and strides[i] != row_bytes:
            if strides[i] < row_bytes or any(number > 1 for number in shape[:i]):
                raise ValueError("bytes must lie one after the other, or in rows of which each does: "
                                 "shape %s, strides %s" % (tuple(shape), tuple(strides)))
            return size, (shape[i], row_bytes, _whole("a stride", strides[i]))
        row_bytes *= shape[i]
    return size, None


def _stream_of(data, interface):
    """Returns the stream to wait for, and what must be kept alive until then."""
    if "stream" in interface or interface["version"] > 2:
        if interface.get("stream") is None:
            return None, None
        stream = _whole("stream", interface["stream"])
        if not stream:
            raise ValueError("%s has stream 0, which may be one of two" % _INTERFACE)
        return stream, None
    # Version 2 cannot express streams. An owner with DLPack as well, such as PyTorch, has the default stream wait.
    ask = getattr(data, "__dlpack__", None)
    return _LEGACY_STREAM, ask(stream=_LEGACY_STREAM) if ask else None


# --- Where it is: work on an address that a device cannot access would break the device for all its users.

_MEMORY_HOST = 1


class _Place(typing.NamedTuple):
    device: int
    context: int  # CUDA's; 0: memory of all contexts of the device
    of_host: bool


@functools.lru_cache(maxsize=None)
def _driver():
    """Returns cuPointerGetAttributes, or None without a driver, and so without a GPU other than a test double."""
    try:
        ask = ctypes.CDLL("libcuda.so.1").cuPointerGetAttributes
    except OSError:
        return None
    ask.restype = ctypes.c_int
    ask.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
    return ask


def _place(at):
    """Returns where memory is, or None if the driver does not know it."""
    context, kind, managed, device = ctypes.c_uint64(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_int()
    wanted = (ctypes.c_int * 4)(1, 2, 8, 9)  # CU_POINTER_ATTRIBUTE_CONTEXT, _MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL
    answers = (ctypes.c_void_p * 4)(*map(ctypes.addressof, (context, kind, managed, device)))
    if _driver()(4, wanted, answers, at) or not kind.value:
        return None
    return _Place(device.value, 0 if managed.value else context.value, kind.value == _MEMORY_HOST and not managed.value)


def _own_place(context):
    """Returns where a Context's own device memory is; None without a driver."""
    if context._place is None:
        memory = ctypes.c_void_p()
        with context._busy() as at:
            status = _c.weft_alloc(at, DEVICE, 1, ctypes.byref(memory))
            if _c.weft_status_name(status) == b"WEFT_E_UNSUPPORTED":
                raise ValueError("an array on a GPU, and a Context that computes on the CPU (%s)" % context.backend)
            _check(status)
            try:
                context._place = (_place(memory.value) if _driver() else None,)
            finally:
                _c.weft_free(at, DEVICE, memory)
    return context._place[0]


def check_place(context, array):
    """Raises an error unless the array is in the memory of the Context's device."""
    own = _own_place(context)
    if not array.size:
        return
    if not array.at:
        raise ValueError("an array of %d bytes at address 0" % array.size)
    if own is None:
        return
    place = _place(array.at)
    if place is None:
        raise ValueError("CUDA's driver knows of no memory at %#x" % array.at)
    if place.of_host:
        raise ValueError("pinned memory of the host, which is given as what has a buffer")
    if place.device != own.device:
        raise ValueError("an array on GPU %d, and a Context on GPU %d" % (place.device, own.device))
    if place.context and place.context != own.context:
        raise ValueError("an array of another CUDA context of GPU %d than the Context's, which is the one that was "
                         "current where it was made, or else the primary one" % own.device)
