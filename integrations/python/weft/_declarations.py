# SPDX-License-Identifier: Apache-2.0
"""Declarations of the structures and functions of weft/*.h used here, and the library itself."""

import ctypes
import operator
import os
import pathlib

OK, DEPENDENT, PENDING = 0, 1, 2
HOST, _PINNED, DEVICE = range(3)  # memory
_PACKET_MODES = range(4)

_size = ctypes.c_size_t
_bytes = ctypes.c_void_p  # an address, whether of numpy, bytes or bytearray


def _whole(name, value, bits=ctypes.sizeof(_size) * 8):
    """Returns an unsigned number of at most that many bits, or raises an error that names it."""
    number = operator.index(value)
    if number < 0 or number >> bits:
        raise ValueError("%s is %d, and not from 0 to 2**%d - 1" % (name, number, bits))
    return number


_BITS = {ctypes.c_size_t: ctypes.sizeof(_size) * 8, ctypes.c_uint: 32, ctypes.c_uint16: 16, ctypes.c_uint32: 32,
         ctypes.c_uint64: 64, ctypes.c_int64: 63}  # signed ones are times, which are never negative


def _fill(structure, options, names):
    """Copies the named fields of `options`, checking numbers, which ctypes would silently truncate."""
    kinds = dict(structure._fields_)
    for name in names:
        value = getattr(options, name)
        bits = _BITS.get(kinds[name])
        setattr(structure, name, _whole(name, value, bits) if bits else value)
    return structure


class SegmentId(ctypes.Structure):
    """Which segment a packet belongs to, and its shape: n blocks of k bytes."""

    _fields_ = [
        ("stream", ctypes.c_uint64),
        ("segment", ctypes.c_uint64),
        ("blocks", ctypes.c_uint32),
        ("block_bytes", ctypes.c_uint32),
    ]

    def __init__(self, stream=0, segment=0, blocks=0, block_bytes=0):
        # ctypes would truncate large numbers, so that a packet would get a different id.
        super().__init__(_whole("stream", stream, 64), _whole("segment", segment, 64),
                         _whole("blocks", blocks, 32), _whole("block_bytes", block_bytes, 32))

    def __repr__(self):
        return "SegmentId(stream=%d, segment=%d, blocks=%d, block_bytes=%d)" % (
            self.stream, self.segment, self.blocks, self.block_bytes)

    @property
    def bytes(self):
        """Bytes of the whole segment."""
        return self.blocks * self.block_bytes


