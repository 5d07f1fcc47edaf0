# SPDX-License-Identifier: Apache-2.0
"""Encoders, decoders and recoders of one segment."""

import ctypes
import math

from ._context import _check, _Handle, _together
from ._declarations import (
    _Batch, _c, _DecodeJob, _DecoderOptions, _EncoderOptions, _Packet, _PACKET_MODES, _SegmentOptions, _size, _whole,
    DEPENDENT, OK, PENDING, SegmentId)
from ._memory import Given, host, one_memory


def _density(share):
    if not 0 <= share <= 1:
        raise ValueError("a density is from 0 to 1, not %s" % share)
    # 1 means all; a density that rounds to 0 would mean all, too, so the least is 1 / 65536.
    return 0 if share in (0, 1) else min(max(round(share * 65536), 1), 65535)


def _must_be_id(shape):
    if not isinstance(shape, SegmentId):
        raise TypeError("the shape is a SegmentId, not %s" % type(shape).__name__)


class _Coder(_Handle):
    """Something that makes packets of one segment."""

    def __init__(self, context, shape):
        super().__init__(context)
        _must_be_id(shape)
        self._id = SegmentId(shape.stream, shape.segment, shape.blocks, shape.block_bytes)
        self._room = max(_c.weft_packet_bytes(ctypes.byref(self._id), mode) for mode in _PACKET_MODES)

    @property
    def id(self):
        """Its segment's id: a copy, since the library writes as many bytes as the original says."""
        return SegmentId(self._id.stream, self._id.segment, self._id.blocks, self._id.block_bytes)

    def fix_random(self, key):
        """For simulations: sets the 32 bytes that determine all random numbers."""
        held = host(key)
        if held.size != 32:
            raise ValueError("a key has 32 bytes")
        _check(self._run(self._call("fix_random"), held))

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

    def datagrams(self, count):
        """Makes `count` packets in one product, as datagrams: views of one bytearray. Empty if nothing is held."""
        count, room, payload = _whole("count", count), self._room, self._id.block_bytes
        packets, slots = (_Packet * count)(), bytearray(count * room)
        # Each datagram is at the end of its slot: the payload is made in place, the vector right before it.
        at = host(slots, writable=True).at if count else None
        batch = _Batch(count=count, packets=ctypes.addressof(packets), payload_stride=room, coefficients_stride=room)
        if count:
            batch.payload, batch.coefficients = at + room - payload, at + room - payload - self._id.blocks
        status = self._run(self._many, ctypes.byref(batch), *self._many_rest)
        if status == PENDING or not count:
            return []
        _check(status)
        written, view, made = _size(), memoryview(slots), []
        for i, packet in enumerate(packets):
            begin = (i + 1) * room - _c.weft_packet_bytes(ctypes.byref(self._id), packet.mode)
            packet.payload = None
            _check(_c.weft_packet_write(ctypes.byref(packet), at + begin, room, ctypes.byref(written)))
            made.append(view[begin:(i + 1) * room])
        return made


class _Taker(_Coder):
    """A coder that also takes packets."""

    def add(self, datagram):
        """Takes a datagram. False: it adds nothing. Error: foreign or malformed; nothing changed."""
        held = host(datagram)
        status = self._run(self._call("add_datagram"), held, held.size)
        if status == DEPENDENT:
            return False
        _check(status)
        return True

    def reset(self, shape):
        """Drops everything held, to start another segment of the same shape in the same memory."""
        _must_be_id(shape)
        with self._lock:
            _check(self._run(self._call("reset"), ctypes.byref(shape)), "from %r to %r" % (self._id, shape))
            self._id.stream, self._id.segment = shape.stream, shape.segment


