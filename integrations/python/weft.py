# SPDX-License-Identifier: Apache-2.0
"""weft from Python: random linear network coding and storage codes.

Nothing but ctypes and libweft.so, which tools/install puts beside this file. WEFT_LIBRARY names
another one. Bytes go in as anything that has a buffer (bytes, bytearray, memoryview, an array of
numpy) and come out as bytes or bytearray.

    with weft.Context() as context:
        shape = weft.SegmentId(stream=1, segment=0, blocks=32, block_bytes=1024)
        encoder = weft.Encoder(context, shape, data)
        decoder = weft.Decoder(context, shape)
        while not decoder.complete:
            decoder.add(encoder.next())
        assert decoder.read(len(data)) == data

What each call means is said in include/weft/*.h. Calls let go of the interpreter's lock; threads may
share a handle, whose calls then wait for each other, and work side by side with handles of their own.
"""

import ctypes
import operator
import os
import pathlib
import threading

__all__ = ["Code", "Context", "Decoder", "Encoder", "Error", "Recoder", "SegmentId", "backends", "version"]

OK, DEPENDENT, PENDING = 0, 1, 2
_PACKET_VECTOR = 1
_MAX_SHARDS = 256

_size = ctypes.c_size_t
_bytes = ctypes.c_void_p  # an address: numpy, bytes and bytearray have one alike


def _whole(name, value, bits=ctypes.sizeof(_size) * 8):
    """An unsigned number of so many bits, or an error that names it."""
    number = operator.index(value)
    if number < 0 or number >> bits:
        raise ValueError("%s is %d, and not from 0 to 2**%d - 1" % (name, number, bits))
    return number


class SegmentId(ctypes.Structure):
    """Which segment a packet belongs to, and its shape: n blocks of k bytes."""

    _fields_ = [
        ("stream", ctypes.c_uint64),
        ("segment", ctypes.c_uint64),
        ("blocks", ctypes.c_uint32),
        ("block_bytes", ctypes.c_uint32),
    ]

    def __init__(self, stream=0, segment=0, blocks=0, block_bytes=0):
        # ctypes would cut what is too large, and a packet would go by another name.
        super().__init__(_whole("stream", stream, 64), _whole("segment", segment, 64),
                         _whole("blocks", blocks, 32), _whole("block_bytes", block_bytes, 32))

    def __repr__(self):
        return "SegmentId(stream=%d, segment=%d, blocks=%d, block_bytes=%d)" % (
            self.stream, self.segment, self.blocks, self.block_bytes)

    @property
    def bytes(self):
        """Of the whole segment."""
        return self.blocks * self.block_bytes


class _ContextOptions(ctypes.Structure):
    _fields_ = [
        ("backend", ctypes.c_char_p),
        ("threads", _size),
        ("split", ctypes.c_int),
        ("device", _size),
        ("allocator", ctypes.c_void_p),
        ("code_store", ctypes.c_void_p),
        ("code_folder", ctypes.c_char_p),
        ("compile_after", _size),
    ]


class _BackendInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("technique", ctypes.c_char_p),
        ("mem", ctypes.c_int),
        ("align", _size),
        ("available", ctypes.c_int),
    ]


class _SegmentOptions(ctypes.Structure):
    _fields_ = [
        ("id", SegmentId),
        ("data", _bytes),
        ("bytes", _size),
        ("mem", ctypes.c_int),
        ("borrow", ctypes.c_bool),
        ("once", ctypes.c_bool),
    ]


class _EncoderOptions(ctypes.Structure):
    _fields_ = [
        ("systematic", ctypes.c_bool),
        ("seeded", ctypes.c_bool),
        ("first_seed", ctypes.c_uint64),
        ("density_q16", ctypes.c_uint16),
    ]


class _DecoderOptions(ctypes.Structure):
    _fields_ = [
        ("id", SegmentId),
        ("blocks", _bytes),
        ("blocks_stride", _size),
        ("eager", ctypes.c_bool),
        ("mem", ctypes.c_int),
    ]


class _Batch(ctypes.Structure):
    _fields_ = [
        ("count", _size),
        ("packets", ctypes.c_void_p),
        ("coefficients", _bytes),
        ("coefficients_stride", _size),
        ("coefficients_mem", ctypes.c_int),
        ("payload_rows", ctypes.c_void_p),
        ("payload", _bytes),
        ("payload_stride", _size),
        ("mem", ctypes.c_int),
    ]


