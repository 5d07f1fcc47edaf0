# SPDX-License-Identifier: Apache-2.0
"""The user's bytes: their address for the library, which memory they are in, and what keeps them alive."""

import ctypes
import re

from ._context import _check
from ._cuda import check_place, device_array, DeviceArray, on_device
from ._declarations import _c, DEVICE, HOST


class Memory:
    """Memory that stays valid as long as this object exists. The library's functions take it as the address."""

    __slots__ = ("at", "size", "mem", "_owner", "_rows")

    def __init__(self, at, size, mem, owner, rows=None):
        self.at, self.size, self.mem = at, size, mem
        self._owner, self._rows = owner, rows

    @property
    def _as_parameter_(self):
        return self.at

    def stride(self, count, row_bytes, what):
        """Returns the bytes from one row to the next, for `count` rows of `row_bytes`."""
        if self.size != count * row_bytes:
            raise ValueError("%s have %d bytes, not %d rows of %d" % (what, self.size, count, row_bytes))
        if self._rows is None:
            return row_bytes
        if self._rows[:2] != (count, row_bytes):
            raise ValueError("%s are %d rows of %d bytes, not the %d of %d that lie apart"
                             % (what, count, row_bytes, *self._rows[:2]))
        return self._rows[2]


def one_memory(parts, what):
    """Returns which memory all parts that are not None are in; an error if they differ."""
    kinds = {part.mem for part in parts if part is not None}
    if len(kinds) > 1:
        raise ValueError("%s lie in one memory, the host's or the GPU's (`out` says where goes what is made)" % what)
    return kinds.pop() if kinds else HOST


def _found(data):
    """Returns bytes, a view of an object with a buffer, or an array on a GPU, which has no buffer."""
    if isinstance(data, bytes):
        return data
    try:
        return memoryview(data)
    except (TypeError, BufferError):
        if not on_device(data):
            raise
    return device_array(data)


def _flat(view):
    if "O" in re.sub(":[^:]*:", "", view.format):  # without the names of fields
        raise TypeError("objects of Python are no bytes: an array needs a dtype of numbers")
    if not view.c_contiguous:
        raise ValueError("bytes must lie one after the other (numpy.ascontiguousarray copies them so)")
    if not view.nbytes:  # an empty view with a dimension of 0 cannot be cast
        return memoryview(b"" if view.readonly else bytearray())
    return view.cast("B")


def _on_host(found, writable):
    """Returns the Memory of bytes or a view; a read-only view is copied."""
    if isinstance(found, bytes) and not writable:
        held = ctypes.c_char_p(found)
        # Not with ctypes.cast, whose results are in reference cycles that keep them until gc runs.
        return Memory(ctypes.c_void_p.from_buffer(held).value, len(found), HOST, held)
    view = _flat(memoryview(found))
    kind = ctypes.c_char * view.nbytes
    held = kind.from_buffer_copy(view) if view.readonly and not writable else kind.from_buffer(view)
    return Memory(ctypes.addressof(held), view.nbytes, HOST, held)


def _host_only(data):
    found = _found(data)
    if isinstance(found, DeviceArray):
        raise TypeError("this takes bytes in host memory, and the %s is on a GPU" % type(data).__name__)
    return found


def host(data, writable=False):
    """Returns the Memory of an object with a buffer, for calls that take host memory only."""
    return _on_host(_host_only(data), writable)


def flat(data):
    """Returns a flat view of the bytes of an object with a buffer."""
    return _flat(memoryview(_host_only(data)))


class Given:
    """The memory passed to one call on a Context or its handles, on the host or the Context's GPU.

    Kept alive until the call is over. rows: rows need not be contiguous, where the library takes a stride,
    which is then Memory.stride. wait() must come right before the call.
    """

    def __init__(self, context):
        self._context, self._streams, self._held = context, {}, []

    def read(self, data, rows=False):
        return self._take(data, False, rows)

    def write(self, data, rows=False):
        return self._take(data, True, rows)

    def keep(self, thing):
        """Keeps something else whose address the call has."""
        self._held.append(thing)
        return thing

    def wait(self):
        """Waits for others' work that is pending on these arrays: the library uses a stream of its own."""
        if not self._streams:
            return
        with self._context._busy() as at:
            for stream in self._streams:
                _wait(at, stream)

    def _take(self, data, writable, rows):
        found = _found(data)
        if not isinstance(found, DeviceArray):
            return self.keep(_on_host(found, writable))
        if writable and found.read_only:
            raise TypeError("the %s on the GPU is read-only" % type(data).__name__)
        if found.rows is not None and not rows:
            raise ValueError("bytes must lie one after the other, on a GPU, too: this takes no strides")
        check_place(self._context, found)
        if found.size and found.stream is not None:
            self._streams[found.stream] = None
        return self.keep(Memory(found.at, found.size, DEVICE, found, found.rows))


def _wait(context, stream):
    queue = ctypes.c_void_p()
    _check(_c.weft_queue_wrap_cuda_stream(context, stream, ctypes.byref(queue)))
    try:
        _check(_c.weft_queue_wait(queue), "of what was begun before on stream %#x" % stream)
    finally:
        _c.weft_queue_free(queue)
