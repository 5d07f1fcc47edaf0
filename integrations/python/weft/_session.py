# SPDX-License-Identifier: Apache-2.0
"""Encrypted sessions with neighbours over datagrams, without I/O."""

import collections
import ctypes
import dataclasses
import enum
import ipaddress
import typing

from ._callbacks import _CalledBack
from ._context import _check
from ._declarations import _c, _fill, _size, _whole, CONSTANTS, DEPENDENT, PENDING
from ._engine import time_of
from ._memory import flat, host
from ._peer_declarations import (
    _Address, _ADMIT, _Identity, _Seal, _SessionEvent, _SessionPeer, _SessionPlain, _SessionsOptions,
    _SessionStatistics, BLOB_BYTES, KEY_BYTES, NEVER_US, OVERHEAD_BYTES, PLAIN_BYTES)
from ._trust import _exactly, Identity, random_of


class Cipher(enum.IntEnum):
    BEST = 0  # AES-256-GCM if both processors support it, else ChaCha20-Poly1305
    CHACHA = 1


class SessionEventKind(enum.IntEnum):
    OPENED = 0  # both sides have proved their identities
    LOST = 1  # with a reason; the link's number is free
    MOVED = 2  # the other side is at another address, which peer() returns


class SessionReason(enum.IntEnum):
    """Why a session is lost."""

    NO_ANSWER = 0  # to the opening
    OTHER_IDENTITY = 1  # another identity answered, or one that admit refused
    SILENT = 2  # nothing was heard for too long
    CLOSED = 3  # by the other side
    REPLACED = 4  # by another session with the same identity
    EXPIRED = 5  # the keys are too old, and no new ones could be agreed on
    ELSEWHERE = 6  # by the other side, for another node's session with our identity


CONSTANTS.update({"WEFT_CIPHER_" + member.name: member.value for member in Cipher})
for _kind in (SessionEventKind, SessionReason):
    CONSTANTS.update({"WEFT_SESSION_" + member.name: member.value for member in _kind})


class SessionEvent(typing.NamedTuple):
    """What became of a link. reason: for LOST."""

    kind: SessionEventKind
    link: int
    reason: SessionReason = None


class SessionPeer(typing.NamedTuple):
    """The node at the other end of a link."""

    address: tuple
    public_key: bytes
    blob: bytes
    initiated: bool  # this side opened the session
    aes: bool
    heard_us: int  # when something was last received from it


_COUNTED = [field[0] for field in _SessionStatistics._fields_]
SessionStatistics = collections.namedtuple("SessionStatistics", _COUNTED)


@dataclasses.dataclass(frozen=True)
class SessionsOptions:
    """weft/peer_session.h specifies each option. blob: what the other side learns about this one.

    admit(public_key, address) returns whether a proven identity may have a session; None: all may.
    """

    links_max: int = 64
    blob: bytes = b""
    cipher: Cipher = Cipher.BEST
    rekey_us: int = 0
    silent_us: int = 0
    handshakes_per_s: int = 0
    admit: object = None


def _to_c(address):
    """Converts (host, port), or the longer tuple of an IPv6 socket; the host is numeric."""
    ip = ipaddress.ip_address(address[0].partition("%")[0])
    packed = ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed
    return _Address((ctypes.c_uint8 * 16)(*packed), _whole("a port", address[1], 16))


def _from_c(address):
    ip = ipaddress.IPv6Address(bytes(address.ip))
    return str(ip.ipv4_mapped or ip), address.port