class _CodeOptions(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("k", _size),
        ("m", _size),
        ("w", _size),
        ("packet_bytes", _size),
        ("cached_plans", _size),
        ("parity", _bytes),
        ("device_inverse", ctypes.c_bool),
        ("zero_copy", ctypes.c_bool),
    ]


class _Stripe(ctypes.Structure):
    _fields_ = [
        ("shards", ctypes.POINTER(ctypes.c_void_p)),
        ("base", _bytes),
        ("stride", _size),
        ("bytes", _size),
        ("mem", ctypes.c_int),
    ]


class _Erasures(ctypes.Structure):
    _fields_ = [
        ("lost", ctypes.c_char_p),
        ("lost_count", _size),
        ("wanted", ctypes.c_char_p),
        ("wanted_count", _size),
    ]


# Name in C and the structure here, whose layouts must agree: the tests compare them.
STRUCTURES = {
    "weft_segment_id": SegmentId,
    "weft_ctx_options": _ContextOptions,
    "weft_backend_info": _BackendInfo,
    "weft_segment_options": _SegmentOptions,
    "weft_encoder_options": _EncoderOptions,
    "weft_decoder_options": _DecoderOptions,
    "weft_batch": _Batch,
    "weft_code_options": _CodeOptions,
    "weft_stripe": _Stripe,
    "weft_erasures": _Erasures,
}

_handle = ctypes.c_void_p
_out = ctypes.POINTER(ctypes.c_void_p)
_written = ctypes.POINTER(_size)
_id = ctypes.POINTER(SegmentId)

# What each function gives, and what it takes. A status is an int.
_FUNCTIONS = {
    "weft_version": (ctypes.c_char_p, []),
    "weft_status_text": (ctypes.c_char_p, [ctypes.c_int]),
    "weft_status_name": (ctypes.c_char_p, [ctypes.c_int]),
    "weft_backend_count_all": (_size, []),
    "weft_backend_describe": (ctypes.c_int, [_size, ctypes.POINTER(_BackendInfo)]),
    "weft_ctx_new": (ctypes.c_int, [_out, ctypes.POINTER(_ContextOptions)]),
    "weft_ctx_free": (None, [_handle]),
    "weft_ctx_backend": (ctypes.c_char_p, [_handle]),
    "weft_packet_bytes": (_size, [_id, ctypes.c_int]),
    "weft_segment_new": (ctypes.c_int, [_handle, ctypes.POINTER(_SegmentOptions), _handle, _out]),
    "weft_segment_free": (None, [_handle]),
    "weft_encoder_new": (ctypes.c_int, [_handle, ctypes.POINTER(_EncoderOptions), _out]),
    "weft_encoder_free": (None, [_handle]),
    "weft_encoder_fix_random": (ctypes.c_int, [_handle, _bytes]),
    "weft_encoder_next": (ctypes.c_int, [_handle, _bytes, _size, _written]),
    "weft_encoder_batch": (ctypes.c_int, [_handle, ctypes.POINTER(_Batch), _handle]),
    "weft_encoder_combine": (ctypes.c_int,
                             [_handle, _size, _bytes, _size, ctypes.POINTER(_Batch), _handle]),
    "weft_decoder_new": (ctypes.c_int, [_handle, ctypes.POINTER(_DecoderOptions), _out]),
    "weft_decoder_free": (None, [_handle]),
    "weft_decoder_fix_random": (ctypes.c_int, [_handle, _bytes]),
    "weft_decoder_add_datagram": (ctypes.c_int, [_handle, _bytes, _size]),
    "weft_decoder_rank": (_size, [_handle]),
    "weft_decoder_complete": (ctypes.c_bool, [_handle]),
    "weft_decoder_has_block": (ctypes.c_bool, [_handle, _size]),
    "weft_decoder_prefix": (_size, [_handle]),
    "weft_decoder_block": (ctypes.c_int, [_handle, _size, _out]),
    "weft_decoder_read": (ctypes.c_int, [_handle, _size, _size, _bytes]),
    "weft_decoder_recode": (ctypes.c_int, [_handle, _bytes, _size, _written]),
    "weft_recoder_new": (ctypes.c_int, [_handle, _id, _size, _out]),
    "weft_recoder_free": (None, [_handle]),
    "weft_recoder_fix_random": (ctypes.c_int, [_handle, _bytes]),
    "weft_recoder_add_datagram": (ctypes.c_int, [_handle, _bytes, _size]),
    "weft_recoder_held": (_size, [_handle]),
    "weft_recoder_next": (ctypes.c_int, [_handle, _bytes, _size, _written]),
    "weft_code_new": (ctypes.c_int, [_handle, ctypes.POINTER(_CodeOptions), _out]),
    "weft_code_free": (None, [_handle]),
    "weft_code_name": (ctypes.c_char_p, [_handle]),
    "weft_code_parity_bytes": (_size, [_handle, _size]),
    "weft_code_parity_matrix": (None, [_handle, _bytes]),
    "weft_code_known_name": (ctypes.c_char_p, [_size]),
    "weft_code_encode": (ctypes.c_int, [_handle, ctypes.POINTER(_Stripe), _size, _handle]),
    "weft_code_recover": (ctypes.c_int, [_handle, ctypes.POINTER(_Erasures),
                                         ctypes.POINTER(_Stripe), _size, _handle]),
    "weft_code_verify": (ctypes.c_int, [_handle, ctypes.POINTER(_Stripe), _bytes, _written,
                                        _handle]),
    "weft_plan_for": (ctypes.c_int, [_handle, ctypes.POINTER(_Erasures), _out]),
    "weft_plan_free": (None, [_handle]),
    "weft_plan_input_count": (_size, [_handle]),
    "weft_plan_inputs": (ctypes.POINTER(ctypes.c_uint8), [_handle]),
}


