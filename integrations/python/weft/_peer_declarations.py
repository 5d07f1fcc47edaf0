# SPDX-License-Identifier: Apache-2.0
"""Declarations of the structures and functions of weft/peer_*.h used here."""

import ctypes

from ._declarations import _bytes, _declare, _handle, _out, _size, _written, _c, CONSTANTS, STRUCTURES

MAX_TIME_US = 1 << 60  # of now_us
DATAGRAM_MAX = 1168
START_OLDEST = (1 << 64) - 1
NEVER_US = (1 << 63) - 1
ADDRESS_BYTES = 20
KEY_BYTES = 32
PLAIN_BYTES = 1172
OVERHEAD_BYTES = 28
BLOB_BYTES = 160

_call = ctypes.c_void_p  # a function in C, from one of the library's tables
_time = ctypes.c_int64
_count = ctypes.c_uint64
_key = ctypes.c_uint8 * KEY_BYTES
_secret = ctypes.c_uint8 * 64

# --- weft/peer_rng.h, weft/peer_trust.h, weft/peer_codec.h, weft/peer_policy.h


class _Rng(ctypes.Structure):
    _fields_ = [("fill", _call), ("user", ctypes.c_void_p)]


class _RngChacha(ctypes.Structure):
    _fields_ = [("key", _key), ("next", _count), ("used", _size), ("stream", ctypes.c_uint8 * 1024)]


_SIGN = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, _size, ctypes.c_void_p)
_VERIFY = _SIGN


class _Trust(ctypes.Structure):
    _fields_ = [("user", ctypes.c_void_p), ("sign", _call), ("verify", _call)]


class _TrustEd25519(ctypes.Structure):
    _fields_ = [("public_key", _key), ("secret_key", _secret), ("is_source", ctypes.c_bool)]


class _Codec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("user", ctypes.c_void_p),
        *((name, _call) for name in (
            "open_source", "open_sink", "close", "add", "rank", "make", "read", "memory_bytes", "has",
            "digest", "decode", "decoding", "checksum", "verify")),
        ("token_bytes_max", _size),
        *((name, _call) for name in ("make_token", "add_token", "verify_token", "token_packet_bytes")),
    ]


class _CodecRlnc(ctypes.Structure):
    _fields_ = [("ctx", _handle), ("coded_only", ctypes.c_bool)]


class _CodecBlocks(ctypes.Structure):
    _fields_ = [("ctx", _handle)]


class _Policy(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("user", ctypes.c_void_p), ("pick", _call), ("ask", _call)]


# --- weft/peer_options.h


class _PeerAddress(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint8), ("bytes", ctypes.c_uint8 * ADDRESS_BYTES)]


class _EngineTimers(ctypes.Structure):
    _fields_ = [(name, _time) for name in (
        "hello_us", "map_us", "map_idle_us", "keep_us", "brake_us", "silent_us", "ask_us", "exchange_us",
        "ack_us")]


class _EngineOptions(ctypes.Structure):
    _fields_ = [
        ("stream", _count),
        ("blocks", ctypes.c_uint32),
        ("block_bytes", ctypes.c_uint32),
        ("mode", ctypes.c_uint),
        ("window", _size),
        ("ahead", _size),
        ("batch", _size),
        ("neighbours_max", _size),
        ("neighbours_target", _size),
        ("addresses_max", _size),
        ("flights_max", _size),
        ("requests_max", _size),
        ("gather", _size),
        ("patience_us", _time),
        ("datagram_overhead", _size),
        ("congestion", ctypes.c_bool),
        ("rate_bits_per_s", _count),
        ("lag_us", _time),
        ("startup_us", _time),
        ("behind", _size),
        ("checksum_us", _time),
        ("spread_us", _time),
        ("timers", _EngineTimers),
        ("codec", ctypes.POINTER(_Codec)),
        ("policy", ctypes.POINTER(_Policy)),
        ("trust", ctypes.POINTER(_Trust)),
    ]