class _Packet(ctypes.Structure):
    _fields_ = [
        ("id", SegmentId),
        ("mode", ctypes.c_uint),
        ("index", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("density_q16", ctypes.c_uint16),
        ("coefficients", _bytes),
        ("payload", _bytes),
    ]


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


class _DecodeJob(ctypes.Structure):
    _fields_ = [
        ("blocks", _size),
        ("block_bytes", _size),
        ("coefficients", _bytes),
        ("coefficients_stride", _size),
        ("coefficients_mem", ctypes.c_int),
        ("payload_rows", ctypes.c_void_p),
        ("payload", _bytes),
        ("payload_stride", _size),
        ("out", _bytes),
        ("out_stride", _size),
        ("mem", ctypes.c_int),
        ("status", ctypes.c_int),
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


# Names in C of the structures, numbers and functions here, which must agree: the tests compare them.
CONSTANTS = {"WEFT_OK": OK, "WEFT_DEPENDENT": DEPENDENT, "WEFT_PENDING": PENDING, "WEFT_MEM_HOST": HOST,
             "WEFT_MEM_PINNED": _PINNED, "WEFT_MEM_DEVICE": DEVICE}
STRUCTURES = {
    "weft_segment_id": SegmentId,
    "weft_packet": _Packet,
    "weft_ctx_options": _ContextOptions,
    "weft_backend_info": _BackendInfo,
    "weft_segment_options": _SegmentOptions,
    "weft_encoder_options": _EncoderOptions,
    "weft_decoder_options": _DecoderOptions,
    "weft_batch": _Batch,
    "weft_decode_job": _DecodeJob,
    "weft_code_options": _CodeOptions,
    "weft_stripe": _Stripe,
    "weft_erasures": _Erasures,
}

_handle = ctypes.c_void_p
_out = ctypes.POINTER(ctypes.c_void_p)
_written = ctypes.POINTER(_size)
_id = ctypes.POINTER(SegmentId)

# The result and argument types of each function. A status is an int.
FUNCTIONS = {}


def _declare(functions):
    for name, (result, arguments) in functions.items():
        function = getattr(_c, name)
        function.restype, function.argtypes = result, arguments
    FUNCTIONS.update(functions)


def _load():
    named = os.environ.get("WEFT_LIBRARY")
    beside = pathlib.Path(__file__).resolve().parents[3] / "lib" / "libweft.so"
    return ctypes.CDLL(named or (str(beside) if beside.exists() else "libweft.so.0.1"))


_c = _load()
_declare({
    "weft_version": (ctypes.c_char_p, []),
    "weft_status_text": (ctypes.c_char_p, [ctypes.c_int]),
    "weft_status_name": (ctypes.c_char_p, [ctypes.c_int]),
    "weft_backend_count_all": (_size, []),
    "weft_backend_describe": (ctypes.c_int, [_size, ctypes.POINTER(_BackendInfo)]),
    "weft_ctx_new": (ctypes.c_int, [_out, ctypes.POINTER(_ContextOptions)]),
    "weft_ctx_free": (None, [_handle]),
    "weft_ctx_trim": (None, [_handle]),
    "weft_ctx_backend": (ctypes.c_char_p, [_handle]),
    "weft_ctx_host_backend": (ctypes.c_char_p, [_handle]),
    "weft_alloc": (ctypes.c_int, [_handle, ctypes.c_int, _size, _out]),
    "weft_free": (None, [_handle, ctypes.c_int, _handle]),
    "weft_queue_wrap_cuda_stream": (ctypes.c_int, [_handle, ctypes.c_void_p, _out]),
    "weft_queue_wait": (ctypes.c_int, [_handle]),
    "weft_queue_free": (None, [_handle]),
    "weft_packet_bytes": (_size, [_id, ctypes.c_int]),
    "weft_packet_write": (ctypes.c_int, [ctypes.POINTER(_Packet), _bytes, _size, _written]),
    "weft_packet_parse": (ctypes.c_int, [_bytes, _size, ctypes.POINTER(_Packet)]),
    "weft_segment_new": (ctypes.c_int, [_handle, ctypes.POINTER(_SegmentOptions), _handle, _out]),
    "weft_segment_free": (None, [_handle]),
    "weft_encoder_new": (ctypes.c_int, [_handle, ctypes.POINTER(_EncoderOptions), _out]),
    "weft_encoder_free": (None, [_handle]),
    "weft_encoder_fix_random": (ctypes.c_int, [_handle, _bytes]),
    "weft_encoder_next": (ctypes.c_int, [_handle, _bytes, _size, _written]),
    "weft_encoder_batch": (ctypes.c_int, [_handle, ctypes.POINTER(_Batch), _handle]),
    "weft_encoder_batches": (ctypes.c_int, [_out, ctypes.POINTER(_Batch), _size, _handle]),
    "weft_encoder_combine": (ctypes.c_int,
                             [_handle, _size, _bytes, _size, ctypes.POINTER(_Batch), _handle]),
    "weft_decoder_new": (ctypes.c_int, [_handle, ctypes.POINTER(_DecoderOptions), _out]),
    "weft_decoder_free": (None, [_handle]),
    "weft_decoder_fix_random": (ctypes.c_int, [_handle, _bytes]),
    "weft_decoder_reset": (ctypes.c_int, [_handle, _id]),
    "weft_decoder_add_datagram": (ctypes.c_int, [_handle, _bytes, _size]),
    "weft_decoder_rank": (_size, [_handle]),
    "weft_decoder_complete": (ctypes.c_bool, [_handle]),
    "weft_decoder_has_block": (ctypes.c_bool, [_handle, _size]),
    "weft_decoder_prefix": (_size, [_handle]),
    "weft_decoder_block": (ctypes.c_int, [_handle, _size, _out]),
    "weft_decoder_read": (ctypes.c_int, [_handle, _size, _size, _bytes]),
    "weft_decoder_recode_batch": (ctypes.c_int, [_handle, ctypes.POINTER(_Batch)]),
    "weft_decoder_recode": (ctypes.c_int, [_handle, _bytes, _size, _written]),
    "weft_decode_batch": (ctypes.c_int, [_handle, ctypes.POINTER(_DecodeJob), _size, _handle]),
    "weft_recoder_new": (ctypes.c_int, [_handle, _id, _size, _out]),
    "weft_recoder_free": (None, [_handle]),
    "weft_recoder_fix_random": (ctypes.c_int, [_handle, _bytes]),
    "weft_recoder_reset": (ctypes.c_int, [_handle, _id]),
    "weft_recoder_add_datagram": (ctypes.c_int, [_handle, _bytes, _size]),
    "weft_recoder_held": (_size, [_handle]),
    "weft_recoder_batch": (ctypes.c_int, [_handle, ctypes.POINTER(_Batch)]),
    "weft_recoder_next": (ctypes.c_int, [_handle, _bytes, _size, _written]),
    "weft_code_new": (ctypes.c_int, [_handle, ctypes.POINTER(_CodeOptions), _out]),
    "weft_code_free": (None, [_handle]),
    "weft_code_name": (ctypes.c_char_p, [_handle]),
    "weft_code_parity_bytes": (_size, [_handle, _size]),
    "weft_code_stride": (_size, [_handle, _size]),
    "weft_code_parity_matrix": (None, [_handle, _bytes]),
    "weft_code_known_name": (ctypes.c_char_p, [_size]),
    "weft_code_encode": (ctypes.c_int, [_handle, ctypes.POINTER(_Stripe), _size, _handle]),
    "weft_code_recover": (ctypes.c_int, [_handle, ctypes.POINTER(_Erasures),
                                         ctypes.POINTER(_Stripe), _size, _handle]),
    "weft_code_verify": (ctypes.c_int, [_handle, ctypes.POINTER(_Stripe), _bytes, _written,
                                        _handle]),
    "weft_code_update": (ctypes.c_int, [_handle, _size, _bytes, _bytes, ctypes.POINTER(_Stripe), _handle]),
    "weft_code_add_delta": (ctypes.c_int, [_handle, _size, _bytes, ctypes.POINTER(_Stripe), _handle]),
    "weft_code_parity_delta": (ctypes.c_int, [_handle, _size, _bytes, ctypes.POINTER(_Stripe), _handle]),
    "weft_plan_for": (ctypes.c_int, [_handle, ctypes.POINTER(_Erasures), _out]),
    "weft_plan_free": (None, [_handle]),
    "weft_plan_input_count": (_size, [_handle]),
    "weft_plan_inputs": (ctypes.POINTER(ctypes.c_uint8), [_handle]),
})
