# SPDX-License-Identifier: Apache-2.0
"""The streaming server's coder from Python."""

import asyncio
import gc
import random
import select
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import weft
from python_support import main

FAR_US = 60_000_000


def now_us():
    return time.monotonic_ns() // 1000


# A server's thread is in its clock.
IN_ITS_CLOCK = """
import gc
import threading
import weft

gc.disable()
main, entered, leave, freeing = threading.get_ident(), threading.Event(), threading.Event(), threading.Event()

def clock():
    if threading.get_ident() != main:
        entered.set()
        leave.wait(50)
        gc.collect()
    return 0

library, free = weft._context._c, weft._context._c.weft_server_free
library.weft_server_free = lambda at: (freeing.set(), free(at))
context, other = weft.Context(), weft.Context()
server = weft.Server([context, other], clock_us=clock)
shape = weft.SegmentId(1, 1, 128, 4096)
server.push(shape, bytes(shape.bytes), 0, 1 << 50)
server.request([(1, 1, 1, 4000)], 0)
server.process(0)
assert entered.wait(50)
"""


class Serving(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()
        self.shape = weft.SegmentId(3, 5, 16, 200)
        self.data = random.randbytes(self.shape.bytes - 9)

    def tearDown(self):
        self.context.close()

    def server(self, *contexts, clock_us=None, **options):
        return weft.Server(contexts or [self.context], weft.ServerOptions(**options),
                           **({"clock_us": clock_us} if clock_us else {}))

    def wait(self, server, wanted):
        """So many packets, and no more."""
        got = []
        while len(got) < wanted:
            server.process(now_us())
            self.assertTrue(select.select([server], [], [], 60)[0], "nothing within a minute")
            got += server.packets()
        self.assertEqual((len(got), server.take()), (wanted, []))
        return got

    def test_packets_for_clients_decode(self):
        for options in ({}, {"density": 0.5}, {"batch_packets": 7}):
            with self.server(**options) as server:
                server.push(self.shape, memoryview(self.data), now_us(), now_us() + FAR_US)
                self.assertTrue(server.has(3, 5))
                self.assertFalse(server.has(3, 6))
                server.request([weft.ServerRequest(3, 5, client, 40) for client in (8, 1 << 63)], now_us())
                packets = self.wait(server, 80)
                for client in (8, 1 << 63):
                    decoder = weft.Decoder(self.context, self.shape)
                    for packet in packets:
                        self.assertEqual((packet.stream, packet.segment, packet.error), (3, 5, None))
                        if packet.client == client:
                            decoder.add(packet.datagram)
                    self.assertEqual(decoder.read(len(self.data)), self.data)
                statistics = server.statistics
                self.assertEqual((statistics.segments, statistics.ready_bytes, statistics.pending_packets), (1, 0, 0))
                self.assertEqual([lane.packets for lane in statistics.lanes], [80])
                self.assertEqual(statistics.lanes[0].backend, self.context.backend)
                self.assertEqual(server.predict_lane(self.shape, 100), 0)

    def test_what_waits_is_withdrawn_and_bounded(self):
        with self.server(gather_us=500, pending_packets=100) as server:
            server.push(self.shape, self.data, 0, 1000)
            server.request([(3, 5, 1, 60), (3, 5, 1 << 63, 40)], 0)
            with self.assertRaises(weft.Error) as refused:
                server.request([(3, 5, 2, 1)], 0)
            self.assertEqual((refused.exception.name, refused.exception.accepted), ("WEFT_E_BUFFER", 0))
            server.cancel(7)
            server.cancel_segment(1 << 63, stream=3, segment=6)
            self.assertEqual(server.statistics.pending_packets, 100)
            server.cancel_segment(1 << 63, stream=3, segment=5)
            self.assertEqual(server.statistics.pending_packets, 60)
            server.request([(3, 5, 1 << 63, 40)], 0)
            server.cancel(1 << 63)
            self.assertEqual(server.statistics.pending_packets, 60)
            server.drop(3, 5)
            with self.assertRaises(weft.Error) as refused:
                server.request([(3, 5, 2, 1)], 0)
            self.assertEqual(refused.exception.name, "WEFT_E_FOREIGN")
            self.assertTrue(server.has(3, 5))
            server.process(500)
            self.assertFalse(server.has(3, 5))
            self.assertEqual([packet.client for packet in self.wait(server, 60)], [1] * 60)
            with self.assertRaisesRegex(weft.Error, "segment 5 of stream 3") as refused:
                server.drop(3, 5)
            self.assertEqual(refused.exception.name, "WEFT_E_FOREIGN")

    def test_in_asyncios_loop(self):
        async def run(server):
            loop, decoder, done = asyncio.get_running_loop(), weft.Decoder(self.context, self.shape), asyncio.Event()

            def readable():
                for packet in server.packets():
                    decoder.add(packet.datagram)
                if decoder.complete:
                    done.set()

            loop.add_reader(server, readable)
            server.request([(3, 5, 1, 40)], now_us())
            server.process(now_us())
            await asyncio.wait_for(done.wait(), 60)
            loop.remove_reader(server)
            return decoder.read(len(self.data))

        with self.server() as server:
            server.push(self.shape, self.data, now_us(), now_us() + FAR_US)
            self.assertEqual(asyncio.run(run(server)), self.data)

    def test_requests_are_gathered_and_segments_expire(self):
        with self.server(gather_us=1000, clock_us=lambda: 0, repeatable=True) as server:
            self.assertIsNone(server.deadline_us)
            server.push(self.shape, self.data, 10, 5000)
            self.assertEqual(server.deadline_us, 5000)
            server.request([(3, 5, 1, 2)], 20)
            self.assertEqual(server.deadline_us, 1020)
            server.process(5000)
            self.assertFalse(server.has(3, 5))
            self.assertEqual(server.statistics.expired, 1)

    def test_what_is_refused(self):
        server = self.server(memory_bytes=self.shape.bytes)
        server.push(self.shape, self.data, 0, FAR_US)
        other = weft.SegmentId(3, 6, 16, 200)
        large = weft.SegmentId(3, 7, 17, 200)
        for call, kind, text in (
                (lambda: server.push(self.shape, self.data, 0, FAR_US), weft.Error, "WEFT_E_STATE"),
                (lambda: server.push(large, self.data, 0, FAR_US), weft.Error, "WEFT_E_NOMEM"),
                (lambda: server.push(other, b"", 0, FAR_US), weft.Error, "WEFT_E_ARGUMENT.*0 bytes as"),
                (lambda: server.push(other, self.data, 5, 5), weft.Error, "WEFT_E_ARGUMENT"),
                (lambda: server.push(other, self.data, -1, 5), ValueError, "a time"),
                (lambda: server.push((3, 6, 16, 200), self.data, 0, 5), TypeError, "SegmentId"),
                (lambda: server.request([(3, 5, 1, 0)], 0), weft.Error, "WEFT_E_ARGUMENT"),
                (lambda: server.request([(3, 5, 1, 1 << 32)], 0), ValueError, "packets is"),
                (lambda: server.request([(3, 5, 1)], 0), TypeError, "packets"),
                (lambda: server.take(-1), ValueError, "most is -1"),
                (lambda: weft.Server([]), TypeError, "list of Contexts"),
                (lambda: weft.Server([self.context, None]), TypeError, "list of Contexts"),
                (lambda: weft.Server([self.context] * 17), weft.Error, "WEFT_E_ARGUMENT"),
                (lambda: self.server(density=2), ValueError, "density"),
                (lambda: self.server(gather_us=-1), ValueError, "gather_us")):
            with self.assertRaisesRegex(kind, text):
                call()
        with self.assertRaisesRegex(weft.Error, "WEFT_E_FOREIGN.*segment=9") as raised:
            server.request([(3, 5, 1, 1), (3, 9, 1, 1), (3, 5, 1, 1)], 0)
        self.assertEqual(raised.exception.accepted, 1)
        server.close()
        with self.assertRaisesRegex(ValueError, "Server is closed"):
            server.fileno()

    def test_whichever_context_closes_first_closes_it(self):
        for first in (0, 1):
            contexts = [weft.Context(), weft.Context(backend="scalar")]
            server = self.server(*contexts, contexts[1], fall_over=True)
            server.push(self.shape, self.data, 0, FAR_US)
            server.request([(3, 5, 1, 3000)], 0)
            server.process(0)
            contexts[first].close()
            with self.assertRaisesRegex(ValueError, "Server is closed"):
                server.take()
            contexts[1 - first].close()
            server.close()
        contexts = [weft.Context(), weft.Context()]
        self.server(*contexts).close()
        for context in contexts:
            context.close()

    def test_one_that_a_context_closed_stays_closed(self):  # though others take its place in memory
        lost = []
        for _ in range(3):
            with weft.Context() as context:
                lost.append(self.server(self.context, context))
        others = [self.server() for _ in lost]
        for server in lost:
            with self.assertRaisesRegex(ValueError, "Server is closed"):
                server.fileno()
            server.close()
        for server in others:
            self.assertGreaterEqual(server.fileno(), 0)

    def test_nothing_stays_of_it(self):
        gc.collect()
        gc.disable()
        try:
            def clock():
                return now_us()

            seen = weakref.ref(clock)
            server = self.server(clock_us=clock)
            server.push(self.shape, self.data, 0, FAR_US)
            del clock, server
            self.assertIsNone(seen())
        finally:
            gc.enable()

    def test_a_clock_that_fails(self):
        fails = threading.Event()

        def clock():
            if fails.is_set():
                raise KeyError("no time")
            return now_us()

        server = self.server(clock_us=clock)
        server.push(self.shape, self.data, 0, FAR_US)
        readable = server.fileno()

        def fail():  # in the library's thread
            server.request([(3, 5, 1, 5)], 0)
            fails.set()
            server.process(0)
            self.assertTrue(select.select([readable], [], [], 60)[0], "nothing within a minute")
            fails.clear()

        for call in (server.take, lambda: server.request([(3, 5, 1, 9)], 0)):
            fail()
            with self.assertRaisesRegex(KeyError, "no time"):  # when it is heard of
                call()
            self.assertEqual(server.statistics.pending_packets, 0)
            self.assertEqual([packet.error for packet in server.packets()], [None] * 5)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            self.server(clock_us=lambda: 1 // 0)

    def test_a_context_that_two_threads_cannot_close_stays_open(self):  # and frees what it has another time
        main, failed, making, leave = threading.get_ident(), threading.Event(), threading.Event(), threading.Event()

        def close():
            if threading.get_ident() != main and not failed.is_set():
                while self.context._at:  # the main thread is to be the first
                    time.sleep(0.001)
                threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGUSR1)).start()
                try:
                    self.context.close()
                finally:
                    failed.set()
            return now_us()

        def be_made():  # both wait for that
            making.set()
            leave.wait(60)
            return now_us()

        server = self.server(clock_us=close)
        maker = threading.Thread(target=lambda: self.server(clock_us=be_made).close())
        maker.start()
        self.assertTrue(making.wait(60))
        server.push(self.shape, self.data, 0, FAR_US)
        server.request([(3, 5, 1, 5)], 0)
        server.process(0)
        before = signal.signal(signal.SIGUSR1, lambda *unused: self.fail("interrupted"))
        with self.assertRaisesRegex(AssertionError, "interrupted"):
            self.context.close()
        signal.signal(signal.SIGUSR1, before)
        leave.set()
        maker.join()
        self.assertTrue(failed.wait(60))
        self.assertEqual(self.context.backend, weft.Context().backend)
        with self.assertRaisesRegex(RuntimeError, "must not use what has called it"):
            server.close()

    def test_a_clock_must_not_close_what_makes_the_server(self):
        other = weft.Context()
        for context in (self.context, other):
            with self.assertRaisesRegex(RuntimeError, "must not use what has called it"):
                self.server(self.context, other, clock_us=context.close)
        self.server(self.context, other).close()
        other.close()

    def test_a_clock_must_not_use_its_server(self):  # in the server's threads, neither
        for use in (lambda: server.close(), lambda: server.has(3, 5), lambda: self.context.close()):
            ask = threading.Event()

            def clock(use=use, ask=ask):
                if ask.is_set():
                    ask.clear()
                    use()
                return now_us()

            server = self.server(clock_us=clock)
            server.push(self.shape, self.data, 0, FAR_US)
            server.request([(3, 5, 1, 5)], 0)
            ask.set()
            with self.assertRaisesRegex(RuntimeError, "must not use what has called it"):
                server.process(0)
                select.select([server], [], [], 60)
                server.close()
            server.close()

    def test_it_is_gone_while_it_is_freed(self):  # by its context, in another thread: its clock is asked on
        program = IN_ITS_CLOCK + """
closer = threading.Thread(target=context.close)
closer.start()
assert freeing.wait(50)
del server
leave.set()
closer.join()
"""
        self.assertEqual(self.ended(program), (0, ""))

    def test_it_is_closed_when_a_close_returns(self):  # also a second one; and contexts are not freed before it
        closed = IN_ITS_CLOCK + """
ended = []

def close(*things):
    for thing in things:
        thing.close()
        ended.append(thing)

threads = [threading.Thread(target=close, args=things) for things in ({})]
threads[0].start()
assert freeing.wait(50)
{}
threads[1].start()
threads[1].join(0.2)
early = list(ended)
leave.set()
for thread in threads:
    thread.join()
assert not early, early
"""
        for things, then in (("(server,), (server, other)", "pass"), ("(context,), (server, other)", "pass"),
                             ("(context,), (other,)", "del server")):
            self.assertEqual(self.ended(closed.format(things, then)), (0, ""), things)

    def test_the_collector_comes_in_its_clock(self):  # in a thread that freeing it waits for
        program = IN_ITS_CLOCK + """
ring = [server, context]
ring.append(ring)
del server, context, ring
leave.set()
assert freeing.wait(50)
"""
        self.assertEqual(self.ended(program), (0, ""))

    def test_a_program_that_ends_with_one_open(self):
        program = """
import weft
context = weft.Context()
server = weft.Server([context])
shape = weft.SegmentId(1, 1, 128, 4096)
server.push(shape, bytes(shape.bytes), 0, 1 << 50)
server.request([(1, 1, 1, 4000)], 0)
server.process(0)
"""
        for _ in range(3):
            self.assertEqual(self.ended(program), (0, ""))

    def test_a_program_that_ends_with_clocks_that_fail(self):  # each is waited for, whatever another raises
        program = """
import weft

def clock():
    return 1 // good

def serve():
    server = weft.Server([context], clock_us=clock)
    server.push(shape, bytes(shape.bytes), 0, 1 << 50)
    server.request([(1, 1, 1, 4000)], 0)
    return server

good, context, shape = 1, weft.Context(), weft.SegmentId(1, 1, 128, 4096)
servers = [serve() for _ in range(3)]
good = 0
for server in servers:
    try:
        server.process(0)
    except ZeroDivisionError:
        pass  # the first of its thread's; there are more
"""
        returncode, said = self.ended(program)
        self.assertEqual((returncode, said.count("ZeroDivisionError: ")), (0, 1), said)  # a server left open has its own

    def test_a_fork_frees_nothing_of_its_parents(self):  # whose threads it lacks
        program = """
import os
import signal
import weft

context = weft.Context(threads=2)
server = weft.Server([context, weft.Context()])
child = os.fork()
signal.alarm(50)
if child == 0:
    {}
    own = weft.Context(threads=2)
    weft.Server([own])
else:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        for first in ("pass", "server.close()", "context.close()", "del server, context"):
            self.assertEqual(self.ended(program.format(first)), (0, ""), first)

    def ended(self, program):
        """How, and what it said."""
        ended = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False, timeout=60)
        return ended.returncode, ended.stderr.decode()


if __name__ == "__main__":
    main()
