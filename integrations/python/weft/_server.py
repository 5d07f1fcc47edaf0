# SPDX-License-Identifier: Apache-2.0
"""The streaming server's coder: takes segments, gives coded datagrams for many clients."""

import atexit
import collections
import contextlib
import ctypes
import dataclasses
import time
import typing
import weakref

from ._callbacks import _CalledBack
from ._context import _check, Context, Error
from ._declarations import (
    _c, _declare, _fill, _handle, _id, _out, _size, _whole, _written, CONSTANTS, OK, SegmentId, STRUCTURES)
from ._engine import time_of
from ._memory import host
from ._rlnc import _density

_MAX_LANES = 16
_FOREVER_US = (1 << 63) - 1
_CLOCK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_TAKEN_AT_ONCE = 256


class _ServerOptions(ctypes.Structure):
    _fields_ = [
        ("contexts", _out),
        ("context_count", _size),
        ("now_us", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
        ("memory_bytes", _size),
        ("ready_bytes", _size),
        ("gather_us", ctypes.c_int64),
        ("batch_packets", _size),
        ("pending_packets", _size),
        ("density_q16", ctypes.c_uint16),
        ("fall_over", ctypes.c_bool),
        ("repeatable", ctypes.c_bool),
    ]


class _ServerRequest(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_uint64), ("segment", ctypes.c_uint64), ("client", ctypes.c_uint64),
                ("packets", ctypes.c_uint32)]


class _ServerPacket(ctypes.Structure):
    _fields_ = [("client", ctypes.c_uint64), ("stream", ctypes.c_uint64), ("segment", ctypes.c_uint64),
                ("datagram", ctypes.c_void_p), ("bytes", _size), ("status", ctypes.c_int),
                ("lease", ctypes.c_void_p)]


class _LaneStatistics(ctypes.Structure):
    _fields_ = [("backend", ctypes.c_char_p), ("failed", ctypes.c_bool),
                *((name, ctypes.c_uint64) for name in ("batches", "packets", "coded_bytes", "busy_us"))]


class _ServerStatistics(ctypes.Structure):
    _fields_ = [
        *((name, _size) for name in ("segments", "segment_bytes", "ready_bytes", "pending_packets")),
        *((name, ctypes.c_uint64) for name in ("evicted", "expired", "fallen_over")),
        ("lanes", _size),
        ("lane", _LaneStatistics * _MAX_LANES),
    ]


STRUCTURES.update({
    "weft_server_options": _ServerOptions,
    "weft_server_request": _ServerRequest,
    "weft_server_packet": _ServerPacket,
    "weft_server_lane_stats": _LaneStatistics,
    "weft_server_stats": _ServerStatistics,
})
CONSTANTS["WEFT_SERVER_MAX_LANES"] = _MAX_LANES

_declare({
    "weft_server_new": (ctypes.c_int, [ctypes.POINTER(_ServerOptions), _out]),
    "weft_server_free": (None, [_handle]),
    "weft_server_push": (ctypes.c_int, [_handle, _id, ctypes.c_void_p, _size, ctypes.c_int64, ctypes.c_int64]),
    "weft_server_has": (ctypes.c_bool, [_handle, ctypes.c_uint64, ctypes.c_uint64]),
    "weft_server_drop": (ctypes.c_int, [_handle, ctypes.c_uint64, ctypes.c_uint64]),
    "weft_server_request_many": (ctypes.c_int, [_handle, ctypes.POINTER(_ServerRequest), _size, ctypes.c_int64,
                                                _written]),
    "weft_server_cancel": (ctypes.c_int, [_handle, ctypes.c_uint64]),
    "weft_server_cancel_segment": (ctypes.c_int, [_handle, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64]),
    "weft_server_fd": (ctypes.c_int, [_handle]),
    "weft_server_deadline": (ctypes.c_int64, [_handle]),
    "weft_server_process": (ctypes.c_int, [_handle, ctypes.c_int64]),
    "weft_server_take": (ctypes.c_int, [_handle, ctypes.POINTER(_ServerPacket), _size, _written]),
    "weft_server_release": (None, [_handle, ctypes.POINTER(_ServerPacket), _size]),
    "weft_server_get_stats": (None, [_handle, ctypes.POINTER(_ServerStatistics)]),
    "weft_server_predict_lane": (_size, [_handle, _id, _size]),
})