def _load():
    named = os.environ.get("WEFT_LIBRARY")
    beside = pathlib.Path(__file__).resolve().parent.parent.parent / "lib" / "libweft.so"
    library = ctypes.CDLL(named or (str(beside) if beside.exists() else "libweft.so.0"))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_c = _load()


class Error(Exception):
    """A call's status that is neither success nor one of its outcomes. `name` as in weft/status.h."""

    def __init__(self, status, about=""):
        self.status = status
        self.name = _c.weft_status_name(status).decode()
        text = _c.weft_status_text(status).decode()
        super().__init__("%s: %s%s" % (self.name, text, " (%s)" % about if about else ""))


def _check(status, about=""):
    """`about`: what the call was given, where the status alone would leave one guessing."""
    if status != OK:
        raise Error(status, about)


def _view(data):
    """A flat view of the bytes of anything that has a buffer."""
    view = memoryview(data)
    if not view.c_contiguous:
        raise ValueError("bytes must lie one after the other (numpy.ascontiguousarray copies them so)")
    # What is empty cannot be cast where a dimension is 0.
    return view.cast("B") if view.nbytes else memoryview(b"")


def _read_only(data):
    """An object of ctypes on the bytes, copied only if they can be neither written nor had as bytes."""
    if isinstance(data, bytes):
        return ctypes.c_char_p(data)
    view = _view(data)
    kind = ctypes.c_char * view.nbytes
    return kind.from_buffer_copy(view) if view.readonly else kind.from_buffer(view)


def _writable(data):
    view = _view(data)
    return (ctypes.c_char * view.nbytes).from_buffer(view)


def _length(data):
    return len(data) if isinstance(data, bytes) else _view(data).nbytes


def _address(thing):
    """Where its bytes are. Not by ctypes.cast, whose results are cycles that hold them until gc comes."""
    if isinstance(thing, ctypes.c_char_p):
        address = ctypes.c_void_p(ctypes.c_void_p.from_buffer(thing).value)
    else:
        address = ctypes.c_void_p(ctypes.addressof(thing))
    address.held = thing
    return address


