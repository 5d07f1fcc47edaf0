# SPDX-License-Identifier: Apache-2.0
"""The sessions of docs/session.md, with ChaCha20-Poly1305 alone."""

import os
import struct
from hashlib import blake2b

from chacha import seal, unseal
from curve25519 import verified, x25519

INIT, RETRY, ACCEPT, CONFIRM, DATA, CLOSE, PATH, HERE = range(0x71, 0x79)
NO_NONCE = bytes(12)


def hash32(*parts, key=b""):
    return blake2b(b"".join(parts), digest_size=32, key=key).digest()


def subkey(number, key):
    """libsodium's crypto_kdf_derive_from_key."""
    return blake2b(b"", digest_size=32, key=key, salt=struct.pack("<QQ", number, 0),
                   person=b"weftsess" + bytes(8)).digest()


class Handshake:
    """What both sides make of INIT, ACCEPT and the secret that they share."""

    def __init__(self, init, accept, shared):
        self.transcript = hash32(b"weft session 1\0", init[:44], accept[:44])
        self.master = hash32(self.transcript, key=shared)

    def key(self, message):
        return subkey({ACCEPT: 1, CONFIRM: 2}[message], self.master)

    def traffic(self, responder):
        """Keys from the initiator, and to it."""
        key = hash32(self.transcript, responder, key=self.master)
        return subkey(3, key), subkey(4, key)

    def signed(self, role, responder, signer, flags, blob):
        return blake2b(role + b"\0" + self.transcript + responder + signer + bytes([flags]) + blob).digest()


class Session:
    """DATA both ways, once there are keys."""

    def __init__(self, identity, blob):
        self.identity, self.blob = identity, blob
        self.secret, self.key_id = os.urandom(32), int.from_bytes(os.urandom(3), "big") or 1
        self.peer = self.peer_blob = None
        self.open, self.closed = False, False
        self.sent, self.seen = 0, set()

    def take(self, datagram):
        """(what is to be answered, what it said), either may be None."""
        if int.from_bytes(datagram[1:4], "big") != self.key_id:
            return None, None
        if datagram[0] in (DATA, CLOSE, PATH):
            plain = self.opened(datagram) if self.peer else None
            return (self.sealed(plain, HERE), None) if datagram[0] == PATH and plain else (None, plain)
        return self.shake(datagram), None

    def opened(self, datagram):
        if datagram[4:12] in self.seen:
            return None
        plain = unseal(self.in_key, bytes(4) + datagram[4:12], datagram[:12], datagram[12:])
        if plain is None:
            return None
        self.seen.add(datagram[4:12])
        self.open = True
        self.closed = self.closed or datagram[0] == CLOSE
        return plain or None

    def sealed(self, plain, kind=DATA):
        head = struct.pack(">IQ", kind << 24 | self.their_id, self.sent)
        self.sent += 1
        return head + seal(self.out_key, bytes(4) + head[4:], head, plain)


class Dialled(Session):
    """The side that begins: sends `first`, then `confirm`, until the session is open."""

    def __init__(self, identity, blob):
        super().__init__(identity, blob)
        self.head = struct.pack(">IBBHI", INIT << 24, 1, 0, 0, self.key_id) + x25519(self.secret)
        self.first = self.head + bytes(16 + 132)
        self.confirm = None

    def shake(self, datagram):
        if datagram[0] == RETRY and not self.confirm and datagram[4:12] == self.head[12:20]:
            self.first = self.head + datagram[12:28] + bytes(132)
            return self.first
        return self.accept(datagram) if datagram[0] == ACCEPT and not self.confirm else None

    def accept(self, datagram):
        flags, zero, length, self.their_id = struct.unpack(">BBHI", datagram[4:12])
        if zero or flags or len(datagram) != 156 + length:
            return None
        shake = Handshake(self.head, datagram, x25519(self.secret, datagram[12:44]))
        plain = unseal(shake.key(ACCEPT), NO_NONCE, datagram[:44], datagram[44:])
        if plain is None:
            return None
        peer, signature, blob = plain[:32], plain[32:96], plain[96:]
        if not verified(peer, shake.signed(b"weft accept", peer, peer, flags, blob), signature):
            return None
        self.peer, self.peer_blob = peer, blob
        self.out_key, self.in_key = shake.traffic(peer)
        head = struct.pack(">IBBH", CONFIRM << 24 | self.their_id, 0, 0, len(self.blob))
        mine = self.identity.public
        signature = self.identity.sign(shake.signed(b"weft confirm", peer, mine, 0, self.blob))
        self.confirm = head + seal(shake.key(CONFIRM), NO_NONCE, head, mine + signature + self.blob)
        return self.confirm


class Accepted(Session):
    """The side that was dialled, from an INIT with a cookie on: sends `accept`."""

    def __init__(self, identity, blob, init):
        super().__init__(identity, blob)
        _, _, _, _, self.their_id = struct.unpack(">IBBHI", init[:12])
        head = struct.pack(">IBBHI", ACCEPT << 24 | self.their_id, 0, 0, len(blob), self.key_id) + x25519(self.secret)
        self.shaken = Handshake(init, head, x25519(self.secret, init[12:44]))
        mine = identity.public
        signature = identity.sign(self.shaken.signed(b"weft accept", mine, mine, 0, blob))
        self.accept = head + seal(self.shaken.key(ACCEPT), NO_NONCE, head, mine + signature + blob)

    def shake(self, datagram):
        if datagram[0] != CONFIRM:
            return None
        mine, flags = self.identity.public, datagram[4]
        plain = unseal(self.shaken.key(CONFIRM), NO_NONCE, datagram[:8], datagram[8:])
        if plain is None:
            return None
        peer, signature, blob = plain[:32], plain[32:96], plain[96:]
        if not verified(peer, self.shaken.signed(b"weft confirm", mine, peer, flags, blob), signature):
            return None
        self.peer, self.peer_blob, self.open = peer, blob, True
        self.in_key, self.out_key = self.shaken.traffic(mine)
        return self.sealed(b"")


def retry(init, cookie):
    return struct.pack(">I", RETRY << 24 | int.from_bytes(init[8:12], "big")) + init[12:20] + cookie