@dataclasses.dataclass(frozen=True)
class ServerOptions:
    """weft/server.h specifies each option, and what 0 stands for. density: as in Encoder."""

    memory_bytes: int = 0
    ready_bytes: int = 0
    gather_us: int = 0
    batch_packets: int = 0
    pending_packets: int = 0
    density: float = 0
    fall_over: bool = False
    repeatable: bool = False


class ServerRequest(typing.NamedTuple):
    """A request for coded packets of a segment for a client; the caller chooses the clients' numbers."""

    stream: int
    segment: int
    client: int
    packets: int


class ServerPacket(typing.NamedTuple):
    """A datagram for a client; or None, and the error that prevented it."""

    client: int
    stream: int
    segment: int
    datagram: bytes
    error: Error = None


LaneStatistics = collections.namedtuple("LaneStatistics", [field[0] for field in _LaneStatistics._fields_])
ServerStatistics = collections.namedtuple(
    "ServerStatistics", [field[0] for field in _ServerStatistics._fields_ if field[0] != "lane"])

_servers = weakref.WeakSet()


@atexit.register
def _stop():
    """Closes all servers while the interpreter still runs callbacks: their threads ask it for the time."""
    raised = []
    for server in list(_servers):
        try:
            server.close()
        except BaseException as error:  # the others must be closed, too, or the exit hangs
            raised.append(error)
    if raised:
        raise raised[0]


def _freer(marks):
    """Returns a function that frees a server and then removes its marks, its entries in its other contexts."""
    def free(at):
        _c.weft_server_free(at)
        for context, mark in marks:
            context._made.pop(mark, None)

    return free


