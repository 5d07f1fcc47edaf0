# SPDX-License-Identifier: Apache-2.0
"""Arrays on a GPU: what they say of themselves, and what CUDA's driver says of where they are.

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
_LEGACY_STREAM = 1  # the default stream of a program that is not compiled for one per thread
_KINDS_OF_BYTES = "biufcmMSUV"  # of typestr; O are objects, t parts of bytes


class DeviceArray(typing.NamedTuple):
    """Memory of a GPU, as its owner describes it."""

    at: int
    size: int  # bytes
    rows: tuple  # (how many, bytes of each, bytes from one to the next); None: all lie one after the other
    read_only: bool
    stream: int  # on which work with it may be under way; None: it is over
    owner: object


def on_device(data):
    """Whether it is such an array; what has a buffer was asked for that before."""
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
    except TypeError:  # as PyTorch has it for types that the interface has no word for
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
    """Its bytes, and its rows where these lie apart; strides in bytes."""
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
    """What to wait for, and what must be kept till then."""
    if "stream" in interface or interface["version"] > 2:
        if interface.get("stream") is None:
            return None, None
        stream = _whole("stream", interface["stream"])
        if not stream:
            raise ValueError("%s has stream 0, which may be one of two" % _INTERFACE)
        return stream, None
    # Version 2 has no word for streams. Who speaks DLPack, too, as PyTorch does, has the default one wait for its own.
    ask = getattr(data, "__dlpack__", None)
    return _LEGACY_STREAM, ask(stream=_LEGACY_STREAM) if ask else None


# --- Where it is: an address that a device cannot reach would end the work of all that use the device.

_MEMORY_HOST = 1


class _Place(typing.NamedTuple):
    device: int
    context: int  # of CUDA; 0: memory of all contexts of the device
    of_host: bool


@functools.lru_cache(maxsize=None)
def _driver():
    """cuPointerGetAttributes, or None: there is no driver, and so no GPU but a double of one."""
    try:
        ask = ctypes.CDLL("libcuda.so.1").cuPointerGetAttributes
    except OSError:
        return None
    ask.restype = ctypes.c_int
    ask.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
    return ask


def _place(at):
    """None: the driver knows nothing of such memory."""
    context, kind, managed, device = ctypes.c_uint64(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_int()
    wanted = (ctypes.c_int * 4)(1, 2, 8, 9)  # CU_POINTER_ATTRIBUTE_CONTEXT, _MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL
    answers = (ctypes.c_void_p * 4)(*map(ctypes.addressof, (context, kind, managed, device)))
    if _driver()(4, wanted, answers, at) or not kind.value:
        return None
    return _Place(device.value, 0 if managed.value else context.value, kind.value == _MEMORY_HOST and not managed.value)


def _own_place(context):
    """Where a Context's own memory on its device is; None: no driver tells."""
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
    """Raises an error unless the Context's device has it."""
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