class Sessions(_CalledBack):
    """Sessions of one node, over datagrams of at most 1200 bytes.

    After any input, take events(), then output(); then wait until deadline_us or the next datagram, and
    call tick. An address is (host, port) with a numeric IPv4 or IPv6 host. key: 32 bytes that determine all
    random numbers, for simulations only.
    """

    OVERHEAD_BYTES = OVERHEAD_BYTES  # added by sealing
    PLAIN_BYTES = PLAIN_BYTES  # that can be sealed at most

    def __init__(self, context, identity, now_us, options=SessionsOptions(), key=None):
        super().__init__(context)
        if not isinstance(identity, Identity) or identity.secret_key is None:
            raise TypeError("a node's identity is an Identity with its secret key")
        self.identity = identity
        generator, rng = random_of(key)
        blob = host(options.blob)
        table = _fill(_SessionsOptions(), options, ("links_max", "cipher", "rekey_us", "silent_us", "handshakes_per_s"))
        table.identity = _Identity((ctypes.c_uint8 * KEY_BYTES)(*identity.public_key),
                                   (ctypes.c_uint8 * 64)(*identity.secret_key))
        table.blob, table.blob_bytes = blob.at, blob.size
        table.rng = ctypes.pointer(rng)
        if options.admit is not None:
            table.admit = self._own_admit(options.admit)
        self._callbacks.keep(generator, rng)  # which the library keeps using
        at = ctypes.c_void_p()
        with context._busy() as of:
            _check(_c.weft_sessions_new(of, ctypes.byref(table), time_of(now_us), ctypes.byref(at)),
                   "%d links, a blob of %d bytes" % (options.links_max, table.blob_bytes))
            self._take(at, "weft_sessions_free")

    def _own_admit(self, admit):
        def ask(_, public_key, address):
            return admit(ctypes.string_at(public_key, KEY_BYTES), _from_c(address[0]))

        return ctypes.c_void_p.from_buffer(self._callbacks.make(_ADMIT, ask)).value

    def set_blob(self, blob):
        """Sets what the other side learns in later handshakes."""
        held = host(blob)
        _check(self._run(_c.weft_sessions_set_blob, held, held.size),
               "%d bytes, and at most %d" % (held.size, BLOB_BYTES))

    # --- Links

    def open(self, address, now_us, public_key=None):
        """Begins a session and returns its link; an event reports what becomes of it.

        public_key: the identity that must answer. Error WEFT_E_STATE: there is no room for another link.
        """
        link = _size()
        who = None if public_key is None else host(_exactly("a public key", public_key, KEY_BYTES))
        _check(self._run(_c.weft_sessions_open, ctypes.byref(_to_c(address)), who, time_of(now_us),
                         ctypes.byref(link)))
        return link.value

    def close_link(self, link, now_us):
        """Ends a session at once and tells the other side; no event follows."""
        self._run(_c.weft_sessions_close, _whole("link", link), time_of(now_us))

    def peer(self, link):
        """Returns the SessionPeer at the other end of an open link."""
        found = _SessionPeer()
        with self._lock:
            _check(self._run(_c.weft_sessions_peer, _whole("link", link), ctypes.byref(found)), "link %d" % link)
            return SessionPeer(_from_c(found.address), bytes(found.public_key),
                               ctypes.string_at(found.blob, found.blob_bytes), found.initiated, found.aes,
                               found.heard_us)

    def ask(self, link, now_us):
        """Asks the other end of an open link for a sign of life; heard_us of peer() is when one last came."""
        self._run(_c.weft_sessions_ask, _whole("link", link), time_of(now_us))

    # --- Datagrams, the time, events

    def input(self, address, datagram, now_us):
        """Takes a datagram. Returns (link, what was sealed); None: only for this layer, or a replay. Error: refused."""
        view = flat(datagram)
        data = (ctypes.c_char * view.nbytes).from_buffer_copy(view)  # it is decrypted in place
        plain = _SessionPlain()
        status = self._run(_c.weft_sessions_input, ctypes.byref(_to_c(address)), data, view.nbytes, time_of(now_us),
                           ctypes.byref(plain))
        if status in (PENDING, DEPENDENT):
            return None
        _check(status)
        return plain.link, ctypes.string_at(plain.data, plain.bytes)

    def _datagram(self):
        address, data, size = _Address(), ctypes.c_void_p(), _size()
        with self._lock:
            status = self._run(_c.weft_sessions_output, ctypes.byref(address), ctypes.byref(data), ctypes.byref(size))
            if status == PENDING:
                return None
            _check(status)
            return _from_c(address), ctypes.string_at(data, size.value)

    def output(self):
        """Iterates over (address, datagram) of this layer's own messages."""
        return iter(self._datagram, None)

    def seal(self, link, datagrams, now_us):
        """Returns a list of sealed datagrams for the other end of an open link. Error WEFT_E_STATE: it is not open."""
        plain = [host(one) for one in datagrams]
        for one in plain:
            if not one.size:
                raise ValueError("an empty datagram, which the other end would take for a keep-alive")
            if one.size > PLAIN_BYTES:
                raise ValueError("a datagram of %d bytes, and at most %d can be sealed" % (one.size, PLAIN_BYTES))
        seal = _Seal()
        with self._lock:  # `seal` has the address of the link's key
            _check(self._run(_c.weft_sessions_reserve, _whole("link", link), len(plain), time_of(now_us),
                             ctypes.byref(seal)), "link %d" % link)
            return [self._sealed(seal, i, one) for i, one in enumerate(plain)]

    def _sealed(self, seal, i, plain):
        out = ctypes.create_string_buffer(plain.size + OVERHEAD_BYTES)
        _c.weft_seal_datagram(ctypes.byref(seal), i, plain, plain.size, out)
        return out.raw

    def tick(self, now_us):
        """Lets time pass."""
        self._run(_c.weft_sessions_tick, time_of(now_us))

    @property
    def deadline_us(self):
        """When to call tick again, 0: at once; None: only after an input."""
        at_us = self._run(_c.weft_sessions_deadline)
        return None if at_us == NEVER_US else at_us

    def _event(self):
        event = _SessionEvent()
        if not self._run(_c.weft_sessions_event, ctypes.byref(event)):
            return None
        kind = SessionEventKind(event.kind)
        return SessionEvent(kind, event.link, SessionReason(event.reason) if kind == SessionEventKind.LOST else None)

    def events(self):
        """Iterates over the pending events."""
        return iter(self._event, None)

    @property
    def statistics(self):
        """The statistics, with the names in weft/peer_session.h."""
        counted = _SessionStatistics()
        self._run(_c.weft_sessions_get_statistics, ctypes.byref(counted))
        return SessionStatistics(*(getattr(counted, name) for name in _COUNTED))
