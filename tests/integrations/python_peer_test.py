# SPDX-License-Identifier: Apache-2.0
"""The peer's engine from Python, in virtual time."""

import array
import gc
import random
import sys
import threading
import unittest

import weft
from python_support import key, main

DELAY_US = 5000


class Network:
    """Engines as neighbours of each other, over links that delay and lose."""

    def __init__(self, loss=0.0):
        self.engines, self.way, self.now_us, self.loss = [], [], 0, loss
        self.number, self.events, self.received, self.refused = {}, [], [], set()

    def add(self, engine):
        self.engines.append(engine)
        self.events.append([])
        self.received.append(bytearray())
        return len(self.engines) - 1

    def meet(self, a, b, **options):
        for here, there in ((a, b), (b, a)):
            self.number[here, there] = self.engines[here].add_neighbour(self.now_us, **options)

    def turn(self, index):
        engine = self.engines[index]
        engine.tick(self.now_us)
        self.events[index] += engine.events()
        who = {number: there for (here, there), number in self.number.items() if here == index}
        for neighbour, datagrams in engine.output(self.now_us):
            for datagram in datagrams:
                if random.random() >= self.loss:
                    self.way.append((self.now_us + DELAY_US, index, who[neighbour], datagram))

    def step(self, latest_us=None):
        due = [engine.deadline_us for engine in self.engines] + [self.way[0][0] if self.way else None, latest_us]
        self.now_us = max(self.now_us, min(at_us for at_us in due if at_us is not None))
        while self.way and self.way[0][0] <= self.now_us:
            _, sender, receiver, datagram = self.way.pop(0)
            try:
                self.engines[receiver].input(self.number[receiver, sender], datagram, self.now_us)
            except weft.Error as error:  # such as what comes before a greeting that was lost
                self.refused.add(error.name)
        for index in range(len(self.engines)):
            self.turn(index)

    def drink(self):
        for engine, received in zip(self.engines[1:], self.received[1:]):
            for _, data in engine.segments():
                received += data

    def run(self, until, feed=lambda: None, limit_us=60_000_000):
        while not until():
            feed()
            self.step()
            self.drink()
            assert self.now_us < limit_us, "%d us, and still not there" % self.now_us