class Encoder(_Coder):
    """Makes packets of one segment. `data`, on the host or the context's GPU, is copied and padded with zeros.

    systematic: the blocks themselves come first. seeded: packets contain a seed, counting up from first_seed,
    instead of coefficients. density: the share of nonzero coefficients; 0: all.
    """

    _kind, _many, _many_rest = "encoder", _c.weft_encoder_batch, (None,)

    def __init__(self, context, shape, data, systematic=False, seeded=False, first_seed=0, density=0):
        super().__init__(context, shape)
        segment, at = ctypes.c_void_p(), ctypes.c_void_p()
        how = _EncoderOptions(systematic, seeded, _whole("first_seed", first_seed, 64), _density(density))
        given = Given(context)
        held = given.read(data)
        options = _SegmentOptions(id=self._id, data=held.at, bytes=held.size, mem=held.mem)
        given.wait()
        with context._busy() as of:
            _check(_c.weft_segment_new(of, ctypes.byref(options), None, ctypes.byref(segment)),
                   "%d bytes of data for %d blocks of %d" % (held.size, self._id.blocks, self._id.block_bytes))
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
        """Returns the next packet as a datagram."""
        return self._datagram(_c.weft_encoder_next)

    def batch(self, count, out=None):
        """Makes `count` packets in one product: coefficients (count, n) and payloads (count, k).

        out: a pair of arrays for these, each in host memory or on the context's GPU, whose rows need not be
        contiguous. None, for both or for one: a bytearray.
        """
        return self.batches([self], count, None if out is None else [out])[0]

    @staticmethod
    def batches(encoders, count, out=None):
        """The same for many encoders of one context at once, on a GPU in one launch. out: a pair for each.

        An encoder that occurs several times continues from batch to batch, as in separate calls.
        """
        encoders, count = list(encoders), _whole("count", count)
        if any(e._context is not encoders[0]._context for e in encoders):
            raise ValueError("encoders of one context")
        pairs = [(None, None)] * len(encoders) if out is None else list(out)
        if len(pairs) != len(encoders):
            raise ValueError("`out` has %d pairs for %d encoders" % (len(pairs), len(encoders)))
        made = [e._results(count, *pair) for e, pair in zip(encoders, pairs)]
        if made and count:
            given = Given(encoders[0]._context)
            table = (_Batch * len(made))(*(e._batch(given, count, *pair) for e, pair in zip(encoders, made)))
            given.wait()
            _check(_together(encoders, _c.weft_encoder_batches, table, len(made), None))
        return made

    def _results(self, count, coefficients, payloads):
        return (bytearray(count * self._id.blocks) if coefficients is None else coefficients,
                bytearray(count * self._id.block_bytes) if payloads is None else payloads)

    def _batch(self, given, count, coefficients, payloads):
        batch, held = self._payloads(given, count, payloads), given.write(coefficients, rows=True)
        batch.coefficients, batch.coefficients_mem = held.at, held.mem
        batch.coefficients_stride = held.stride(count, self._id.blocks, "coefficients")
        return batch

    def combine(self, coefficients, out=None):
        """Returns payloads (m, k) for given coefficients (m, n). out: where to write them, as in batch."""
        given = Given(self._context)
        held = given.read(coefficients, rows=True)
        count, rest = divmod(held.size, self._id.blocks)
        if rest:
            raise ValueError("coefficients are rows of %d" % self._id.blocks)
        _, payloads = self._results(count, coefficients, out)
        if count:
            batch = self._payloads(given, count, payloads)
            batch.coefficients_mem = held.mem
            stride = held.stride(count, self._id.blocks, "coefficients")
            given.wait()
            _check(self._run(_c.weft_encoder_combine, count, held, stride, ctypes.byref(batch), None))
        return payloads

    def _payloads(self, given, count, payloads):
        held = given.write(payloads, rows=True)
        return _Batch(count=count, payload=held.at, mem=held.mem,
                      payload_stride=held.stride(count, self._id.block_bytes, "payloads"))