class _EngineSelf(ctypes.Structure):
    _fields_ = [
        ("source", ctypes.c_bool),
        ("upload_bits_per_s", _count),
        ("rng", _Rng),
        ("start", _count),
        ("stream_bytes", _count),
        ("rereads", ctypes.c_bool),
        ("address", _PeerAddress),
        ("codec", ctypes.POINTER(_Codec)),
        ("scratch", _handle),
    ]


# --- weft/peer_engine.h, weft/peer_statistics.h


class _Origin(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint16), ("network", ctypes.c_uint16)]


class _NeighbourOptions(ctypes.Structure):
    _fields_ = [("address", _PeerAddress), ("origin", _Origin), ("is_source", ctypes.c_bool),
                ("dialled", ctypes.c_bool)]


class _Datagram(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", _size)]


class _Burst(ctypes.Structure):
    _fields_ = [
        ("neighbour", _size),
        ("count", _size),
        ("datagrams", ctypes.POINTER(_Datagram)),
        ("segment", _count),
        ("token_count", _size),
        ("token_bytes", _size),
        ("token", ctypes.c_void_p),
        ("wire_bytes", _size),
    ]


class _Event(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint),
        ("segment", _count),
        ("neighbour", _size),
        ("reason", ctypes.c_uint),
        ("address", _PeerAddress),
        ("had_all", ctypes.c_bool),
        ("calls_back", ctypes.c_bool),
    ]


class _EngineStatistics(ctypes.Structure):
    _fields_ = [
        *((name, _count) for name in (
            "sent_packets", "sent_payload_bytes", "sent_header_bytes", "sent_control", "sent_control_bytes",
            "received_packets", "received_innovative", "received_dependent", "received_late",
            "received_outside", "received_waiting", "received_polluted", "received_payload_bytes",
            "received_header_bytes", "received_control", "received_control_bytes", "refused",
            "refused_bytes", "segments", "due", "in_time", "skipped", "passed_over")),
        ("forgone", ctypes.c_uint32), ("narrow", ctypes.c_bool), ("stalls", _count),
        *((name, _time) for name in ("stalled_us", "startup_us", "lag_us")),
        *((name, _count) for name in (
            "gathered_runs", "gathered_segments", "signatures", "hashed_bytes", "manifests_refused",
            "hash_failures", "checksums", "verified")),
        *((name, _time) for name in ("waited_us", "waited_max_us")),
        *((name, _count) for name in ("banned", "sent_requests", "received_requests", "requests_expired")),
    ]


class _NeighbourStatistics(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_bool) for name in ("open", "is_source", "had_all", "anew")),
        *((name, _time) for name in ("round_trip_us", "queueing_us")),
        *((name, _count) for name in (
            "window_bytes", "sent_packets", "received_packets", "received_innovative", "first")),
        ("suppliers", ctypes.c_uint16),
    ]


# --- weft/peer_session.h


class _Address(ctypes.Structure):
    _fields_ = [("ip", ctypes.c_uint8 * 16), ("port", ctypes.c_uint16), ("own", ctypes.c_uint8 * 16)]


class _Identity(ctypes.Structure):
    _fields_ = [("public_key", _key), ("secret_key", _secret)]


_ADMIT = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_Address))


class _SessionsOptions(ctypes.Structure):
    _fields_ = [
        ("identity", _Identity),
        ("blob", _bytes),
        ("blob_bytes", _size),
        ("links_max", _size),
        ("cipher", ctypes.c_uint),
        ("rekey_us", _time),
        ("silent_us", _time),
        ("handshakes_per_s", ctypes.c_uint32),
        ("rng", ctypes.POINTER(_Rng)),
        ("admit", _call),
        ("user", ctypes.c_void_p),
    ]


class _SessionPlain(ctypes.Structure):
    _fields_ = [("link", _size), ("data", ctypes.c_void_p), ("bytes", _size)]