class Streams(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()

    def tearDown(self):
        self.context.close()

    def options(self, **changed):
        return weft.EngineOptions(**{"stream": 5, "blocks": 8, "block_bytes": 200, "window": 8,
                                     "neighbours_max": 3, **changed})

    def row(self, options, count=3, trusted=None, source=None, loss=0.0):
        """A source and others, each the neighbour of the next."""
        network = Network(loss)
        for i in range(count):
            network.add(weft.Engine(self.context, options, source=i == 0, key=key(),
                                    upload_bits_per_s=10_000_000, **(source or {} if i == 0 else trusted or {})))
        for i in range(count - 1):
            network.meet(i, i + 1)
        return network

    def bulk(self, options, loss=0.0):
        data = random.randbytes(options.segment_bytes * 11 + 77)
        network, sent = self.row(options, loss=loss), 0

        def feed():
            nonlocal sent
            while sent < len(data) and network.engines[0].source_ready:
                network.engines[0].put(memoryview(data)[sent:sent + options.segment_bytes], network.now_us)
                sent += options.segment_bytes

        network.run(lambda: all(engine.done for engine in network.engines[1:]), feed)
        self.assertEqual([bytes(r) == data for r in network.received[1:]], [True, True])
        self.assertLessEqual(network.refused, {"WEFT_E_STATE"} if loss else set())
        return network

    def test_a_stream_through_a_relay_with_loss(self):
        network = self.bulk(self.options(), loss=0.1)
        viewer = network.engines[2]
        self.assertEqual([e for e in network.events[2] if e.kind == weft.EventKind.NEIGHBOUR_OPEN],
                         [weft.Event(weft.EventKind.NEIGHBOUR_OPEN, neighbour=0, address=b"")])
        decoded = [e.segment for e in network.events[2] if e.kind == weft.EventKind.DECODED]
        self.assertEqual(sorted(decoded), list(range(12)))
        self.assertEqual(viewer.statistics.segments, 12)
        self.assertGreaterEqual(viewer.statistics.received_innovative, 11 * 8)
        self.assertTrue(viewer.neighbour_statistics(0).open)
        self.assertIsNone(viewer.readable)
        self.assertIsNone(viewer.read())
        self.assertFalse(viewer.release())
        self.assertGreater(viewer.memory_bytes, 1000)

    def test_without_code(self):
        self.bulk(self.options(codec="blocks", policy="rarest"))

    def test_signed(self):
        identity = weft.Identity.from_seed(key())
        self.assertEqual(identity.public_key, weft.Identity(identity.public_key).public_key)
        self.assertNotIn(identity.secret_key.hex(), repr(identity))
        network = self.bulk(self.options(trust=identity), loss=0.1)
        self.assertGreater(network.engines[2].statistics.signatures, 11)

    def test_on_demand_from_any_segment(self):
        options = self.options(mode=weft.Mode.VOD, rate_bits_per_s=2_000_000, startup_us=100_000)
        data = random.randbytes(options.segment_bytes * 20)
        network = self.row(options, 2, trusted={"start": 12}, source={"stream_bytes": len(data)})
        buffered = [network.engines[1].buffered]

        def feed():
            buffered.append(network.engines[1].buffered)
            for event in network.events[0]:
                if event.kind == weft.EventKind.LOAD:
                    at = event.segment * options.segment_bytes
                    network.engines[0].load(event.segment, data[at:at + options.segment_bytes], network.now_us)
            network.events[0].clear()

        network.run(lambda: network.engines[1].done, feed)
        self.assertEqual(network.received[1], data[12 * options.segment_bytes:])
        self.assertTrue(buffered[0] == 0 < max(buffered) <= 8, buffered)
        self.assertGreater(network.engines[1].play_time_us(13), network.engines[1].play_time_us(12))
        network.received[1].clear()
        network.engines[1].seek(18, network.now_us)
        network.run(lambda: network.engines[1].done, feed)
        self.assertEqual(network.received[1], data[18 * options.segment_bytes:])
        network.engines[1].leave()
        network.run(lambda: any(e.kind == weft.EventKind.NEIGHBOUR_LOST for e in network.events[0]))
        self.assertEqual(network.events[0][-1].reason, weft.LostReason.LEFT)

    def test_live_with_the_default_window_and_a_short_one(self):
        for rate, named in ((4_000_000, {}), (2_000_000, {"window": 8})):
            options = weft.EngineOptions(stream=5, blocks=32, block_bytes=1000, mode=weft.Mode.LIVE,
                                         neighbours_max=3, rate_bits_per_s=rate, **named)
            data = random.randbytes(options.segment_bytes * 70 + 77)
            network, sent = self.row(options), 0
            while not all(engine.done for engine in network.engines[1:]):
                if sent < len(data) and sent * 8_000_000 // rate <= network.now_us:
                    network.engines[0].put(memoryview(data)[sent:sent + options.segment_bytes], network.now_us)
                    sent += options.segment_bytes
                network.step(sent * 8_000_000 // rate if sent < len(data) else None)
                network.drink()
                self.assertLess(network.now_us, 30_000_000)
            self.assertEqual([bytes(r) == data for r in network.received[1:]], [True, True])
            held_us = 3_000_000 if not named else 6 * options.segment_bytes * 8_000_000 // rate
            self.assertEqual([e.statistics.lag_us for e in network.engines[1:]], [held_us] * 2)

    def test_a_receiver_reads_back(self):
        options = self.options(trust=weft.Identity.from_seed(key()), ahead=2)
        data = random.randbytes(options.segment_bytes * 20 + 9)
        network = self.row(options, 2, source={"stream_bytes": len(data)}, trusted={"rereads": True})
        source, first = network.engines
        with self.assertRaisesRegex(weft.Error, "E_STATE"):
            source.put(data[:options.segment_bytes], network.now_us)  # it loads
        asked = []

        def feed():
            for engine, events in zip(network.engines, network.events):
                for event in events:
                    if event.kind == weft.EventKind.LOAD:
                        at = event.segment * options.segment_bytes
                        asked.append(engine)
                        engine.load(event.segment, data[at:at + options.segment_bytes], network.now_us)
                events.clear()

        network.run(lambda: first.done, feed)
        late = network.add(weft.Engine(self.context, options, key=key()))
        network.meet(1, late)
        network.run(lambda: network.engines[late].done, feed)
        self.assertEqual([bytes(r) == data for r in network.received[1:]], [True, True])
        self.assertEqual((asked.count(source), network.engines[late] in asked), (21, False))
        self.assertGreaterEqual(asked.count(first), 21 - 8)
        first.load(3, None, network.now_us)  # it cannot any more: asked for nothing, and no mistake
        with self.assertRaisesRegex(weft.Error, "E_ARGUMENT"):
            source.load(3, None, network.now_us)

    def test_a_lost_farewell_is_said_again(self):
        network = self.row(self.options(), 2)
        source, fetcher = network.engines
        source.put(b"all of it", 0)
        self.assertFalse(fetcher.farewell_again())
        network.run(lambda: fetcher.done)
        network.loss = 1
        network.way.clear()
        until_us = network.now_us + 200_000
        network.run(lambda: network.now_us >= until_us)
        self.assertEqual((fetcher.finished, source.finished), (True, False))
        network.loss = 0
        self.assertTrue(fetcher.farewell_again())
        network.turn(1)
        network.run(lambda: source.finished, limit_us=until_us + 50_000)

    def test_addresses_to_dial(self):
        options = self.options(neighbours_target=2, addresses_max=8)
        engine = weft.Engine(self.context, options, address=b"me")
        self.assertIsNone(engine.deadline_us)
        for address in (b"me", b"you", b"you", bytearray(b"they")):
            engine.add_address(address)
        engine.add_neighbour(0, address=b"she")
        dialled = set()
        for now_us in range(0, 20_000_000, 500_000):
            engine.tick(now_us)
            dialled |= {e.address for e in engine.events() if e.kind == weft.EventKind.DIAL}
            engine.dial_failed(b"you")
        self.assertEqual(dialled, {b"you", b"they"})
        self.assertGreater(len(engine.refusal()), 3)
        self.assertGreater(len(engine.refusal(origin=(1, 65535))), 3)
        with self.assertRaises(ValueError):
            engine.refusal(origin=(65536, 0))
        self.assertEqual(engine.add_neighbour(now_us, address=b"it", origin=(1, 2)), 0)  # she has fallen silent

    def test_who_moves_is_told_of_at_the_new_address(self):
        engine = weft.Engine(self.context, self.options(neighbours_target=2, addresses_max=8), address=b"me")
        number = engine.add_neighbour(0, address=b"she")
        engine.move_neighbour(number, b"she, elsewhere")
        with self.assertRaisesRegex(weft.Error, "WEFT_E_STATE"):
            engine.move_neighbour(number + 1, b"nobody")
        with self.assertRaisesRegex(ValueError, "at most"):
            engine.move_neighbour(number, bytes(21))

    def test_the_same_key_gives_the_same_run(self):
        def sent(chance):
            engine = weft.Engine(self.context, self.options(), source=True, key=chance)
            engine.put(bytes(1600), 0)
            engine.add_neighbour(0)
            return [list(engine.output(now_us)) for now_us in range(0, 1_000_000, 50_000)]

        chance = key()
        self.assertEqual(sent(chance), sent(chance))


class Mistakes(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()
        self.options = weft.EngineOptions(stream=5, blocks=8, block_bytes=200)

    def test_options_that_are_none(self):
        def engine(context=self.context, own=None, **changed):
            return weft.Engine(context, weft.EngineOptions(**{"stream": 5, "blocks": 8, "block_bytes": 200, **changed}),
                               **(own or {}))
        for call, kind, text in (
                (lambda: engine(blocks=0), weft.Error, "WEFT_E_ARGUMENT.*blocks=0"),
                (lambda: engine(window=5000), weft.Error, "window=5000"),
                (lambda: engine(mode=weft.Mode.LIVE), weft.Error, "Mode.LIVE"),
                (lambda: engine(mode=7), weft.Error, "mode=7"),
                (lambda: engine(stream=1 << 64), ValueError, "stream is"),
                (lambda: engine(blocks=1 << 32), ValueError, "blocks is"),
                (lambda: engine(patience_us=-1), ValueError, "patience_us is -1"),
                (lambda: engine(timers=weft.EngineTimers(map_us=1 << 63)), ValueError, "map_us"),
                (lambda: engine(timers=weft.EngineTimers(map_us=1 << 55)), weft.Error, "map_us"),
                (lambda: engine(block_bytes=1.5), TypeError, "integer"),
                (lambda: engine(codec="fountain"), ValueError, "no codec fountain, but rlnc, blocks"),
                (lambda: engine(policy="pop"), ValueError, "no policy pop, but push"),
                (lambda: engine(trust="me"), TypeError, "trust is an Identity"),
                (lambda: engine(own={"key": b"short"}), ValueError, "32 bytes"),
                (lambda: engine(own={"address": bytes(21)}), ValueError, "20 bytes at most"),
                (lambda: engine(own={"address": 5}), TypeError, "bytes-like"),
                (lambda: engine(own={"start": -1}), ValueError, "start is -1"),
                (lambda: engine(context=self.options), TypeError, "made from a Context"),
                (lambda: weft.Engine(self.context, self.context), TypeError, "EngineOptions"),
                (lambda: weft.Identity(b"x"), ValueError, "public key has 32"),
                (lambda: weft.Identity.from_seed(b"x"), ValueError, "seed has 32"),
                (lambda: weft.Identity.from_seed(array.array("H", bytes(64))), ValueError, "seed has 32 bytes, not 64")):
            with self.assertRaisesRegex(kind, text):
                call()

    def test_calls_that_are_wrong(self):
        viewer, source = weft.Engine(self.context, self.options), weft.Engine(self.context, self.options, source=True)
        number = viewer.add_neighbour(0)
        for call, name in (
                (lambda: viewer.input(number, b"\x09nonsense", 0), "WEFT_E_VERSION"),
                (lambda: viewer.input(number, b"", 0), "WEFT_E_MALFORMED"),
                (lambda: viewer.input(7, b"\x01\x10", 0), "WEFT_E_STATE"),
                (lambda: viewer.input(1 << 40, b"\x01\x10", 0), "WEFT_E_ARGUMENT"),
                (lambda: viewer.put(bytes(1600), 0), "WEFT_E_STATE"),
                (lambda: source.put(bytes(1601), 0), "WEFT_E_ARGUMENT"),
                (lambda: source.load(0, bytes(1600), 0), "WEFT_E_STATE"),
                (lambda: source.readable, "WEFT_E_STATE"),
                (lambda: viewer.end(0), "WEFT_E_STATE"),
                (lambda: viewer.remove_neighbour(9), "WEFT_E_STATE"),
                (lambda: viewer.neighbour_statistics(9), "WEFT_E_STATE"),
                (lambda: viewer.seek(1 << 50, 0), "WEFT_E_ARGUMENT")):
            with self.assertRaisesRegex(weft.Error, name):
                call()
        for call in (lambda: viewer.tick(-1), lambda: viewer.tick((1 << 60) + 1), lambda: viewer.output(1 << 64),
                     lambda: viewer.input(-1, b"", 0), lambda: viewer.seek(-1, 0)):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(TypeError):
            viewer.tick(0.5)
        viewer.close()
        with self.assertRaisesRegex(ValueError, "Engine is closed"):
            viewer.tick(0)

    def test_what_fails_to_be_made_is_freed_and_what_is_made_keeps_its_context(self):
        for _ in range(10):
            with self.assertRaises(weft.Error):
                weft.Engine(self.context, weft.EngineOptions(stream=5, blocks=8, block_bytes=0))
        engine = weft.Engine(weft.Context(), self.options, source=True)
        gc.collect()
        engine.put(bytes(1600), 0)
        engine.add_neighbour(0)
        self.assertEqual(len(list(engine.output(0))), 1)
        self.context.close()
        with self.assertRaisesRegex(ValueError, "Context is closed"):
            weft.Engine(self.context, self.options)


class Callbacks(unittest.TestCase):
    """Signatures of one's own: what the library calls stays, and what it raises is raised."""

    def setUp(self):
        self.context = weft.Context()

    def engine(self, trust, source=True, **own):
        return weft.Engine(self.context, weft.EngineOptions(stream=5, blocks=4, block_bytes=100, trust=trust),
                           source=source, key=key(), **own)

    def signing_when_made(self, sign):
        """A source that signs its stream's end while it is made."""
        return weft.Engine(self.context, weft.EngineOptions(
            stream=5, blocks=4, block_bytes=100, mode=weft.Mode.VOD, rate_bits_per_s=1000,
            trust=weft.Trust(verify=None, sign=sign)), source=True, stream_bytes=1000)

    def pair(self, sign, verify):
        network = Network()
        network.add(self.engine(weft.Trust(verify=None, sign=sign)))
        network.add(self.engine(weft.Trust(verify=verify), source=False))
        network.meet(0, 1)
        return network

    def test_they_sign_and_verify(self):
        signed, checked = [], []

        def sign(text):
            signed.append(text)
            return bytes(64)

        def verify(text, signature):
            checked.append(text)
            return signature == bytes(64)

        network = self.pair(sign, verify)
        del sign, verify
        gc.collect()
        data = random.randbytes(1500)
        for at in range(0, 1500, 400):
            network.engines[0].put(data[at:at + 400], 0)
        network.run(lambda: network.engines[1].done)
        self.assertEqual(network.received[1], data)
        self.assertTrue(checked)
        self.assertLessEqual(set(checked), set(signed))

    def test_a_false_signature_is_none(self):
        network = self.pair(lambda text: bytes(64), lambda text, signature: False)
        network.engines[0].put(bytes(400), 0)
        for _ in range(30):
            network.step()
        self.assertEqual(network.refused, {"WEFT_E_FOREIGN"})
        self.assertGreater(network.engines[1].statistics.manifests_refused, 0)

    def test_what_they_raise_is_raised_once_and_the_engine_goes_on(self):
        for raised in (KeyError("lost"), KeyboardInterrupt()):
            def fail(*unused, raised=raised):
                raise raised
            source = self.engine(weft.Trust(verify=None, sign=fail))
            with self.assertRaises(type(raised)) as caught:
                source.put(bytes(400), 0)
            self.assertIs(caught.exception, raised)
            source.tick(1)
            self.assertTrue(source.source_ready)
            network = self.pair(lambda text: bytes(64), fail)
            network.engines[0].put(bytes(400), 0)
            with self.assertRaises(type(raised)):
                for _ in range(30):
                    network.step()
            network.engines[1].tick(network.now_us)

    def test_what_they_give_must_be_a_signature(self):
        with self.assertRaisesRegex(ValueError, "a signature has 64 bytes, not 3"):
            self.engine(weft.Trust(verify=None, sign=lambda text: b"abc")).put(bytes(400), 0)
        with self.assertRaises(TypeError):
            self.engine(weft.Trust(verify=None, sign=lambda: None)).put(bytes(400), 0)
        with self.assertRaises(ZeroDivisionError):
            self.signing_when_made(lambda text: 1 / 0)

    def test_they_must_not_use_what_has_called_them(self):
        holder = []
        for use in (lambda: holder[0].tick(0), lambda: holder[0].close(), self.context.close):
            holder.clear()
            holder.append(self.engine(weft.Trust(verify=None, sign=lambda text, use=use: use())))
            with self.assertRaisesRegex(RuntimeError, "must not use what has called it"):
                holder[0].put(bytes(400), 0)
        with self.assertRaisesRegex(RuntimeError, "must not use what has called it"):  # nor what makes it
            self.signing_when_made(lambda text: self.context.close())
        other = self.engine(None)
        own = self.engine(weft.Trust(verify=None, sign=lambda text: other.statistics and bytes(64)))
        own.put(bytes(400), 0)  # others may be used

    def test_nothing_is_held_when_the_engine_goes(self):
        def sign(text):
            return bytes(64)

        before = sys.getrefcount(sign)
        gc.collect()
        gc.disable()
        try:
            self.engine(weft.Trust(verify=None, sign=sign)).put(bytes(400), 0)
            self.assertEqual(sys.getrefcount(sign), before)
        finally:
            gc.enable()

    def test_closing_waits_for_a_call_that_is_in_a_callback(self):
        inside, go = threading.Event(), threading.Event()

        def sign(text):
            inside.set()
            go.wait(60)
            return bytes(64)

        engine = self.engine(weft.Trust(verify=None, sign=sign))
        threads = [threading.Thread(target=engine.put, args=(bytes(400), 0))]
        threads[0].start()
        inside.wait(60)
        threads.append(threading.Thread(target=self.context.close))
        threads[1].start()
        go.set()
        for thread in threads:
            thread.join()
        with self.assertRaisesRegex(ValueError, "Engine is closed"):
            engine.tick(0)


if __name__ == "__main__":
    main()
