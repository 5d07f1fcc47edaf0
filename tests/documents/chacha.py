# SPDX-License-Identifier: Apache-2.0
"""ChaCha20 and Poly1305 (RFC 8439)."""

P1305 = (1 << 130) - 5


def poly1305(key, message):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at:at + 16] + b"\1", "little")) * r % P1305
    return ((total + int.from_bytes(key[16:], "little")) % (1 << 128)).to_bytes(16, "little")


def keystream(key, nonce, counter, length):
    """Block after block side by side: lane b of each number is block b's word, in 64 bits."""
    blocks = -(-length // 64)
    one = sum(1 << 64 * b for b in range(blocks))
    low = one * 0xFFFFFFFF

    def turned(word, by):
        word <<= by
        return (word | word >> 32) & low

    words = [int.from_bytes(part, "little") for source in (b"expand 32-byte k", key)
             for part in (source[at:at + 4] for at in range(0, len(source), 4))]
    start = [one * word for word in words]
    start.append(sum((counter + b & 0xFFFFFFFF) << 64 * b for b in range(blocks)))
    start += [one * int.from_bytes(nonce[at:at + 4], "little") for at in (0, 4, 8)]
    x = list(start)
    rounds = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
              (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for _ in range(10):
        for a, b, c, d in rounds:
            for by_d, by_b in ((16, 12), (8, 7)):
                x[a] = x[a] + x[b] & low
                x[d] = turned(x[d] ^ x[a], by_d)
                x[c] = x[c] + x[d] & low
                x[b] = turned(x[b] ^ x[c], by_b)
    rows = [(a + b & low).to_bytes(8 * blocks, "little") for a, b in zip(x, start)]
    return b"".join(row[8 * b:8 * b + 4] for b in range(blocks) for row in rows)[:length]


def aead_tag(stream, associated, sealed):
    def padded(part):
        return part + bytes(-len(part) % 16)
    return poly1305(stream[:32], padded(associated) + padded(sealed)
                    + len(associated).to_bytes(8, "little") + len(sealed).to_bytes(8, "little"))


def seal(key, nonce, associated, plain):
    """ChaCha20-Poly1305-IETF: what is sealed, and its tag."""
    stream = keystream(key, nonce, 0, 64 + len(plain))
    sealed = bytes(a ^ b for a, b in zip(plain, stream[64:]))
    return sealed + aead_tag(stream, associated, sealed)


def unseal(key, nonce, associated, sealed):
    """The opposite; None where the tag is not right."""
    sealed, tag = sealed[:-16], sealed[-16:]
    stream = keystream(key, nonce, 0, 64 + len(sealed))
    if len(tag) < 16 or aead_tag(stream, associated, sealed) != tag:
        return None
    return bytes(a ^ b for a, b in zip(sealed, stream[64:]))