class _Seal(ctypes.Structure):
    _fields_ = [("key", ctypes.c_void_p), ("counter", _count), ("remote_id", ctypes.c_uint32),
                ("aes", ctypes.c_bool)]


class _SessionEvent(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint), ("reason", ctypes.c_uint), ("link", _size)]


class _SessionPeer(ctypes.Structure):
    _fields_ = [("address", _Address), ("public_key", _key), ("blob", ctypes.c_void_p),
                ("blob_bytes", _size), ("initiated", ctypes.c_bool), ("aes", ctypes.c_bool),
                ("heard_us", _time)]


class _SessionStatistics(ctypes.Structure):
    _fields_ = [(name, _count) for name in (
        "opened", "rekeyed", "handshakes", "retries", "limited", "malformed", "foreign", "replayed",
        "opened_datagrams", "sealed_datagrams")]


STRUCTURES.update({
    "weft_rng": _Rng,
    "weft_rng_chacha": _RngChacha,
    "weft_trust": _Trust,
    "weft_trust_ed25519": _TrustEd25519,
    "weft_codec": _Codec,
    "weft_codec_rlnc": _CodecRlnc,
    "weft_codec_blocks": _CodecBlocks,
    "weft_policy": _Policy,
    "weft_peer_address": _PeerAddress,
    "weft_engine_timers": _EngineTimers,
    "weft_engine_options": _EngineOptions,
    "weft_engine_self": _EngineSelf,
    "weft_origin": _Origin,
    "weft_neighbour_options": _NeighbourOptions,
    "weft_datagram": _Datagram,
    "weft_burst": _Burst,
    "weft_event": _Event,
    "weft_engine_statistics": _EngineStatistics,
    "weft_neighbour_statistics": _NeighbourStatistics,
    "weft_address": _Address,
    "weft_identity": _Identity,
    "weft_sessions_options": _SessionsOptions,
    "weft_session_plain": _SessionPlain,
    "weft_seal": _Seal,
    "weft_session_event": _SessionEvent,
    "weft_session_peer": _SessionPeer,
    "weft_session_statistics": _SessionStatistics,
})

CONSTANTS.update({
    "WEFT_DATAGRAM_MAX": DATAGRAM_MAX,
    "WEFT_START_OLDEST": START_OLDEST,
    "WEFT_ENGINE_NEVER": NEVER_US,
    "WEFT_SESSION_NEVER": NEVER_US,
    "WEFT_PEER_ADDRESS_BYTES": ADDRESS_BYTES,
    "WEFT_PUBLIC_KEY_BYTES": KEY_BYTES,
    "WEFT_RNG_KEY_BYTES": KEY_BYTES,
    "WEFT_SESSION_PLAIN_BYTES": PLAIN_BYTES,
    "WEFT_SESSION_OVERHEAD_BYTES": OVERHEAD_BYTES,
    "WEFT_SESSION_BLOB_BYTES": BLOB_BYTES,
})

_p = ctypes.POINTER
_status = ctypes.c_int

