# SPDX-License-Identifier: Apache-2.0
"""A peer that joins one other and fetches its stream: docs/protocol.md, over docs/session.md. It only takes."""

import contextlib
import os
import socket
import struct
import time
from hashlib import blake2b

from chacha import keystream
from curve25519 import Identity, verified
from galois import GF256
from packets import Decoder, parse
from session import CLOSE, Dialled

HELLO, MAP, BRAKE, BYE, PACE, ACK, MANIFEST, CHECKSUM, REVEALED, REQUEST, REFER = range(16, 27)
ANNOUNCE, LIST, MAPPED = 64, 65, 67
SIGNED, MANIFEST_FIELDS = 72, struct.Struct(">BBHQHHIQQI32s64s")
WINDOW = 64


def clock():
    """Microseconds, modulo 2^32; 0 is sent as 1."""
    return int(time.monotonic() * 1e6) & 0xFFFFFFFF or 1


def announce(stream):
    return struct.pack(">BBHQ", 1, ANNOUNCE, 0, stream)


def mapped(address, port):
    """That a node's router lets others in there."""
    return struct.pack(">BBH16sH", 1, MAPPED, 0, socket.inet_pton(socket.AF_INET6, address), port)


@contextlib.contextmanager
def known(tracker, seconds, *messages):
    """Within that time a session in which these are said, until a tracker answers with a LIST, which it yields."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect(tracker)
        udp.settimeout(seconds)
        link = Dialled(Identity(os.urandom(32)), bytes([1]).ljust(76, b"\0"))
        udp.send(link.first)
        while True:
            answer, message = link.take(udp.recv(2048))
            if answer:
                udp.send(answer)
            elif message and message[1] == LIST:
                break
            elif link.open:
                for said in messages:
                    udp.send(link.sealed(said))
        yield message
        udp.send(link.sealed(b"", CLOSE))


def listed(tracker, seconds):
    """The (address, port) of every node that a tracker lists first, within that time."""
    with known(tracker, seconds, announce(0)) as message:
        pass
    _, _, _, count, _ = struct.unpack(">BBBBQ", message[:12])
    entries = [message[at:at + 18] for at in range(12, 12 + 18 * count, 18)]
    return [(socket.inet_ntop(socket.AF_INET6, entry[:16]), int.from_bytes(entry[16:], "big")) for entry in entries]


class Description:
    """The blob of docs/peer/tracker.md."""

    def __init__(self, blob):
        (self.version, self.role, self.mode, self.flags, self.n, _, self.k, self.stream, self.rate, self.length,
         self.lag, _, self.source) = struct.unpack(">BBBBHHIQQQII32s", blob)


def checksum_functions(seed, k):
    """8 rows of k coefficients."""
    key = b"weft checksum" + bytes(3) + struct.pack("<QQ", seed, 0)
    # crypto_stream_chacha20 counts in 8 bytes where RFC 8439 has 4, and has a nonce of 8.
    stream = b"".join(keystream(key, struct.pack("<IQ", 0, at), 0, 512) for at in range(0, k, 64))
    return [stream[f:8 * k:8] for f in range(8)]


class Segment:
    def __init__(self, n):
        self.n, self.decoder, self.data = n, Decoder(n), None


class Viewer:
    def __init__(self, address, lose=lambda: False):
        self.lose = lose  # whether a coded packet is lost on its way
        self.address = address
        self.move()
        self.session = Dialled(Identity(os.urandom(32)), bytes([1]).ljust(76, b"\0"))
        self.stream = None
        self.segments, self.manifests = {}, {}
        self.first, self.end, self.last = 0, None, None  # next to be had; bytes; number of segments
        self.output = bytearray()
        self.echo, self.echo_at, self.received = 0, 0, 0
        self.modes = set()
        self.blocks, self.checksums = {}, []  # of segments that are complete; as they came
        self.greeted, self.told, self.asked = False, 0, 0

    def send(self, message):
        self.socket.send(self.session.sealed(message))

    def move(self):
        """To another port, as a NAT does it."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(0.05)
        self.socket.connect(self.address)

    # --- What is said

    def stamps(self):
        now = clock()
        return struct.pack(">III", now, self.echo, now - self.echo_at & 0xFFFFFFFF if self.echo else 0)

    def say_hello(self, answer):
        self.send(struct.pack(">BBHQHHI", 1, HELLO, int(answer), self.stream.stream, self.stream.n, 0, self.stream.k)
                  + self.stamps())

    def say_map(self):
        count = WINDOW if self.last is None else max(0, min(WINDOW, self.last - self.first))
        entries = b"".join(self.entry(self.first + i) for i in range(count))
        horizon = self.last if self.last is not None else max([self.first - 1, *self.segments, *self.manifests]) + 1
        self.send(struct.pack(">BBHQQQ", 1, MAP, self.end is not None, self.first, horizon, self.end or 0) + self.stamps()
                  + struct.pack(">HHHH", 1, count, 0, 0) + entries)
        self.told = time.monotonic()

    def entry(self, number):
        segment = self.segments.get(number)
        if segment is None:
            return b"\0\0"
        return struct.pack(">H", segment.n if segment.data is not None else min(segment.decoder.rank, segment.n - 1))

    def ask(self):
        """For manifests and packets of what is begun, and for the manifest that proves an end."""
        wanted = []
        for number, segment in sorted(self.segments.items()):
            if segment.data is None and len(wanted) < 31:
                if number not in self.manifests:
                    wanted.append((number, 2, 0))
                elif segment.decoder.rank < segment.n:
                    wanted.append((number, 0, segment.n - segment.decoder.rank))
        if self.last is None:
            wanted.append((1 << 48, 2, 0))
        if wanted:
            self.request(wanted)
        self.asked = time.monotonic()

    def request(self, wanted):
        self.send(struct.pack(">BBH8x", 1, REQUEST, len(wanted))
                  + b"".join(struct.pack(">QHHQ", *what, 0) for what in wanted))

    # --- What is heard

    def take(self, datagram):
        answer, message = self.session.take(datagram)
        if answer:
            self.socket.send(answer)
        if not self.session.open:
            return
        if self.stream is None:
            self.stream = Description(self.session.peer_blob)
            self.say_hello(True)
        if message:
            self.hear(message)

    def hear(self, message):
        kind = message[1]
        if kind < 4:
            self.hear_packet(message)
        elif kind == HELLO:
            self.hear_stamps(message[20:32])
            if message[3] & 1:
                self.say_hello(False)
            self.greeted = True
            self.say_map()
        elif kind == MAP:
            self.hear_stamps(message[28:40])
        elif kind == PACE:
            sent, stamp = struct.unpack(">II", message[4:12])
            now = clock()
            self.send(struct.pack(">BBHIIIII", 1, ACK, 0, sent, self.received & 0xFFFFFFFF, now - stamp & 0xFFFFFFFF,
                                  stamp, clock() - now & 0xFFFFFFFF))
        elif kind == MANIFEST:
            self.hear_manifest(message)
        elif kind == REVEALED:
            self.request([(int.from_bytes(message[4:12], "big"), 3, 0)])
        elif kind == CHECKSUM:
            self.checksums.append(message)

    def hear_stamps(self, stamps):
        self.echo, self.echo_at = int.from_bytes(stamps[:4], "big"), clock()

    def hear_packet(self, message):
        if self.lose():
            return
        self.received += 1
        self.modes.add(message[1])
        packet = parse(message, (self.stream.stream, self.stream.k))
        if packet.segment < self.first:
            self.brake(packet.segment)
            return
        segment = self.segments.setdefault(packet.segment, Segment(packet.n))
        if packet.n != segment.n or segment.data is not None:
            self.brake(packet.segment)
            return
        if segment.decoder.rank < segment.n:
            segment.decoder.add(packet.coefficients, packet.payload)
        self.complete(packet.segment)

    def brake(self, number):
        self.send(struct.pack(">BBHQ", 1, BRAKE, 0, number))

    def hear_manifest(self, message):
        (_, _, flags, number, n, _, length, _, _, _, digest, signature) = fields = MANIFEST_FIELDS.unpack(message)
        head = b"weft manifest 1\0" + struct.pack(">QI4x", self.stream.stream, self.stream.k)
        if number in self.manifests or not verified(self.stream.source, head + message[:SIGNED], signature):
            return
        if n == 0:
            self.last, self.end = number, fields[7]
            return
        self.manifests[number] = (n, length, digest)
        if flags & 1:
            self.last, self.end = number + 1, number * self.stream.n * self.stream.k + length
        self.complete(number)

    def checked(self):
        """How many checksums came that are signed and are those of blocks; ValueError if one is not."""
        count = 0
        for message in self.checksums:
            _, _, n, number, _, seed = struct.unpack(">BBHQQQ", message[:28])
            head = b"weft checksum 1\0" + struct.pack(">QI4x", self.stream.stream, self.stream.k)
            if not verified(self.stream.source, head + message[:28] + bytes(64) + message[92:], message[28:92]):
                raise ValueError("a checksum that the source did not sign")
            if len(message) != 92 + 8 * n or n != len(self.blocks[number]):
                raise ValueError("a checksum of %d bytes" % len(message))
            functions = checksum_functions(seed, self.stream.k)
            for i, block in enumerate(self.blocks[number]):
                if bytes(GF256.dot(function, block) for function in functions) != message[92 + 8 * i:100 + 8 * i]:
                    raise ValueError("segment %d, block %d: another checksum" % (number, i))
            count += 1
        return count

    def complete(self, number):
        segment, manifest = self.segments.get(number), self.manifests.get(number)
        if segment is None or manifest is None or segment.data is not None or segment.decoder.rank < segment.n:
            return
        blocks = segment.decoder.blocks()
        data = b"".join(blocks)[:manifest[1]]
        if blake2b(data, digest_size=32).digest() != manifest[2]:
            raise ValueError("segment %d has another digest" % number)
        self.blocks[number] = blocks
        segment.data, segment.decoder = data, None
        self.brake(number)
        while self.first in self.segments and self.segments[self.first].data is not None:
            self.output += self.segments.pop(self.first).data
            self.first += 1
        self.say_map()

    # --- The loop

    def run(self, seconds):
        """The stream's bytes."""
        until, again = time.monotonic() + seconds, 0
        while self.last is None or self.first < self.last:
            now = time.monotonic()
            if now > until:
                raise TimeoutError("%d of %s segments" % (self.first, self.last))
            if not self.session.open and now > again:
                self.socket.send(self.session.confirm or self.session.first)
                again = now + 0.25
            if self.greeted and now > self.told + 0.2:
                self.say_map()
            if self.greeted and now > self.asked + 0.3:
                self.ask()
            try:
                self.take(self.socket.recv(2048))
            except TimeoutError:
                continue
        with contextlib.suppress(ConnectionError):  # it may have gone
            self.send(struct.pack(">BBH8x", 1, BYE, int(self.stream.mode == 0)))
            self.socket.send(self.session.sealed(b"", CLOSE))
        return bytes(self.output)