class _Handle:
    """Something of the library's, freed by close(), with the object, or by its context's close().

    The context knows what was made from it by address, not by object: the library wants all of it
    freed before the context, and objects of a cycle are finalised in whatever order.
    """

    def __init__(self, context):
        self._at = None
        if not isinstance(context, Context):
            raise TypeError("made from a Context, not from %s" % type(context).__name__)
        self._context = context
        # Reentrant, for signal handlers, which come between calls.
        self._lock = threading.RLock()

    def _take(self, at, free):
        self._at = self._context._keep(at, free, self._lock)

    def close(self):
        """Frees it; further calls on it are errors."""
        at, self._at = self._at, None
        self._context._let_go(at)

    def __del__(self):
        if getattr(self, "_at", None):
            self.close()

    def __reduce__(self):
        raise TypeError("%s can be neither copied nor pickled" % type(self).__name__)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def _run(self, call, *arguments):
        """The library's call on it, one at a time: also against a close() of another thread."""
        with self._lock:
            if not self._context._keeps(self._at):
                raise ValueError("%s is closed" % type(self).__name__)
            return call(self._at, *arguments)


def version():
    return _c.weft_version().decode()


def backends():
    """(name, what it does, whether this machine has what it needs), best first."""
    found = []
    for i in range(_c.weft_backend_count_all()):
        info = _BackendInfo()
        _check(_c.weft_backend_describe(i, ctypes.byref(info)))
        found.append((info.name.decode(), info.technique.decode(), bool(info.available)))
    return found


class Context:
    """Which row of the table computes, and on how many threads. Closing it closes what it made."""

    def __init__(self, backend=None, threads=1, device=0):
        self._made = {}  # address: the name of what frees it, and its lock, in order of making
        self._at = None
        at = ctypes.c_void_p()
        options = _ContextOptions(backend=backend.encode() if backend else None,
                                  threads=_whole("threads", threads), device=_whole("device", device))
        _check(_c.weft_ctx_new(ctypes.byref(at), ctypes.byref(options)),
               "backend %s, %d threads" % (backend or "by default", threads))
        self._at = at.value

    def close(self):
        """Frees it and all that was made from it; further calls on any of these are errors.

        A call of another thread on one of them is waited for.
        """
        for at in reversed(list(self._made)):
            self._let_go(at)
        at, self._at = self._at, None
        if at and _c is not None:  # None: the interpreter is ending
            _c.weft_ctx_free(at)

    def __del__(self):
        if getattr(self, "_at", None):
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def _open(self):
        if not self._at:
            raise ValueError("Context is closed")
        return self._at

    def __reduce__(self):
        raise TypeError("Context can be neither copied nor pickled")

    def _keep(self, at, free, lock):
        self._made[at.value] = free, lock
        return at.value

    def _keeps(self, at):
        return at in self._made

    def _let_go(self, at):
        _, lock = self._made.get(at, (None, None))
        if lock is None:
            return
        with lock:
            free, _ = self._made.pop(at, (None, None))  # another thread may have been first
            if free and _c is not None:
                getattr(_c, free)(at)

    @property
    def backend(self):
        return _c.weft_ctx_backend(self._open()).decode()


