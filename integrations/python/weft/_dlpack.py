# SPDX-License-Identifier: Apache-2.0
"""Tensors on a GPU with DLPack (https://dmlc.github.io/dlpack/latest/), read without taking ownership."""

import ctypes
import typing

_CUDA = 2  # kDLCUDA
_OPAQUE = 3  # kDLOpaqueHandle
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_VERSION = 1, 0


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class Tensor(typing.NamedTuple):
    at: int
    shape: list
    strides: list  # in bytes; None: contiguous
    item_bytes: int
    read_only: bool
    owner: object


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


def on_cuda(data):
    if not hasattr(data, "__dlpack__") or not hasattr(data, "__dlpack_device__"):
        return False
    return data.__dlpack_device__()[0] == _CUDA


def tensor_of(data, stream):
    """Returns the tensor of an object, whose owner has `stream` wait for the work pending on it.

    The capsule is never renamed, which would give us ownership: it frees the tensor when it is freed.
    """
    try:
        capsule = data.__dlpack__(stream=stream, max_version=_VERSION)
    except TypeError:  # before DLPack 1.0
        capsule = data.__dlpack__(stream=stream)
    tensor, read_only = _opened(data, capsule)
    if tensor.device_type != _CUDA:
        raise ValueError("__dlpack__ of a %s gave memory of another device" % type(data).__name__)
    bits = tensor.bits * tensor.lanes
    if bits % 8 or tensor.code == _OPAQUE:
        raise TypeError("elements of %d bits that are no bytes: an array needs a dtype of numbers" % bits)
    shape = tensor.shape[:tensor.ndim] if tensor.ndim else []
    strides = [step * bits // 8 for step in tensor.strides[:tensor.ndim]] if tensor.strides and shape else None
    return Tensor((tensor.data or 0) + tensor.byte_offset, shape, strides, bits // 8, read_only, (data, capsule))


def _opened(data, capsule):
    """Returns a capsule's tensor, and whether it is marked read-only, which DLPack has from 1.0 on."""
    if _is_valid(capsule, b"dltensor_versioned"):
        found = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if found.major != _VERSION[0]:
            raise ValueError("__dlpack__ of a %s gave version %d.%d, and only 1 is known"
                             % (type(data).__name__, found.major, found.minor))
        return found.tensor, bool(found.flags & _READ_ONLY)
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor")), False
    raise TypeError("__dlpack__ of a %s gave no tensor" % type(data).__name__)
