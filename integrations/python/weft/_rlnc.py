# SPDX-License-Identifier: Apache-2.0
"""Encoders, decoders and recoders of one segment."""

import ctypes
import math

from ._context import _address, _check, _Handle, _length, _read_only, _together, _writable
from ._declarations import (
    _Batch, _c, _DecodeJob, _DecoderOptions, _EncoderOptions, _Packet, _PACKET_MODES, _SegmentOptions, _size, _whole,
    DEPENDENT, OK, PENDING, SegmentId)


def _density(share):
    if not 0 <= share <= 1:
        raise ValueError("a density is from 0 to 1, not %s" % share)
    # 1 is all of them; less than the least there is would be taken for 0, which is all as well.
    return 0 if share in (0, 1) else min(max(round(share * 65536), 1), 65535)


class _Coder(_Handle):
    """What has packets of one segment."""

    def __init__(self, context, shape):
        super().__init__(context)
        if not isinstance(shape, SegmentId):
            raise TypeError("the shape is a SegmentId, not %s" % type(shape).__name__)
        self._id = SegmentId(shape.stream, shape.segment, shape.blocks, shape.block_bytes)
        self._room = max(_c.weft_packet_bytes(ctypes.byref(self._id), mode) for mode in _PACKET_MODES)

    @property
    def id(self):
        """Of its segment; a copy, since the library writes as much as the shape says."""
        return SegmentId(self._id.stream, self._id.segment, self._id.blocks, self._id.block_bytes)

    def fix_random(self, key):
        """For simulations: what is random follows from these 32 bytes."""
        if _length(key) != 32:
            raise ValueError("a key has 32 bytes")
        _check(self._run(self._call("fix_random"), _address(_read_only(key))))

    def _call(self, name):
        return getattr(_c, "weft_%s_%s" % (self._kind, name))

    def _datagram(self, call):
        packet = ctypes.create_string_buffer(self._room)
        written = _size()
        status = self._run(call, packet, self._room, ctypes.byref(written))
        if status == PENDING:
            return None
        _check(status)
        return packet.raw[:written.value]


class _Taker(_Coder):
    """What takes packets, too."""

    def add(self, datagram):
        """True: taken. False: it adds nothing. Error: foreign or malformed; nothing changed."""
        held = _read_only(datagram)
        status = self._run(self._call("add_datagram"), _address(held), _length(datagram))
        if status == DEPENDENT:
            return False
        _check(status)
        return True


class Encoder(_Coder):
    """Packets of one segment. `data` is copied; what lacks to the whole segment counts as zero.

    systematic: the blocks themselves first. seeded: packets name a seed instead of coefficients,
    counting from first_seed. density: 0 all coefficients nonzero, else the share that is.
    """

    _kind = "encoder"

    def __init__(self, context, shape, data, systematic=False, seeded=False, first_seed=0, density=0):
        super().__init__(context, shape)
        segment, at = ctypes.c_void_p(), ctypes.c_void_p()
        how = _EncoderOptions(systematic, seeded, _whole("first_seed", first_seed, 64), _density(density))
        held = _read_only(data)
        options = _SegmentOptions(id=self._id, data=_address(held), bytes=_length(data))
        with context._busy() as of:
            _check(_c.weft_segment_new(of, ctypes.byref(options), None, ctypes.byref(segment)),
                   "%d bytes of data for %d blocks of %d" % (_length(data), self._id.blocks, self._id.block_bytes))
            self._segment = context._keep(segment, "weft_segment_free", self._lock)
            status = _c.weft_encoder_new(segment, ctypes.byref(how), ctypes.byref(at))
            if status != OK:
                context._let_go(self._segment, self._lock)
            _check(status)
            self._take(at, "weft_encoder_free")

    def _end(self):
        super()._end()
        segment, self._segment = self._segment, None
        if segment:
            self._context._let_go(segment, self._lock)

    def next(self):
        """The next packet as a datagram."""
        return self._datagram(_c.weft_encoder_next)

    def batch(self, count):
        """`count` packets in one product: coefficients (count, n) and payloads (count, k)."""
        return self.batches([self], count)[0]

    @staticmethod
    def batches(encoders, count):
        """The same for many encoders of one context at once: on a GPU by one launch.

        One that is there several times goes on from batch to batch, as in calls of its own.
        """
        encoders, count = list(encoders), _whole("count", count)
        if any(e._context is not encoders[0]._context for e in encoders):
            raise ValueError("encoders of one context")
        made = [(bytearray(count * e._id.blocks), bytearray(count * e._id.block_bytes)) for e in encoders]
        if made and count:
            table = (_Batch * len(made))(*(e._batch(count, *out) for e, out in zip(encoders, made)))
            _check(_together(encoders, _c.weft_encoder_batches, table, len(made), None))
        return made

    def _batch(self, count, coefficients, payloads):
        batch = self._payloads(count, payloads)
        batch.coefficients = _address(_writable(coefficients))
        batch.coefficients_stride = self._id.blocks
        return batch

    def combine(self, coefficients):
        """Payloads (m, k) for coefficients (m, n) of one's own."""
        count, rest = divmod(_length(coefficients), self._id.blocks)
        if rest:
            raise ValueError("coefficients are rows of %d" % self._id.blocks)
        payloads = bytearray(count * self._id.block_bytes)
        if count:
            batch = self._payloads(count, payloads)
            held = _read_only(coefficients)
            _check(self._run(_c.weft_encoder_combine, count, _address(held), self._id.blocks,
                                           ctypes.byref(batch), None))
        return payloads

    def _payloads(self, count, payloads):
        return _Batch(count=count, payload=_address(_writable(payloads)),
                      payload_stride=self._id.block_bytes)