class _Coder(_Handle):
    """What has packets of one segment."""

    def __init__(self, context, shape):
        super().__init__(context)
        if not isinstance(shape, SegmentId):
            raise TypeError("the shape is a SegmentId, not %s" % type(shape).__name__)
        self.id = SegmentId(shape.stream, shape.segment, shape.blocks, shape.block_bytes)
        self._room = _c.weft_packet_bytes(ctypes.byref(self.id), _PACKET_VECTOR)

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
        if not 0 <= density <= 1:
            raise ValueError("a density is from 0 to 1, not %s" % density)
        # 1 is all of them; less than the least there is would be taken for 0, which is all as well.
        share = 0 if density in (0, 1) else min(max(round(density * 65536), 1), 65535)
        how = _EncoderOptions(systematic, seeded, _whole("first_seed", first_seed, 64), share)
        held = _read_only(data)
        options = _SegmentOptions(id=self.id, data=_address(held), bytes=_length(data))
        _check(_c.weft_segment_new(context._open(), ctypes.byref(options), None, ctypes.byref(segment)),
               "%d bytes of data for %d blocks of %d" % (_length(data), self.id.blocks, self.id.block_bytes))
        self._segment = context._keep(segment, "weft_segment_free", self._lock)
        status = _c.weft_encoder_new(segment, ctypes.byref(how), ctypes.byref(at))
        if status != OK:
            context._let_go(self._segment)
        _check(status)
        self._take(at, "weft_encoder_free")

    def close(self):
        super().close()
        segment, self._segment = self._segment, None
        if segment:
            self._context._let_go(segment)

    def next(self):
        """The next packet as a datagram."""
        return self._datagram(_c.weft_encoder_next)

    def batch(self, count):
        """`count` packets in one product: coefficients (count, n) and payloads (count, k)."""
        count = _whole("count", count)
        coefficients = bytearray(count * self.id.blocks)
        payloads = bytearray(count * self.id.block_bytes)
        if count:
            batch = self._payloads(count, payloads)
            batch.coefficients = _address(_writable(coefficients))
            batch.coefficients_stride = self.id.blocks
            _check(self._run(_c.weft_encoder_batch, ctypes.byref(batch), None))
        return coefficients, payloads

    def combine(self, coefficients):
        """Payloads (m, k) for coefficients (m, n) of one's own."""
        count, rest = divmod(_length(coefficients), self.id.blocks)
        if rest:
            raise ValueError("coefficients are rows of %d" % self.id.blocks)
        payloads = bytearray(count * self.id.block_bytes)
        if count:
            batch = self._payloads(count, payloads)
            held = _read_only(coefficients)
            _check(self._run(_c.weft_encoder_combine, count, _address(held), self.id.blocks,
                                           ctypes.byref(batch), None))
        return payloads

    def _payloads(self, count, payloads):
        return _Batch(count=count, payload=_address(_writable(payloads)),
                      payload_stride=self.id.block_bytes)


class Decoder(_Taker):
    """Takes packets until it has the segment, and recodes at any rank. Taken: innovative."""

    _kind = "decoder"

    def __init__(self, context, shape, eager=False):
        super().__init__(context, shape)
        at = ctypes.c_void_p()
        options = _DecoderOptions(id=self.id, eager=eager)
        _check(_c.weft_decoder_new(context._open(), ctypes.byref(options), ctypes.byref(at)), repr(self.id))
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
            _check(status, "block %d of %d" % (index, self.id.blocks))
            return ctypes.string_at(at, self.id.block_bytes)

    def read(self, size=None, offset=0):
        """The segment, or a part of it; None while it is not complete."""
        offset = _whole("offset", offset)
        size = max(self.id.bytes - offset, 0) if size is None else _whole("size", size)
        if offset + size > self.id.bytes:
            raise ValueError("bytes %d to %d of a segment of %d" % (offset, offset + size, self.id.bytes))
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
        capacity = self.id.blocks if capacity is None else capacity
        capacity = _whole("capacity", capacity)
        _check(_c.weft_recoder_new(context._open(), ctypes.byref(self.id), capacity, ctypes.byref(at)),
               "capacity %d, %r" % (capacity, self.id))
        self._take(at, "weft_recoder_free")

    @property
    def held(self):
        return self._run(_c.weft_recoder_held)

    def next(self):
        """A fresh mixture as a datagram; None while nothing is held."""
        return self._datagram(_c.weft_recoder_next)


