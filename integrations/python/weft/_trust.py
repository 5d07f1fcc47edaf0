# SPDX-License-Identifier: Apache-2.0
"""Identities, the trust that a stream is its source's, and random numbers."""

import ctypes
import dataclasses
import os

from ._declarations import _c
from ._memory import host
from ._peer_declarations import (
    _Identity, _RngChacha, _SIGN, _Trust, _TrustEd25519, _VERIFY, counted_trust, KEY_BYTES)

_SIGNATURE_BYTES = 64


def _exactly(name, data, size):
    made = bytes(data) if len(data) == size else data  # of an array, len() counts numbers, not bytes
    if len(made) != size:
        raise ValueError("%s has %d bytes, not %d" % (name, size, len(made)))
    return made


def random_of(key):
    """Returns the library's generator, also for keys, seeded with 32 bytes; None: with random ones."""
    generator = _RngChacha()
    held = host(os.urandom(KEY_BYTES) if key is None else key)
    if held.size != KEY_BYTES:
        raise ValueError("a key has %d bytes" % KEY_BYTES)
    _c.weft_rng_chacha_init(ctypes.byref(generator), held)
    return generator, _c.weft_rng_chacha_table(ctypes.byref(generator))


@dataclasses.dataclass(frozen=True)
class Identity:
    """An Ed25519 key pair that identifies a node, and with which a source signs. Others have only its public key."""

    public_key: bytes
    secret_key: bytes = dataclasses.field(default=None, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "public_key", _exactly("a public key", self.public_key, KEY_BYTES))
        if self.secret_key is not None:
            object.__setattr__(self, "secret_key", _exactly("a secret key", self.secret_key, 64))

    @classmethod
    def from_seed(cls, seed):
        """Derives the pair from 32 bytes, which must be kept as secret as the secret key."""
        made = _Identity()
        _c.weft_identity_from_seed(ctypes.c_char_p(_exactly("a seed", seed, 32)), ctypes.byref(made))
        return cls(bytes(made.public_key), bytes(made.secret_key))

    @classmethod
    def random(cls):
        return cls.from_seed(os.urandom(32))


@dataclasses.dataclass(frozen=True)
class Trust:
    """Signatures of your own, for a secret key that is out of reach, or for another scheme.

    verify(text, signature) returns whether the source signed the text. sign(text), for the source only,
    returns 64 bytes. Both take bytes. If one raises, the engine's call raises that once it is finished; until
    then the signature counts as wrong.
    """

    verify: object
    sign: object = None


def _trust_of(trust, source, callbacks):
    """Returns the table for the library, and what must be kept as long as it; None: nothing is signed."""
    if trust is None:
        return None, None
    if trust == "counted":
        return counted_trust(), None
    if isinstance(trust, Identity):
        secret = trust.secret_key if source else None
        keys = _TrustEd25519((ctypes.c_uint8 * KEY_BYTES)(*trust.public_key),
                             (ctypes.c_uint8 * 64)(*(secret or b"")), secret is not None)
        return _c.weft_trust_ed25519_table(ctypes.byref(keys)), keys
    if not isinstance(trust, Trust):
        raise TypeError("trust is an Identity, a Trust, \"counted\" or None, not %s" % type(trust).__name__)
    return _own_trust(trust, callbacks), None


def _own_trust(trust, callbacks):
    def verify(_, text, size, signature):
        return trust.verify(ctypes.string_at(text, size), ctypes.string_at(signature, _SIGNATURE_BYTES))

    def sign(_, text, size, out):
        made = _exactly("a signature", trust.sign(ctypes.string_at(text, size)), _SIGNATURE_BYTES)
        ctypes.memmove(out, made, _SIGNATURE_BYTES)
        return True

    def at(kind, function):
        return ctypes.c_void_p.from_buffer(callbacks.make(kind, function)).value

    return _Trust(sign=at(_SIGN, sign) if trust.sign else None, verify=at(_VERIFY, verify))