class Decoder(_Taker):
    """Takes packets until it has the segment, and recodes at any rank. Taken: innovative."""

    _kind = "decoder"

    def __init__(self, context, shape, eager=False):
        super().__init__(context, shape)
        at = ctypes.c_void_p()
        options = _DecoderOptions(id=self._id, eager=eager)
        with context._busy() as of:
            _check(_c.weft_decoder_new(of, ctypes.byref(options), ctypes.byref(at)), repr(self._id))
            self._take(at, "weft_decoder_free")

    @property
    def rank(self):
        return self._run(_c.weft_decoder_rank)

    @property
    def complete(self):
        return self._run(_c.weft_decoder_complete)

    @property
    def prefix(self):
        """How many blocks from the first on are known."""
        return self._run(_c.weft_decoder_prefix)

    def block(self, index):
        """Its bytes, or None while it is not known."""
        at = ctypes.c_void_p()
        with self._lock:
            status = self._run(_c.weft_decoder_block, _whole("index", index), ctypes.byref(at))
            if status == PENDING:
                return None
            _check(status, "block %d of %d" % (index, self._id.blocks))
            return ctypes.string_at(at, self._id.block_bytes)

    def read(self, size=None, offset=0):
        """The segment, or a part of it; None while it is not complete."""
        offset = _whole("offset", offset)
        size = max(self._id.bytes - offset, 0) if size is None else _whole("size", size)
        if offset + size > self._id.bytes:
            raise ValueError("bytes %d to %d of a segment of %d" % (offset, offset + size, self._id.bytes))
        data = bytearray(size)
        if not data:
            return data
        status = self._run(_c.weft_decoder_read, offset, len(data), _address(_writable(data)))
        if status == PENDING:
            return None
        _check(status)
        return data

    def recode(self):
        """A fresh mixture of all that is held, as a datagram; None while that is nothing."""
        return self._datagram(_c.weft_decoder_recode)


class Recoder(_Taker):
    """Mixes packets as they came, without elimination. Only coefficients of zeros add nothing."""

    _kind = "recoder"

    def __init__(self, context, shape, capacity=None):
        super().__init__(context, shape)
        at = ctypes.c_void_p()
        capacity = self._id.blocks if capacity is None else capacity
        capacity = _whole("capacity", capacity)
        with context._busy() as of:
            _check(_c.weft_recoder_new(of, ctypes.byref(self._id), capacity, ctypes.byref(at)),
                   "capacity %d, %r" % (capacity, self._id))
            self._take(at, "weft_recoder_free")

    @property
    def held(self):
        return self._run(_c.weft_recoder_held)

    def next(self):
        """A fresh mixture as a datagram; None while nothing is held."""
        return self._datagram(_c.weft_recoder_next)


def segment_of(datagram):
    """The SegmentId that a packet says it is of, so that it gets to the right decoder. Error: it is none."""
    packet = _Packet()
    held = _read_only(datagram)
    _check(_c.weft_packet_parse(_address(held), _length(datagram), ctypes.byref(packet)))
    of = packet.id
    return SegmentId(of.stream, of.segment, of.blocks, of.block_bytes)


def _decode_job(coefficients, payloads):
    """A job, its result, and what keeps its bytes where they are."""
    blocks = math.isqrt(_length(coefficients))
    size, rest = divmod(_length(payloads), blocks or 1)
    if not blocks or blocks * blocks != _length(coefficients) or rest or not size:
        raise ValueError("%d bytes of coefficients and %d of payloads are not (n, n) and (n, k)"
                         % (_length(coefficients), _length(payloads)))
    out = bytearray(blocks * size)
    held = _read_only(coefficients), _read_only(payloads)
    job = _DecodeJob(blocks=blocks, block_bytes=size, coefficients=_address(held[0]), coefficients_stride=blocks,
                     payload=_address(held[1]), payload_stride=size, out=_address(_writable(out)), out_stride=size)
    return job, out, held


def decode_batch(context, segments):
    """Many segments at once, each from its n packets: pairs as Encoder.batch(n) gives them.

    A list of the segments; None where the packets are not independent.
    """
    jobs = [_decode_job(*segment) for segment in segments]
    table = (_DecodeJob * len(jobs))(*(job for job, _, _ in jobs))
    if jobs:
        with context._busy() as at:
            _check(_c.weft_decode_batch(at, table, len(jobs), None), "%d segments" % len(jobs))
    return [out if one.status == OK else None for one, (_, out, _) in zip(table, jobs)]
