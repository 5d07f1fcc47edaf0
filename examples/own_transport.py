# SPDX-License-Identifier: Apache-2.0
"""Peers in Python over a transport of your own: here asyncio's UDP.

An engine takes datagrams and the time, and gives datagrams and events; below it, sessions encrypt and
authenticate. A source, a relay and a viewer, each of which knows only the one before it, pass on a signed
stream. One datagram in ten is lost. Prints only the outcome.
"""

import asyncio
import contextlib
import random
import sys

import weft

LOSS = 0.1
UPLOAD_BITS_PER_S = 40_000_000
SEGMENTS = 40


class Peer(asyncio.DatagramProtocol):
    """A node with one stream, which the source gives from begin() on and the others collect in `received`."""

    loss = LOSS

    def __init__(self, context, identity, neighbours, blob=b""):
        self.loop, self.timer, self.transport = asyncio.get_running_loop(), None, None
        self.context, self.engine, self.source_key = context, None, None
        self.sessions = weft.Sessions(context, identity, self.now_us(), weft.SessionsOptions(blob=blob))
        self.link, self.neighbour = {}, {}  # the link of each neighbour, and the neighbour of each link
        self.source, self.stream, self.received = False, memoryview(b""), bytearray()
        self.missing, self.met, self.done = neighbours, asyncio.Event(), asyncio.Event()

    def now_us(self):
        return int(self.loop.time() * 1e6)

    def start(self, options, source=False):
        """Makes the engine, once it is known what the stream is."""
        self.source = source
        self.engine = weft.Engine(self.context, options, source=source, upload_bits_per_s=UPLOAD_BITS_PER_S)
        self.source_key = options.trust.public_key if options.trust else None

    def begin(self, stream):
        self.stream = memoryview(stream)
        self.turn()

    def connection_made(self, transport):
        self.transport = transport

    def connect(self, address):
        self.sessions.open(address, self.now_us())
        self.turn()

    def datagram_received(self, data, addr):
        now_us, sealed = self.now_us(), None
        with contextlib.suppress(weft.Error):  # refused, and counted in the statistics; it may be from anyone
            sealed = self.sessions.input(addr, data, now_us)
        self.hear_sessions(now_us)  # this datagram may have opened its session
        if sealed is not None and sealed[0] in self.neighbour:
            with contextlib.suppress(weft.Error):
                self.engine.input(self.neighbour[sealed[0]], sealed[1], now_us)
        self.turn()

    def turn(self):
        """Called after any input and when something is due; schedules the next turn even after an error."""
        try:
            self.act(self.now_us())
        finally:
            self.come_again()

    def act(self, now_us):
        """Handles events, what can be read, and datagrams to send."""
        if self.engine:
            self.engine.tick(now_us)
            for event in self.engine.events():
                self.hear(event, now_us)
        self.sessions.tick(now_us)
        self.hear_sessions(now_us)
        if self.engine:
            self.feed_or_drink(now_us)
            self.send_bursts(now_us)
        for address, datagram in self.sessions.output():
            self.send(datagram, address)

    def hear(self, event, now_us):
        if event.kind == weft.EventKind.NEIGHBOUR_OPEN:
            self.missing -= 1
            if self.missing == 0:
                self.met.set()
        elif event.kind == weft.EventKind.NEIGHBOUR_LOST:
            link = self.link.pop(event.neighbour)
            del self.neighbour[link]
            self.sessions.close_link(link, now_us)

    def hear_sessions(self, now_us):
        for event in self.sessions.events():
            if event.kind == weft.SessionEventKind.OPENED:
                self.opened(event.link, now_us)
            elif event.kind == weft.SessionEventKind.LOST:
                self.lost(event)

    def opened(self, link, now_us):
        peer = self.sessions.peer(link)
        try:
            number = self.engine.add_neighbour(now_us, is_source=peer.public_key == self.source_key,
                                               dialled=peer.initiated)
        except weft.Error:  # there is no room: say so, or the other side would wait
            self.seal_and_send(link, [self.engine.refusal()], now_us)
            self.sessions.close_link(link, now_us)
            return
        self.link[number], self.neighbour[link] = link, number

    def lost(self, event):
        if event.link in self.neighbour:
            number = self.neighbour.pop(event.link)
            del self.link[number]
            self.engine.remove_neighbour(number)

    def feed_or_drink(self, now_us):
        if not self.source:
            for _, data in self.engine.segments():
                self.received += data
            if self.engine.done:
                self.done.set()
            return
        size = self.engine.options.segment_bytes
        while self.stream and self.engine.source_ready:
            self.engine.put(self.stream[:size], now_us)
            self.stream = self.stream[size:]

    def send_bursts(self, now_us):
        for burst in self.engine.output(now_us):
            self.seal_and_send(self.link[burst.neighbour], burst.datagrams, now_us)

    def seal_and_send(self, link, datagrams, now_us):
        address = self.sessions.peer(link).address
        for datagram in self.sessions.seal(link, datagrams, now_us):
            self.send(datagram, address)

    def send(self, datagram, address):
        if random.random() >= self.loss:
            self.transport.sendto(datagram, address)

    def come_again(self):
        wanted = [self.sessions.deadline_us, self.engine.deadline_us if self.engine else None]
        due_us = [at_us for at_us in wanted if at_us is not None]
        if self.timer:
            self.timer.cancel()
        self.timer = self.loop.call_at(min(due_us) / 1e6, self.turn) if due_us else None

    def close(self):
        if self.timer:
            self.timer.cancel()
        self.transport.close()


async def everyone(events):
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in events)), 60)


async def run(context, stream):
    """Returns what the relay and the viewer received."""
    source = weft.Identity.random()
    peers = []
    for i, neighbours in enumerate((1, 2, 1)):
        # Receivers know the source's public key from wherever they learned of the stream.
        who, trust = (source, source) if i == 0 else (weft.Identity.random(), weft.Identity(source.public_key))
        options = weft.EngineOptions(stream=1, blocks=32, block_bytes=1024, neighbours_max=4, trust=trust,
                                     datagram_overhead=weft.Sessions.OVERHEAD_BYTES + 28)
        peer = Peer(context, who, neighbours)
        peer.start(options, source=i == 0)
        await peer.loop.create_datagram_endpoint(lambda peer=peer: peer, local_addr=("127.0.0.1", 0))
        if peers:
            peer.connect(peers[-1].transport.get_extra_info("sockname"))
        peers.append(peer)
    await everyone(peer.met for peer in peers)  # latecomers would miss segments already dropped
    peers[0].begin(stream)
    await everyone(peer.done for peer in peers[1:])
    for peer in peers:
        peer.close()
    return [peer.received for peer in peers[1:]]


def main():
    stream = random.randbytes(SEGMENTS * 32 * 1024 - 123)
    with weft.Context() as context:
        same = [bytes(received) == stream for received in asyncio.run(run(context, stream))] == [True, True]
    print("every byte came back" if same else "bytes differ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
