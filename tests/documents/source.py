# SPDX-License-Identifier: Apache-2.0
"""A source of a stream that others join: docs/protocol.md, over docs/session.md. It answers what maps and requests say."""

import contextlib
import os
import random
import socket
import struct
import threading
import time
from hashlib import blake2b

import packets
import session
from curve25519 import Identity
from galois import sum_of_products
from viewer import HELLO, MANIFEST, MANIFEST_FIELDS, MAP, REQUEST, SIGNED, clock

PUSHED_AGAIN = 0.3  # seconds: what a map lacks may be on its way for so long


class Neighbour:
    def __init__(self, address):
        self.link, self.address = None, address  # the session with the newest keys
        self.echo, self.echo_at = 0, 0
        self.pushed, self.signed = {}, set()  # when a segment may be pushed again; manifests
        self.wants = []  # (segment, rank) of its last map


class Source(threading.Thread):
    """mode: 0 fetched, 1 on demand. lose: whether a coded packet is lost. Serves until stop()."""

    def __init__(self, data, mode, rate, n, k, lose):
        super().__init__()
        self.data, self.n, self.k, self.lose = data, n, k, lose
        self.count = -(-len(data) // (n * k))
        self.stream, self.identity = random.getrandbits(64) or 1, Identity(os.urandom(32))
        self.blob = struct.pack(">BBBBHHIQQQII32s", 1, 2, mode, 1, n, 0, k, self.stream, rate, len(data), 0, 0,
                                self.identity.public)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.links, self.neighbours, self.stopped = {}, {}, False  # by key id; by identity
        self.cookie_key, self.blocks_of, self.error = os.urandom(32), {}, None

    def stop(self):
        self.stopped = True
        self.join()
        self.socket.close()

    def run(self):
        try:
            while not self.stopped:
                # All that came, then one segment to each: what is sent follows the newest map.
                with contextlib.suppress(TimeoutError, BlockingIOError):
                    self.socket.settimeout(0.02)
                    while True:
                        self.take(*self.socket.recvfrom(2048))
                        self.socket.settimeout(0)
                for neighbour in self.neighbours.values():
                    self.push(neighbour)
        except Exception as error:  # for the test to see
            self.error = error

    # --- Sessions

    def take(self, datagram, address):
        if datagram[0] == session.INIT:
            self.take_init(datagram, address)
            return
        link = self.links.get(int.from_bytes(datagram[1:4], "big"))
        if link is None:
            return
        answer, message = link.take(datagram)
        if answer:
            self.socket.sendto(answer, address)
        if link.open and link.neighbour is None:
            link.neighbour = self.neighbours.setdefault(link.peer, Neighbour(address))
            renewed, link.neighbour.link = link.neighbour.link, link
            if not renewed:
                self.say_hello(link.neighbour, 1)
        if message:
            self.hear(link.neighbour, message)

    def take_init(self, datagram, address):
        cookie = blake2b(repr(address).encode() + datagram[12:44], digest_size=16, key=self.cookie_key).digest()
        if datagram[44:60] != cookie:
            self.socket.sendto(session.retry(datagram, cookie), address)
            return
        link = next((link for link in self.links.values() if link.init == datagram), None)
        if link is None:
            link = session.Accepted(self.identity, self.blob, datagram)
            link.init, link.neighbour = datagram, None
            self.links[link.key_id] = link
        self.socket.sendto(link.accept, address)

    def send(self, neighbour, message):
        self.socket.sendto(neighbour.link.sealed(message), neighbour.address)

    # --- What is said

    def stamps(self, neighbour):
        now = clock()
        return struct.pack(">III", now, neighbour.echo, now - neighbour.echo_at & 0xFFFFFFFF if neighbour.echo else 0)

    def say_hello(self, neighbour, answer):
        self.send(neighbour, struct.pack(">BBHQHHI", 1, HELLO, answer, self.stream, self.n, 0, self.k)
                  + self.stamps(neighbour))

    def say_map(self, neighbour):
        """It wants nothing, knows the end, and can give any segment."""
        self.send(neighbour, struct.pack(">BBHQQQ", 1, MAP, 1, self.count, self.count, len(self.data))
                  + self.stamps(neighbour) + struct.pack(">HHHH", 1, 0, 0, 0xFFFF))

    def blocks(self, segment):
        if segment not in self.blocks_of:
            part = self.data[segment * self.n * self.k:(segment + 1) * self.n * self.k]
            self.blocks_of[segment] = [part[at:at + self.k].ljust(self.k, b"\0") for at in range(0, len(part), self.k)]
        return self.blocks_of[segment]

    def say_manifest(self, neighbour, segment):
        segment = min(segment, self.count - 1)
        part = self.data[segment * self.n * self.k:(segment + 1) * self.n * self.k]
        plain = MANIFEST_FIELDS.pack(1, MANIFEST, segment == self.count - 1, segment, len(self.blocks(segment)), 0,
                                     len(part), 0, int(time.time() * 1e6), 0, blake2b(part, digest_size=32).digest(),
                                     bytes(64))[:SIGNED]
        head = b"weft manifest 1\0" + struct.pack(">QI4x", self.stream, self.k)
        self.send(neighbour, plain + self.identity.sign(head + plain))
        neighbour.signed.add(segment)

    def say_packet(self, neighbour, segment, mode, index=0):
        if segment not in neighbour.signed:
            self.say_manifest(neighbour, segment)
        blocks = self.blocks(segment)
        n, seed, density = len(blocks), random.getrandbits(64), 1 << 14
        if mode == packets.SYSTEMATIC:
            data, coefficients = struct.pack(">H", index), bytes(int(i == index) for i in range(n))
        elif mode == packets.VECTOR:
            data = coefficients = bytes(random.randrange(256) for _ in range(n))
        elif mode == packets.DENSE:
            data, coefficients = struct.pack(">Q", seed), packets.coefficients_of(self.stream, segment, seed, n)
        else:
            data = struct.pack(">QH", seed, density)
            coefficients = packets.coefficients_of(self.stream, segment, seed, n, density)
        packet = packets.Packet(self.stream, segment, n, coefficients, sum_of_products(coefficients, blocks, self.k))
        if not self.lose():
            self.send(neighbour, packets.written(packet, mode, data, session=True))

    # --- What is heard

    def hear(self, neighbour, message):
        kind = message[1]
        if kind == HELLO:
            neighbour.echo, neighbour.echo_at = int.from_bytes(message[20:24], "big"), clock()
            if message[3] & 1:
                self.say_hello(neighbour, 0)
            self.say_map(neighbour)
        elif kind == MAP:
            self.hear_map(neighbour, message)
        elif kind == REQUEST:
            for at in range(12, len(message), 20):
                self.hear_request(neighbour, *struct.unpack(">QHHQ", message[at:at + 20]))

    def hear_map(self, neighbour, message):
        neighbour.echo, neighbour.echo_at = int.from_bytes(message[28:32], "big"), clock()
        first, count = int.from_bytes(message[4:12], "big"), int.from_bytes(message[42:44], "big")
        ranks = (entry & 0x7FF for entry in struct.unpack(">%dH" % count, message[48:]))
        neighbour.wants = list(enumerate(ranks, first))

    def push(self, neighbour):
        for segment, rank in neighbour.wants:
            lacks = len(self.blocks(segment)) - rank if segment < self.count else 0
            if lacks <= 0 or neighbour.link.closed or time.monotonic() < neighbour.pushed.get(segment, 0):
                continue
            for index in range(lacks):
                if segment in neighbour.pushed:
                    self.say_packet(neighbour, segment, random.choice((packets.VECTOR, packets.DENSE, packets.SPARSE)))
                else:
                    self.say_packet(neighbour, segment, packets.SYSTEMATIC, index)
            neighbour.pushed[segment] = time.monotonic() + PUSHED_AGAIN
            return

    def hear_request(self, neighbour, segment, kind, count, mask):
        if kind == 2:
            self.say_manifest(neighbour, segment)
        elif segment < self.count and kind == 0:
            for _ in range(count):
                self.say_packet(neighbour, segment, packets.DENSE)
        elif segment < self.count and kind == 1:
            for i in range(64):
                if mask >> i & 1:
                    self.say_packet(neighbour, segment, packets.SYSTEMATIC, count + i)