class Code(_Handle):
    """k data shards, m parity shards. Names as in weft/storage.h; Code.names() lists them.

    parity: for the name "matrix", m rows of k coefficients, as bytes.
    """

    def __init__(self, context, name, k, m, w=0, packet_bytes=0, parity=None):
        super().__init__(context)
        at = ctypes.c_void_p()
        self.k, self.m = k, m = _whole("k", k), _whole("m", m)
        held = _read_only(parity) if parity is not None else None
        if held is not None and _length(parity) != k * m:
            raise ValueError("a matrix of %d rows of %d" % (m, k))
        options = _CodeOptions(name=name.encode(), k=k, m=m, w=_whole("w", w),
                               packet_bytes=_whole("packet_bytes", packet_bytes),
                               parity=_address(held) if held is not None else None)
        known = [*self.names(), "matrix"]
        _check(_c.weft_code_new(context._open(), ctypes.byref(options), ctypes.byref(at)),
               "%s with k = %d, m = %d" % (name, k, m) if name in known
               else "there is no code %s, but %s" % (name, ", ".join(known)))
        self._take(at, "weft_code_free")

    @staticmethod
    def names():
        found = []
        while _c.weft_code_known_name(len(found)):
            found.append(_c.weft_code_known_name(len(found)).decode())
        return found

    @property
    def name(self):
        return self._run(_c.weft_code_name).decode()

    @property
    def parity_matrix(self):
        """(m, k) coefficients."""
        matrix = bytearray(self.m * self.k)
        if matrix:
            self._run(_c.weft_code_parity_matrix, _address(_writable(matrix)))
        return matrix

    def parity_bytes(self, data_bytes):
        """Bytes of a parity shard beside data shards of so many."""
        return self._run(_c.weft_code_parity_bytes, data_bytes)

    def encode(self, data):
        """The m parity shards of k data shards."""
        if len(data) != self.k:
            raise ValueError("%d data shards, not %d" % (self.k, len(data)))
        size = _length(data[0])
        parity = [bytearray(self.parity_bytes(size)) for _ in range(self.m)]
        if size and self.m:
            stripe, held = self._stripe([*data, *parity], size, range(self.k, self.k + self.m))
            _check(self._run(_c.weft_code_encode, ctypes.byref(stripe), 1, None))
            del held
        return parity

    def inputs(self, lost, wanted=None):
        """Ids of the shards that rebuilding these reads."""
        plan = ctypes.c_void_p()
        erasures = self._erasures(lost, wanted)
        with self._lock:
            _check(self._run(_c.weft_plan_for, ctypes.byref(erasures), ctypes.byref(plan)),
                   "%d of %d shards lost" % (erasures.lost_count, self.k + self.m))
            count = _c.weft_plan_input_count(plan)
            found = list(_c.weft_plan_inputs(plan)[:count])
            _c.weft_plan_free(plan)
        return found

    def recover(self, shards, wanted=None, data_bytes=None):
        """Of k + m shards, None where one is lost: the same, with those that are wanted made again.

        wanted: ids among the lost; None: all. data_bytes: of a data shard, where none is there.
        """
        lost = [i for i, shard in enumerate(shards) if shard is None]
        made = list(shards)
        sizes = [_length(s) for s in shards[:self.k] if s is not None]
        if data_bytes is None and not sizes:
            raise ValueError("no data shard is there: data_bytes must say how long they are")
        size = sizes[0] if data_bytes is None else data_bytes
        outputs = lost if wanted is None else list(wanted)
        for i in outputs:
            made[i] = bytearray(size if i < self.k else self.parity_bytes(size))
        erasures = self._erasures(lost, wanted)
        stripe, held = self._stripe(made, size, outputs)
        _check(self._run(_c.weft_code_recover, ctypes.byref(erasures), ctypes.byref(stripe), 1, None),
               "%d of %d shards lost" % (len(lost), self.k + self.m))
        del held
        return made

    def verify(self, shards):
        """Ids of the parity shards that do not match the data."""
        wrong = bytearray(self.m)
        count = _size()
        if any(shard is None for shard in shards):
            raise ValueError("all shards must be there to be verified: recover those that are None")
        if not self.m:
            return []
        size = _length(shards[0]) if len(shards) else 0
        stripe, held = self._stripe(shards, size, ())
        _check(self._run(_c.weft_code_verify, ctypes.byref(stripe), _address(_writable(wrong)),
                                   ctypes.byref(count), None))
        del held
        return [self.k + i for i, flag in enumerate(wrong) if flag]

    @staticmethod
    def _erasures(lost, wanted):
        ids = bytes(lost)
        some = None if wanted is None else bytes(wanted)
        return _Erasures(ids, len(ids), some, 0 if some is None else len(some))

    def _stripe(self, shards, size, written):
        """The stripe, and what keeps its bytes where they are."""
        if len(shards) != self.k + self.m:
            raise ValueError("%d shards, not %d" % (self.k + self.m, len(shards)))
        pointers = (ctypes.c_void_p * len(shards))()
        held = [pointers]
        for i, shard in enumerate(shards):
            if shard is None:
                continue
            wanted = size if i < self.k else self.parity_bytes(size)
            if _length(shard) != wanted:
                raise ValueError("shard %d has %d bytes, not %d" % (i, _length(shard), wanted))
            held.append(_writable(shard) if i in written else _read_only(shard))
            pointers[i] = _address(held[-1]).value
        return _Stripe(shards=pointers, bytes=size), held