class Server(_CalledBack):
    """Codes on one thread for each of its contexts, divides work by their measured speeds, and never waits.

    push segments and request packets; call process at deadline_us, and when the server, whose fileno() works with
    select and asyncio, is readable; then take packets(). clock_us returns microseconds, with which its threads are
    measured; they call it. The times passed to calls may be from another clock.
    """

    def __init__(self, contexts, options=ServerOptions(), clock_us=lambda: time.monotonic_ns() // 1000):
        contexts = list(contexts)
        if not contexts or not all(isinstance(context, Context) for context in contexts):
            raise TypeError("a server has a list of Contexts")
        super().__init__(contexts[0])
        table = _fill(_ServerOptions(), options, (
            "memory_bytes", "ready_bytes", "gather_us", "batch_packets", "pending_packets", "fall_over", "repeatable"))
        table.density_q16 = _density(options.density)
        table.context_count = len(contexts)
        clock = self._callbacks.make(_CLOCK, lambda _: clock_us(), int)
        table.now_us = ctypes.c_void_p.from_buffer(clock).value
        at = ctypes.c_void_p()
        with contextlib.ExitStack() as busy:
            open_ones = [busy.enter_context(context._busy()) for context in contexts]
            table.contexts = (ctypes.c_void_p * len(contexts))(*open_ones)
            status = _c.weft_server_new(ctypes.byref(table), ctypes.byref(at))
            if at.value:
                marks = []
                self._take(at, _freer(marks))
                _servers.add(self)
                self._follow(contexts[1:], at.value, marks)
        self._callbacks.tell()
        _check(status, repr(options))

    def _follow(self, contexts, at, marks):
        """Has the closing of any context close the server, which its first context frees."""
        first, lock = self._context, self._lock
        for context in set(contexts) - {first}:
            mark = object()
            context._note(mark, lambda _: first._let_go(at, lock), lock)
            marks.append((context, mark))

    def close(self):
        """Drops pending requests and waits for running ones."""
        super().close()

    def _end(self):
        super()._end()
        self._callbacks.tell()

    # --- Segments and requests

    def push(self, shape, data, now_us, expires_us):
        """Copies a segment and makes it available until expires_us. Errors as in weft/server.h."""
        if not isinstance(shape, SegmentId):
            raise TypeError("the shape is a SegmentId, not %s" % type(shape).__name__)
        held = host(data)
        _check(self._run(_c.weft_server_push, ctypes.byref(shape), held, held.size,
                         time_of(now_us), time_of(expires_us)), "%d bytes as %r" % (held.size, shape))

    def has(self, stream, segment):
        return self._run(_c.weft_server_has, _whole("stream", stream, 64), _whole("segment", segment, 64))

    def drop(self, stream, segment):
        """Drops a segment before it expires; packets requested are still made. WEFT_E_FOREIGN: no such segment."""
        _check(self._run(_c.weft_server_drop, _whole("stream", stream, 64), _whole("segment", segment, 64)),
               "segment %d of stream %d" % (segment, stream))

    def request(self, requests, now_us):
        """Requests packets, in the order of the ServerRequests. Error: that of the first one not accepted.

        Its attribute `accepted` is how many were accepted before it. WEFT_E_FOREIGN: no such segment.
        WEFT_E_BUFFER: more than pending_packets would be pending; ask again when some have been made. After either,
        the requests behind it have not been tried.
        """
        requests = [ServerRequest(*one) for one in requests]
        table = (_ServerRequest * len(requests))(*(
            _fill(_ServerRequest(), one, ServerRequest._fields) for one in requests))
        accepted = _size()
        status = self._run(_c.weft_server_request_many, table, len(requests), time_of(now_us), ctypes.byref(accepted))
        if status != OK:
            error = Error(status, repr(requests[accepted.value]))
            error.accepted = accepted.value
            raise error

    def cancel(self, client):
        """Drops a client's pending requests; packets that are ready or being made still come."""
        _check(self._run(_c.weft_server_cancel, _whole("client", client, 64)))

    def cancel_segment(self, client, stream, segment):
        """The same for one segment, for example one that the client has decoded."""
        _check(self._run(_c.weft_server_cancel_segment, _whole("client", client, 64), _whole("stream", stream, 64),
                         _whole("segment", segment, 64)))

    # --- Time and packets

    def fileno(self):
        """Returns a descriptor that is readable while packets wait to be taken, or process should be called.

        The server owns it; do not close it.
        """
        return self._run(_c.weft_server_fd)

    @property
    def deadline_us(self):
        """When to call process next; None: nothing waits for a time."""
        at_us = self._run(_c.weft_server_deadline)
        return None if at_us == _FOREVER_US else at_us

    def process(self, now_us):
        """Starts what is due, and drops what has expired."""
        _check(self._run(_c.weft_server_process, time_of(now_us)))

    def take(self, most=_TAKEN_AT_ONCE):
        """Returns a list of at most `most` ServerPackets that are ready."""
        table, count = (_ServerPacket * _whole("most", most))(), _size()
        with self._lock:
            try:
                _check(self._run(_c.weft_server_take, table, most, ctypes.byref(count)))
                return [self._packet(one) for one in table[:count.value]]
            finally:
                if count.value:
                    self._silently(_c.weft_server_release, table, count.value)

    @staticmethod
    def _packet(one):
        if one.status != OK:
            return ServerPacket(one.client, one.stream, one.segment, None, Error(one.status))
        return ServerPacket(one.client, one.stream, one.segment, ctypes.string_at(one.datagram, one.bytes))

    def packets(self):
        """Iterates over the ServerPackets that are ready."""
        while True:
            some = self.take()
            if not some:
                return
            yield from some

    # --- Measures

    @property
    def statistics(self):
        """The statistics, with the names in weft/server.h; `lanes` is a tuple with one entry per context."""
        counted = _ServerStatistics()
        self._run(_c.weft_server_get_stats, ctypes.byref(counted))
        lanes = tuple(LaneStatistics(*(getattr(lane, name) for name in LaneStatistics._fields))
                      for lane in counted.lane[:counted.lanes])
        return ServerStatistics(*(getattr(counted, name) for name in ServerStatistics._fields))._replace(
            lanes=tuple(lane._replace(backend=lane.backend.decode()) for lane in lanes))

    def predict_lane(self, shape, packets):
        """Returns the index of the context that would get a product of that many packets if all were idle."""
        return self._run(_c.weft_server_predict_lane, ctypes.byref(shape), _whole("packets", packets))
