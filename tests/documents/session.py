# SPDX-License-Identifier: Apache-2.0
"""The session of docs/session.md, the side that begins it, with ChaCha20-Poly1305 alone."""

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


class Session:
    """Made with INIT to be sent; take() is given each datagram that comes."""

    def __init__(self, identity, blob):
        self.identity, self.blob = identity, blob
        self.secret = os.urandom(32)
        self.key_id = int.from_bytes(os.urandom(3), "big") or 1
        self.head = struct.pack(">IBBHI", INIT << 24, 1, 0, 0, self.key_id) + x25519(self.secret)
        self.first = self.init(bytes(16))
        self.confirm = self.peer = self.peer_blob = None
        self.open, self.closed = False, False
        self.sent, self.seen = 0, set()

    def init(self, cookie):
        return self.head + cookie + bytes(132)

    def take(self, datagram):
        """(what is to be answered, what it said), either may be None."""
        kind, mine = datagram[0], int.from_bytes(datagram[1:4], "big") == self.key_id
        if not mine:
            return None, None
        if kind == RETRY and not self.confirm and datagram[4:12] == self.head[12:20]:
            self.first = self.init(datagram[12:28])
            return self.first, None
        if kind == ACCEPT and not self.confirm:
            return self.accept(datagram), None
        if kind in (DATA, CLOSE, PATH) and self.confirm:
            plain = self.opened(datagram)
            return (self.sealed(plain, HERE), None) if kind == PATH and plain else (None, plain)
        return None, None

    def accept(self, datagram):
        flags, zero, length, theirs = struct.unpack(">BBHI", datagram[4:12])
        if zero or flags or len(datagram) != 156 + length:
            return None
        transcript = hash32(b"weft session 1\0", self.head, datagram[:44])
        master = hash32(transcript, key=x25519(self.secret, datagram[12:44]))
        plain = unseal(subkey(1, master), NO_NONCE, datagram[:44], datagram[44:])
        if plain is None:
            return None
        peer, signature, blob = plain[:32], plain[32:96], plain[96:]

        def to_sign(role, signer, what):
            return blake2b(role + b"\0" + transcript + peer + signer + bytes([flags]) + what).digest()
        if not verified(peer, to_sign(b"weft accept", peer, blob), signature):
            return None
        traffic = hash32(transcript, peer, key=master)
        self.out_key, self.in_key = subkey(3, traffic), subkey(4, traffic)
        self.peer, self.peer_blob, self.their_id = peer, blob, theirs
        head = struct.pack(">IBBH", CONFIRM << 24 | theirs, 0, 0, len(self.blob))
        signed = self.identity.sign(to_sign(b"weft confirm", self.identity.public, self.blob))
        self.confirm = head + seal(subkey(2, master), NO_NONCE, head,
                                   self.identity.public + signed + self.blob)
        return self.confirm

    def opened(self, datagram):
        counter = int.from_bytes(datagram[4:12], "big")
        if counter in self.seen:
            return None
        plain = unseal(self.in_key, bytes(4) + datagram[4:12], datagram[:12], datagram[12:])
        if plain is None:
            return None
        self.seen.add(counter)
        self.open = True
        self.closed = datagram[0] == CLOSE
        return plain or None

    def sealed(self, plain, kind=DATA):
        head = struct.pack(">IQ", kind << 24 | self.their_id, self.sent)
        self.sent += 1
        return head + seal(self.out_key, bytes(4) + head[4:], head, plain)