_declare({
    "weft_rng_chacha_init": (None, [_p(_RngChacha), _bytes]),
    "weft_rng_chacha_table": (_Rng, [_p(_RngChacha)]),
    "weft_trust_ed25519_table": (_Trust, [_p(_TrustEd25519)]),
    "weft_codec_rlnc_table": (_Codec, [_p(_CodecRlnc)]),
    "weft_codec_blocks_table": (_Codec, [_p(_CodecBlocks)]),
    "weft_engine_new": (_status, [_handle, _p(_EngineOptions), _p(_EngineSelf), _out]),
    "weft_engine_free": (None, [_handle]),
    "weft_engine_memory_bytes": (_size, [_p(_EngineOptions)]),
    "weft_engine_add_neighbour": (_status, [_handle, _p(_NeighbourOptions), _time, _written]),
    "weft_engine_move_neighbour": (_status, [_handle, _size, _p(_PeerAddress)]),
    "weft_engine_remove_neighbour": (_status, [_handle, _size]),
    "weft_engine_refusal": (_size, [_handle, _p(_Origin), _bytes]),
    "weft_engine_add_address": (None, [_handle, _p(_PeerAddress)]),
    "weft_engine_set_source_address": (None, [_handle, _p(_PeerAddress)]),
    "weft_engine_needs_source": (ctypes.c_bool, [_handle, _time]),
    "weft_engine_call": (None, [_handle, _p(_PeerAddress), _time]),
    "weft_engine_dial_failed": (None, [_handle, _p(_PeerAddress)]),
    "weft_engine_input": (_status, [_handle, _size, _bytes, _size, _time]),
    "weft_engine_tick": (None, [_handle, _time]),
    "weft_engine_output": (_status, [_handle, _time, _p(_Burst)]),
    "weft_engine_deadline": (_time, [_handle]),
    "weft_engine_leave": (None, [_handle]),
    "weft_engine_event": (ctypes.c_bool, [_handle, _p(_Event)]),
    "weft_engine_source_ready": (ctypes.c_bool, [_handle]),
    "weft_engine_source_put": (_status, [_handle, _bytes, _size, _time, _time]),
    "weft_engine_source_end": (_status, [_handle, _time]),
    "weft_engine_load": (_status, [_handle, _count, _bytes, _size, _time]),
    "weft_engine_readable": (_status, [_handle, _p(_count), _written]),
    "weft_engine_read": (_status, [_handle, _size, _size, _bytes]),
    "weft_engine_release": (_status, [_handle]),
    "weft_engine_seek": (_status, [_handle, _count, _time]),
    "weft_engine_done": (ctypes.c_bool, [_handle]),
    "weft_engine_finished": (ctypes.c_bool, [_handle]),
    "weft_engine_farewell_again": (ctypes.c_bool, [_handle]),
    "weft_engine_play_time": (_status, [_handle, _count, _p(_time)]),
    "weft_engine_buffered": (_size, [_handle]),
    "weft_engine_get_statistics": (None, [_handle, _p(_EngineStatistics)]),
    "weft_engine_get_neighbour": (_status, [_handle, _size, _p(_NeighbourStatistics)]),
    "weft_identity_from_seed": (None, [_bytes, _p(_Identity)]),
    "weft_sessions_new": (_status, [_handle, _p(_SessionsOptions), _time, _out]),
    "weft_sessions_free": (None, [_handle]),
    "weft_sessions_set_blob": (_status, [_handle, _bytes, _size]),
    "weft_sessions_open": (_status, [_handle, _p(_Address), _bytes, _time, _written]),
    "weft_sessions_close": (None, [_handle, _size, _time]),
    "weft_sessions_input": (_status, [_handle, _p(_Address), _bytes, _size, _time, _p(_SessionPlain)]),
    "weft_sessions_output": (_status, [_handle, _p(_Address), _out, _written]),
    "weft_sessions_tick": (None, [_handle, _time]),
    "weft_sessions_deadline": (_time, [_handle]),
    "weft_sessions_reserve": (_status, [_handle, _size, _size, _time, _p(_Seal)]),
    "weft_seal_datagram": (_size, [_p(_Seal), _size, _bytes, _size, _bytes]),
    "weft_sessions_event": (ctypes.c_bool, [_handle, _p(_SessionEvent)]),
    "weft_sessions_peer": (_status, [_handle, _size, _p(_SessionPeer)]),
    "weft_sessions_ask": (None, [_handle, _size, _time]),
    "weft_sessions_get_statistics": (None, [_handle, _p(_SessionStatistics)]),
})


def policy(name):
    """Returns a policy table of the library, or None."""
    try:
        return _Policy.in_dll(_c, "weft_policy_%s" % name)
    except ValueError:
        return None


def counted_trust():
    return _Trust.in_dll(_c, "weft_trust_counted")
