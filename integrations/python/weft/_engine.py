# SPDX-License-Identifier: Apache-2.0
"""The peer's protocol engine, which does no I/O: it takes datagrams and the time, and gives datagrams and events."""

import collections
import ctypes
import dataclasses
import enum
import typing

from ._callbacks import _CalledBack
from ._context import _check
from ._declarations import _c, _fill, _size, _whole, CONSTANTS, DEPENDENT, PENDING
from ._memory import host
from ._peer_declarations import (
    _Burst, _CodecBlocks, _CodecRlnc, _EngineOptions, _EngineSelf, _EngineStatistics, _EngineTimers, _Event,
    _NeighbourOptions, _NeighbourStatistics, _Origin, _PeerAddress, ADDRESS_BYTES, DATAGRAM_MAX, MAX_TIME_US,
    NEVER_US, policy, START_OLDEST)
from ._trust import _trust_of, random_of


class Mode(enum.IntEnum):
    """How a stream is received."""

    BULK = 0  # as fast as possible; the slowest neighbour slows the others, and nothing is lost
    VOD = 1  # played from any segment on at its rate; late segments stall the playback
    LIVE = 2  # played lag_us behind the source; late segments are skipped


class EventKind(enum.IntEnum):
    """What an engine reports, and which fields of the event are set."""

    DECODED = 0  # segment: is complete and, with trust, verified
    NEIGHBOUR_OPEN = 1  # neighbour, address: answered
    NEIGHBOUR_LOST = 2  # neighbour, address, reason, had_all: is gone; its number is free
    PLAY = 3  # segment: is due now and can be read (VoD, live)
    SKIP = 4  # segment: was not complete in time and will not be played (live)
    STALL = 5  # segment: playback waits for it (VoD)
    RESUME = 6  # segment: playback continues with it (VoD)
    LOAD = 7  # segment: to be given with load (source of stream_bytes, or receiver with rereads)
    DIAL = 8  # address, calls_back (it calls us, too): connect, then add_neighbour or dial_failed
    LONELY = 9  # too few addresses are known: add some with add_address


class LostReason(enum.IntEnum):
    """Why a neighbour is gone."""

    LEFT = 0  # it said so
    SILENT = 1  # it sent nothing for too long
    FULL = 2  # it had no room for us
    REPLACED = 3  # it was of little use
    BANNED = 4  # it sent packets that the source never made: refuse its identity from now on


for _prefix, _kind in (("WEFT_MODE_", Mode), ("WEFT_EVENT_", EventKind), ("WEFT_LOST_", LostReason)):
    CONSTANTS.update({_prefix + member.name: member.value for member in _kind})


class Event(typing.NamedTuple):
    """Something that happened. Fields that its kind does not use are None."""

    kind: EventKind
    segment: int = None
    neighbour: int = None
    reason: LostReason = None
    address: bytes = None
    had_all: bool = None
    calls_back: bool = None


class Burst(typing.NamedTuple):
    """Datagrams to send to one neighbour now."""

    neighbour: int
    datagrams: list


def _names(structure):
    return [field[0] for field in structure._fields_]


EngineStatistics = collections.namedtuple("EngineStatistics", _names(_EngineStatistics))
NeighbourStatistics = collections.namedtuple("NeighbourStatistics", _names(_NeighbourStatistics))


@dataclasses.dataclass(frozen=True)
class EngineTimers:
    """0: the default. weft/peer_options.h specifies each."""

    hello_us: int = 0
    map_us: int = 0
    map_idle_us: int = 0
    keep_us: int = 0
    brake_us: int = 0
    silent_us: int = 0
    ask_us: int = 0
    exchange_us: int = 0
    ack_us: int = 0


@dataclasses.dataclass(frozen=True)
class EngineOptions:
    """What all peers of a stream have in common; weft/peer_options.h specifies each option.

    codec: "rlnc", or "blocks" (no code; needs the policy "rarest"). policy: "push", "pull",
    "source_only" or "rarest". trust: an Identity, of which receivers need only the public key, or a
    Trust: the source signs what it sends; None: nothing is verified. Modes that play need a rate or trust.
    window: in segments; 0: live, what holds the lag at the rate, or at 50 Mbit/s without one; on demand 64, in
    bulk 16.
    """

    stream: int
    blocks: int
    block_bytes: int
    mode: Mode = Mode.BULK
    window: int = 0
    ahead: int = 0
    batch: int = 8
    neighbours_max: int = 32
    neighbours_target: int = 0
    addresses_max: int = 0
    flights_max: int = 0
    requests_max: int = 0
    gather: int = 0
    patience_us: int = 0
    datagram_overhead: int = 0
    congestion: bool = False
    rate_bits_per_s: int = 0
    lag_us: int = 0
    startup_us: int = 0
    behind: int = 0
    checksum_us: int = 0
    spread_us: int = 0
    timers: EngineTimers = EngineTimers()
    codec: str = "rlnc"
    policy: str = "push"
    trust: object = None

    @property
    def segment_bytes(self):
        """Bytes of every segment but the last."""
        return self.blocks * self.block_bytes