class Decoder(_Taker):
    """Takes packets until it has the segment, and recodes at any rank. add() is True for innovative packets."""

    _kind, _many, _many_rest = "decoder", _c.weft_decoder_recode_batch, ()

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
        """How many consecutive blocks, from the first on, are known."""
        return self._run(_c.weft_decoder_prefix)

    def block(self, index):
        """Returns a block's bytes, or None while it is not known."""
        at = ctypes.c_void_p()
        with self._lock:
            status = self._run(_c.weft_decoder_block, _whole("index", index), ctypes.byref(at))
            if status == PENDING:
                return None
            _check(status, "block %d of %d" % (index, self._id.blocks))
            return ctypes.string_at(at, self._id.block_bytes)

    def read(self, size=None, offset=0):
        """Returns the segment or a part of it; None while it is not complete."""
        offset = _whole("offset", offset)
        size = max(self._id.bytes - offset, 0) if size is None else _whole("size", size)
        if offset + size > self._id.bytes:
            raise ValueError("bytes %d to %d of a segment of %d" % (offset, offset + size, self._id.bytes))
        data = bytearray(size)
        if not data:
            return data
        status = self._run(_c.weft_decoder_read, offset, len(data), host(data, writable=True))
        if status == PENDING:
            return None
        _check(status)
        return data

    def recode(self):
        """Returns a new combination of all packets held, as a datagram; None while there are none."""
        return self._datagram(_c.weft_decoder_recode)


class Recoder(_Taker):
    """Recodes packets as they arrived, without elimination. add() is False only if all coefficients are 0."""

    _kind, _many, _many_rest = "recoder", _c.weft_recoder_batch, ()

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
        """Returns a new combination as a datagram; None while nothing is held."""
        return self._datagram(_c.weft_recoder_next)


def segment_of(datagram):
    """Returns the SegmentId in a packet, for finding its decoder. Error: it is no packet."""
    packet = _Packet()
    held = host(datagram)
    _check(_c.weft_packet_parse(held, held.size, ctypes.byref(packet)))
    of = packet.id
    return SegmentId(of.stream, of.segment, of.blocks, of.block_bytes)


def _decode_job(given, coefficients, payloads, out):
    """Returns a job, and where its result goes."""
    matrix, rows = given.read(coefficients, rows=True), given.read(payloads, rows=True)
    blocks = math.isqrt(matrix.size)
    size, rest = divmod(rows.size, blocks or 1)
    if not blocks or blocks * blocks != matrix.size or rest or not size:
        raise ValueError("%d bytes of coefficients and %d of payloads are not (n, n) and (n, k)"
                         % (matrix.size, rows.size))
    out = bytearray(blocks * size) if out is None else out
    decoded = given.write(out, rows=True)
    job = _DecodeJob(blocks=blocks, block_bytes=size, coefficients=matrix.at, coefficients_mem=matrix.mem,
                     coefficients_stride=matrix.stride(blocks, blocks, "coefficients"), payload=rows.at,
                     payload_stride=rows.stride(blocks, size, "payloads"), out=decoded.at,
                     out_stride=decoded.stride(blocks, size, "decoded blocks"),
                     mem=one_memory((rows, decoded), "payloads and what they are decoded to"))
    return job, out


def decode_batch(context, segments, out=None):
    """Decodes many segments at once, each from n packets, given as the pairs that Encoder.batch(n) returns.

    Returns a list of the segments; None for one whose packets are not independent. out: where each goes; None:
    a bytearray. Payloads on the context's GPU are decoded to the GPU; coefficients may be in either memory.
    """
    segments = list(segments)
    outs = [None] * len(segments) if out is None else list(out)
    if len(outs) != len(segments):
        raise ValueError("`out` has %d parts for %d segments" % (len(outs), len(segments)))
    given = Given(context)
    jobs = [_decode_job(given, *segment, one) for segment, one in zip(segments, outs)]
    table = (_DecodeJob * len(jobs))(*(job for job, _ in jobs))
    if jobs:
        given.wait()
        with context._busy() as at:
            _check(_c.weft_decode_batch(at, table, len(jobs), None), "%d segments" % len(jobs))
    return [out if one.status == OK else None for one, (_, out) in zip(table, jobs)]
