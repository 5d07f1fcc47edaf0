# SPDX-License-Identifier: Apache-2.0
"""Joins a stream of `weft peer`, and writes it to standard output.

    python3 join.py ADDRESS PORT        of its source, started with `weft peer source --listen ADDRESS:PORT`

Uses the peer of own_transport.py, which learns the stream's parameters from the blob of the source's handshake
(docs/peer/tracker.md). It knows no node but that source, and trusts it to be one.
"""

import asyncio
import os
import socket
import struct
import sys
import typing

import own_transport
import weft

BLOB = struct.Struct(">BBBBHHIQQQII32s")
JOINING, PEER, SOURCE = range(3)


class Stream(typing.NamedTuple):
    """The fields of a blob, in order."""

    version: int = 1
    role: int = JOINING
    mode: int = 0
    flags: int = 0
    blocks: int = 0
    zero: int = 0
    block_bytes: int = 0
    stream: int = 0
    rate_bits_per_s: int = 0
    bytes: int = 0
    lag_ms: int = 0
    zero_too: int = 0
    source_key: bytes = b""

    def options(self):
        return weft.EngineOptions(
            stream=self.stream, blocks=self.blocks, block_bytes=self.block_bytes, mode=weft.Mode(self.mode),
            rate_bits_per_s=self.rate_bits_per_s if self.mode else 0, lag_us=self.lag_ms * 1000, window=64,
            trust=weft.Identity(self.source_key) if self.flags & 1 else None, congestion=True,
            checksum_us=1_000_000 if self.flags & 2 else 0,
            datagram_overhead=weft.Sessions.OVERHEAD_BYTES + 28)


class Viewer(own_transport.Peer):
    """Learns the stream from the first session, and writes segments as they become readable."""

    loss = 0

    def __init__(self, context):
        super().__init__(context, weft.Identity.random(), 1, BLOB.pack(*Stream()))
        self.ends, self.output = None, sys.stdout.fileno()

    def opened(self, link, now_us):
        if not self.engine:
            self.learn(self.sessions.peer(link).blob)
        if self.engine:
            super().opened(link, now_us)

    def learn(self, blob):
        """Begins with the stream that the session's blob describes."""
        stream = Stream(*BLOB.unpack(blob)) if len(blob) == BLOB.size else Stream()
        if blob and blob[0] != Stream().version:
            self.end("another version of the peer is at that address: %d" % blob[0])
        elif stream.role not in (PEER, SOURCE):
            self.end("there is no stream at that address")
        else:
            try:
                self.start(stream.options())
            except (ValueError, weft.Error) as error:
                self.end("the stream at that address is of an unknown kind: %s" % error)
            self.sessions.set_blob(BLOB.pack(*stream._replace(role=PEER)))

    def hear(self, event, now_us):
        super().hear(event, now_us)
        if event.kind == weft.EventKind.NEIGHBOUR_LOST and not self.link:
            self.end("the source is lost: %s" % event.reason.name)

    def lost(self, event):
        super().lost(event)
        if not self.link:
            self.end("the session is lost: %s" % event.reason.name)

    def feed_or_drink(self, now_us):
        for _, data in self.engine.segments():
            try:
                self.write(data)
            except OSError as error:
                self.end("cannot write: %s" % error)
                return
        if self.engine.done:
            self.end(None)

    def write(self, data):
        """Writes at once, so that nothing is left to fail when the interpreter ends."""
        left = memoryview(data)
        while left:
            left = left[os.write(self.output, left):]

    def end(self, why):
        """The first reason counts; None: the stream is complete."""
        if not self.done.is_set():
            self.ends = why
            self.done.set()


async def watch(context, host, port):
    """Returns why it ended too early, or None."""
    viewer = Viewer(context)
    found = await viewer.loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    address = min(found, key=lambda one: one[0] != socket.AF_INET)[4]  # IPv4 first, like `weft peer`
    local = "::" if ":" in address[0] else "0.0.0.0"
    await viewer.loop.create_datagram_endpoint(lambda: viewer, local_addr=(local, 0))
    viewer.connect(address)
    await viewer.done.wait()
    if viewer.engine:
        viewer.engine.leave()
        viewer.turn()
    viewer.close()
    return viewer.ends


def main():
    if len(sys.argv) != 3 or not (sys.argv[2].isdecimal() and 0 < int(sys.argv[2]) < 1 << 16):
        sys.exit("usage: join.py ADDRESS PORT")
    try:
        with weft.Context() as context:
            why = asyncio.run(watch(context, sys.argv[1], int(sys.argv[2])))
    except (OSError, UnicodeError) as error:  # of the address
        why = "%s: %s" % (sys.argv[1], error)
    if why:
        sys.exit("join: %s" % why)


if __name__ == "__main__":
    main()
