# SPDX-License-Identifier: Apache-2.0
"""Coded packets and a decoder of a segment, from docs/wire.md alone."""

import collections
import struct

from chacha import keystream
from galois import GF256, sum_of_products, xor

SYSTEMATIC, VECTOR, DENSE, SPARSE = range(4)

Packet = collections.namedtuple("Packet", "stream segment n coefficients payload")


class Malformed(ValueError):
    pass


class Version(ValueError):
    pass


def coefficients_of(stream, segment, seed, n, density=None):
    """What a seed stands for."""
    key = struct.pack("<QQQQ", stream, segment, seed, 0)
    numbers = iter(struct.unpack("<%dH" % (2 * n), keystream(key, b"LibsodiumDRG", 0, 4 * n)))

    def nonzero():
        return 1 + (next(numbers) * 255 >> 16)
    if density is None:
        return bytes(nonzero() for _ in range(n))
    return bytes(nonzero() if next(numbers) < density else 0 for _ in range(n))


def parse(datagram, session=None):
    """A packet; session: (stream, k) where the header leaves both out."""
    if not datagram:
        raise Malformed("empty")
    if datagram[0] != 1:
        raise Version(datagram[0])
    header = 12 if session else 24
    if len(datagram) < header:
        raise Malformed("header")
    if session:
        (_, mode, n, segment), (stream, k) = struct.unpack(">BBHQ", datagram[:12]), session
    else:
        _, mode, n, k, stream, segment = struct.unpack(">BBHIQQ", datagram[:24])
    if not (1 <= n <= 1024 and 1 <= k <= 1 << 20 and mode <= SPARSE):
        raise Malformed("range")
    length = {SYSTEMATIC: 2, VECTOR: n, DENSE: 8, SPARSE: 10}[mode]
    rest = datagram[header:]
    if len(rest) != length + k:
        raise Malformed("length")
    data, payload = rest[:length], rest[length:]
    if mode == SYSTEMATIC:
        index = int.from_bytes(data, "big")
        if index >= n:
            raise Malformed("index")
        coefficients = bytes(index) + b"\1" + bytes(n - 1 - index)
    elif mode == VECTOR:
        coefficients = data
    else:
        density = int.from_bytes(data[8:], "big") if mode == SPARSE else None
        if density == 0:
            raise Malformed("density")
        coefficients = coefficients_of(stream, segment, int.from_bytes(data[:8], "big"), n, density)
    return Packet(stream, segment, n, coefficients, payload)


def written(packet, mode, data, session=False):
    head = struct.pack(">BBH", 1, mode, packet.n)
    if not session:
        head += struct.pack(">IQ", len(packet.payload), packet.stream)
    return head + struct.pack(">Q", packet.segment) + data + packet.payload


class Decoder:
    """Keeps packets whose coefficients are news; n of them give the blocks."""

    def __init__(self, n):
        self.n, self.packets = n, []
        self.pivots = {}  # column: a row that begins there, with 1

    @property
    def rank(self):
        return len(self.packets)

    def add(self, coefficients, payload):
        """Whether it was news."""
        row = coefficients
        for column in range(self.n):
            if row[column]:
                if column not in self.pivots:
                    self.pivots[column] = row.translate(GF256.products[GF256.inverses[row[column]]])
                    self.packets.append((coefficients, payload))
                    return True
                row = xor((row, self.pivots[column].translate(GF256.products[row[column]])), self.n)
        return False

    def blocks(self):
        inverse = GF256.invert([list(coefficients) for coefficients, _ in self.packets])
        payloads = [payload for _, payload in self.packets]
        return [sum_of_products(row, payloads, len(payloads[0])) for row in inverse]