def _window_of(table):
    """Returns the window for options that name none: 4/3 of the lag live, since a quarter is behind playback."""
    least, on_demand, most = 16, 64, 4096
    if table.mode != Mode.LIVE:
        return on_demand if table.mode == Mode.VOD else least
    bits = (table.rate_bits_per_s or 50_000_000) * (table.lag_us or 3_000_000) // 1_000_000
    segments = bits // max(8 * table.blocks * table.block_bytes, 1) + 1
    return min(max(segments * 4 // 3 + 2, least), most)


_TABLES = ("timers", "codec", "policy", "trust")


def time_of(now_us):
    """Returns a time in microseconds, from any origin, as an integer that the library can take."""
    number = _whole("a time in microseconds", now_us)
    if number > MAX_TIME_US:
        raise ValueError("a time of %d us, and not from 0 to 2**60" % number)
    return number


def _peer_address(address):
    data = bytes(memoryview(address))  # bytes(n) would be n zeros
    if len(data) > ADDRESS_BYTES:
        raise ValueError("an address has %d bytes at most, not %d" % (ADDRESS_BYTES, len(data)))
    return _PeerAddress(len(data), (ctypes.c_uint8 * ADDRESS_BYTES)(*data))


def _origin_of(origin):
    address, network = origin
    return _Origin(_whole("an origin's address", address, 16), _whole("an origin's network", network, 16))


def _codec_of(name, context):
    kinds = {"rlnc": (_CodecRlnc, _c.weft_codec_rlnc_table), "blocks": (_CodecBlocks, _c.weft_codec_blocks_table)}
    if name not in kinds:
        raise ValueError("there is no codec %s, but %s" % (name, ", ".join(kinds)))
    kind, table = kinds[name]
    user = kind(ctx=context._open())
    return table(ctypes.byref(user)), user


def _policy_of(name):
    found = policy(name)
    if found is None:
        raise ValueError("there is no policy %s, but push, pull, source_only, rarest" % name)
    return found


class Engine(_CalledBack):
    """One peer of one stream.

    After any input, take events() and what can be read, then output(); then wait until deadline_us or the
    next datagram, and call tick. Times are integer microseconds from any origin, and never decrease. A
    neighbour is a number returned by add_neighbour; how to reach it is the caller's concern.

    source: this peer has the stream. upload_bits_per_s: the rate at which it sends; 0: no limit. start: the
    segment that a receiver begins with; None: the oldest that neighbours still have. stream_bytes: for a
    source that loads segments on request (EventKind.LOAD). address: our own, which is not dialled. key: 32
    bytes that determine all random numbers, for simulations. rereads: for a receiver that can give again, on
    request, what it released (bulk, from segment 0 on).
    """

    def __init__(self, context, options, source=False, upload_bits_per_s=0, start=0, stream_bytes=0,
                 address=b"", key=None, rereads=False):
        super().__init__(context)
        if not isinstance(options, EngineOptions):
            raise TypeError("the options are EngineOptions, not %s" % type(options).__name__)
        self.options = options
        codec, codec_user = _codec_of(options.codec, context)
        trust, keys = _trust_of(options.trust, source, self._callbacks)
        table = _fill(_EngineOptions(), options, [n for n in _names(_EngineOptions) if n not in _TABLES])
        table.window = table.window or _window_of(table)
        table.timers = _fill(_EngineTimers(), options.timers, _names(_EngineTimers))
        table.codec, table.policy = ctypes.pointer(codec), ctypes.pointer(_policy_of(options.policy))
        if trust is not None:
            table.trust = ctypes.pointer(trust)
        chance, rng = random_of(key)
        own = _EngineSelf(source=source, rng=rng, address=_peer_address(address),
                          upload_bits_per_s=_whole("upload_bits_per_s", upload_bits_per_s, 64),
                          start=START_OLDEST if start is None else _whole("start", start, 64),
                          stream_bytes=_whole("stream_bytes", stream_bytes, 64), rereads=rereads)
        # The library keeps using all of these.
        self._table = self._callbacks.keep(codec_user, codec, trust, keys, chance, table)[-1]
        at = ctypes.c_void_p()
        with context._busy() as of:
            status = _c.weft_engine_new(of, ctypes.byref(table), ctypes.byref(own), ctypes.byref(at))
            if at.value:
                self._take(at, "weft_engine_free")
        self._callbacks.tell()
        _check(status, repr(options))

    @property
    def memory_bytes(self):
        """The memory that it takes, without that for one burst and the segments."""
        return _c.weft_engine_memory_bytes(ctypes.byref(self._table))

    # --- Neighbours

    def add_neighbour(self, now_us, address=b"", is_source=False, dialled=False, origin=(0, 0)):
        """Adds a neighbour and returns its number. Error WEFT_E_STATE: there is no room.

        address: passed on to other peers, unless empty. is_source: the session below has proved that it is the
        source. dialled: the session was opened from here. origin: numbers that the caller assigns to where the peer
        comes from, an address and the network that it is in, each 1..65535; 0: shared with no other peer. Many
        identities at one address then do not push others out.
        """
        number = _size()
        how = _NeighbourOptions(_peer_address(address), _origin_of(origin), is_source, dialled)
        _check(self._run(_c.weft_engine_add_neighbour, ctypes.byref(how), time_of(now_us), ctypes.byref(number)))
        return number.value

    def move_neighbour(self, neighbour, address):
        """Records a neighbour's new address, and passes it on to others."""
        _check(self._run(_c.weft_engine_move_neighbour, _whole("neighbour", neighbour),
                         ctypes.byref(_peer_address(address))), "neighbour %d" % neighbour)

    def remove_neighbour(self, neighbour):
        """Forgets a neighbour whose session was lost below the engine."""
        _check(self._run(_c.weft_engine_remove_neighbour, _whole("neighbour", neighbour)),
               "neighbour %d" % neighbour)

    def refusal(self, origin=(0, 0)):
        """Returns the answer to a peer for which there is no room: a datagram with addresses of others.

        origin: the peer's, as of add_neighbour.
        """
        out = ctypes.create_string_buffer(DATAGRAM_MAX)
        size = self._run(_c.weft_engine_refusal, ctypes.byref(_origin_of(origin)), out)
        return out.raw[:size]

    def add_address(self, address):
        """Adds the address of a peer to try."""
        self._run(_c.weft_engine_add_address, ctypes.byref(_peer_address(address)))

    def set_source_address(self, address):
        """Says where the stream's source can be called: a viewer on demand that is cut off calls it before others."""
        self._run(_c.weft_engine_set_source_address, ctypes.byref(_peer_address(address)))

    def needs_source(self, now_us):
        """Whether a caller that knows where the source is should try to reach it: on demand only if this viewer has few
        neighbours or is cut off."""
        return self._run(_c.weft_engine_needs_source, time_of(now_us))

    def call(self, caller, now_us):
        """Reports that, according to a tracker, the peer at `caller` is calling this engine.

        EventKind.DIAL follows unless it is a neighbour by then: through a NAT it gets in only if it is called, too.
        """
        self._run(_c.weft_engine_call, ctypes.byref(_peer_address(caller)), time_of(now_us))

    def dial_failed(self, address):
        """Reports that the peer of an EventKind.DIAL could not be reached."""
        self._run(_c.weft_engine_dial_failed, ctypes.byref(_peer_address(address)))

    # --- Datagrams, the time, events

    def input(self, neighbour, datagram, now_us):
        """Takes a datagram. False: a packet that was of no use. Error: refused, without effect."""
        held = host(datagram)
        status = self._run(_c.weft_engine_input, _whole("neighbour", neighbour), held, held.size, time_of(now_us))
        if status == DEPENDENT:
            return False
        _check(status)
        return True

    def tick(self, now_us):
        """Lets time pass."""
        self._run(_c.weft_engine_tick, time_of(now_us))

    def _burst(self, now_us):
        burst = _Burst()
        with self._lock:  # what the burst points to is valid until the next call
            status = self._run(_c.weft_engine_output, now_us, ctypes.byref(burst))
            if status == PENDING:
                return None
            _check(status)
            return Burst(burst.neighbour, [ctypes.string_at(d.data, d.bytes)
                                           for d in burst.datagrams[:burst.count]])

    def output(self, now_us):
        """Iterates over the bursts to send now."""
        now_us = time_of(now_us)
        return iter(lambda: self._burst(now_us), None)

    @property
    def deadline_us(self):
        """When to call tick and output again; None: only after an input."""
        at_us = self._run(_c.weft_engine_deadline)
        return None if at_us == NEVER_US else at_us

    def leave(self):
        """Says goodbye to every neighbour: output gives the messages, then nothing more."""
        self._run(_c.weft_engine_leave)

    def _event(self):
        event = _Event()
        if not self._run(_c.weft_engine_event, ctypes.byref(event)):
            return None
        kind, address = EventKind(event.kind), bytes(event.address.bytes[:event.address.length])
        if kind == EventKind.NEIGHBOUR_LOST:
            return Event(kind, neighbour=event.neighbour, reason=LostReason(event.reason), address=address,
                         had_all=event.had_all)
        if kind == EventKind.NEIGHBOUR_OPEN:
            return Event(kind, neighbour=event.neighbour, address=address)
        if kind == EventKind.DIAL:
            return Event(kind, address=address or None, calls_back=event.calls_back)
        if kind == EventKind.LONELY:
            return Event(kind)
        return Event(kind, segment=event.segment)

    def events(self):
        """Iterates over the pending events."""
        return iter(self._event, None)

    # --- The source's side

    @property
    def source_ready(self):
        """Whether there is room for another segment.

        VoD and live: always, since the oldest is dropped; the caller of put keeps the stream's pace.
        """
        return self._run(_c.weft_engine_source_ready)

    def put(self, data, now_us, at_us=0):
        """Adds the next segment, which is copied; one with fewer bytes than the others ends the stream.

        at_us: when its first byte is to be played; 0 if the rate determines that.
        """
        held = host(data)
        _check(self._run(_c.weft_engine_source_put, held, held.size, time_of(at_us),
                         time_of(now_us)), "%d bytes for segments of %d" % (held.size, self.options.segment_bytes))

    def end(self, now_us):
        """Ends a stream whose last segment was full, or that has no segments."""
        _check(self._run(_c.weft_engine_source_end, time_of(now_us)))

    def load(self, segment, data, now_us):
        """Gives the segment of an EventKind.LOAD; data: None if a receiver that rereads no longer has it."""
        held = None if data is None else host(data)
        size = 0 if held is None else held.size
        _check(self._run(_c.weft_engine_load, _whole("segment", segment, 64), held, size,
                         time_of(now_us)), "%d bytes as segment %d" % (size, segment))

    # --- The receiver's side

    @property
    def readable(self):
        """(segment, bytes) of the next segment in order, or None while it cannot be read."""
        segment, size = ctypes.c_uint64(), _size()
        status = self._run(_c.weft_engine_readable, ctypes.byref(segment), ctypes.byref(size))
        if status == PENDING:
            return None
        _check(status)
        return segment.value, size.value

    def read(self, size=None, offset=0):
        """Returns the readable segment or a part of it, or None."""
        with self._lock:
            found = self.readable
            if found is None:
                return None
            offset = _whole("offset", offset)
            size = max(found[1] - offset, 0) if size is None else _whole("size", size)
            if offset + size > found[1]:
                raise ValueError("bytes %d to %d of a segment of %d" % (offset, offset + size, found[1]))
            data = bytearray(size)
            if size:
                _check(self._run(_c.weft_engine_read, offset, size, host(data, writable=True)))
            return data

    def release(self):
        """Releases the readable segment. False: there was none."""
        status = self._run(_c.weft_engine_release)
        if status == PENDING:
            return False
        _check(status)
        return True

    def _segment(self):
        with self._lock:
            found = self.readable
            if found is None:
                return None
            data = self.read()
            self.release()
            return found[0], data

    def segments(self):
        """Iterates over (segment, its bytes) of all that can be read now, in order; releases each as it is taken."""
        return iter(self._segment, None)

    def seek(self, segment, now_us):
        """Continues with that segment, earlier or later. Not live."""
        _check(self._run(_c.weft_engine_seek, _whole("segment", segment, 64), time_of(now_us)))

    @property
    def done(self):
        """Whether the stream's end is known and everything before it was released."""
        return self._run(_c.weft_engine_done)

    @property
    def finished(self):
        """Whether this peer and every neighbour are done: nothing more will be sent unless a peer asks for it."""
        return self._run(_c.weft_engine_finished)

    def farewell_again(self):
        """Tells neighbours once more that this fetch (bulk) is finished, since the message may be lost.

        False: there is no neighbour to tell, or it is not finished.
        """
        return self._run(_c.weft_engine_farewell_again)

    def play_time_us(self, segment):
        """Returns when a segment is to be played; None while playback has no schedule."""
        at_us = ctypes.c_int64()
        status = self._run(_c.weft_engine_play_time, _whole("segment", segment, 64), ctypes.byref(at_us))
        if status == PENDING:
            return None
        _check(status)
        return at_us.value

    @property
    def buffered(self):
        """How many segments, from the next one on, are complete and not yet played. Bulk: 0."""
        return self._run(_c.weft_engine_buffered)

    # --- Statistics

    @property
    def statistics(self):
        """The statistics, with the names in weft/peer_statistics.h."""
        counted = _EngineStatistics()
        self._run(_c.weft_engine_get_statistics, ctypes.byref(counted))
        return EngineStatistics(*(getattr(counted, name) for name in EngineStatistics._fields))

    def neighbour_statistics(self, neighbour):
        """Returns the statistics of one neighbour."""
        counted = _NeighbourStatistics()
        _check(self._run(_c.weft_engine_get_neighbour, _whole("neighbour", neighbour), ctypes.byref(counted)),
               "neighbour %d" % neighbour)
        return NeighbourStatistics(*(getattr(counted, name) for name in NeighbourStatistics._fields))
