# SPDX-License-Identifier: Apache-2.0
"""Sessions from Python, in virtual time."""

import random
import unittest

import weft
from python_support import key, main


class Secure(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()
        self.addresses = [("10.0.0.1", 7000), ("2001:db8::2", 7001)]
        self.identities = [weft.Identity.from_seed(key()) for _ in range(2)]

    def sessions(self, *options, keys=(None, None)):
        options = options or (weft.SessionsOptions(blob=b"a"), weft.SessionsOptions(blob=b"bb"))
        return [weft.Sessions(self.context, self.identities[i], 0, options[i], key=keys[i]) for i in range(2)]

    def exchange(self, pair, now_us=0):
        """Handshake datagrams, until there are none."""
        moved = True
        while moved:
            moved = False
            for i in range(2):
                for address, datagram in pair[i].output():
                    self.assertEqual(address, self.addresses[1 - i])
                    self.assertIsNone(pair[1 - i].input(self.addresses[i], datagram, now_us))
                    moved = True

    def test_a_session_and_what_is_sealed_in_it(self):
        pair = self.sessions()
        link = pair[0].open(self.addresses[1], 0, self.identities[1].public_key)
        self.exchange(pair)
        opened = [list(one.events()) for one in pair]
        self.assertEqual(opened[0], [weft.SessionEvent(weft.SessionEventKind.OPENED, link)])
        other = opened[1][0].link
        seen = [pair[0].peer(link), pair[1].peer(other)]
        for i in range(2):
            self.assertEqual((seen[i].address, seen[i].public_key, seen[i].blob, seen[i].initiated),
                             (self.addresses[1 - i], self.identities[1 - i].public_key, (b"bb", b"a")[i], i == 0))
        plain = [b"\x00", b"\x00\x01", random.randbytes(weft.Sessions.PLAIN_BYTES)]
        sealed = pair[0].seal(link, plain, 1000)
        self.assertEqual([len(s) - len(p) for s, p in zip(sealed, plain)], [weft.Sessions.OVERHEAD_BYTES] * 3)
        with self.assertRaisesRegex(weft.Error, "WEFT_E_FOREIGN"):
            pair[1].input(self.addresses[0], bytes([*sealed[1][:-1], sealed[1][-1] ^ 1]), 1000)
        for s, p in zip(sealed, plain):
            before = bytes(s)
            self.assertEqual(pair[1].input(self.addresses[0], memoryview(s), 1000), (other, p))
            self.assertEqual(s, before)  # it was opened elsewhere
            self.assertIsNone(pair[1].input(self.addresses[0], s, 1000))  # a replay
        self.assertEqual((pair[1].statistics.opened, pair[1].statistics.replayed), (1, 3))
        self.addresses[0] = ("10.0.0.3", 9)  # a NAT moved it
        self.assertEqual(pair[1].input(self.addresses[0], pair[0].seal(link, [b"x"], 1500)[0], 1500), (other, b"x"))
        self.exchange(pair, 1500)
        self.assertEqual(list(pair[1].events()), [weft.SessionEvent(weft.SessionEventKind.MOVED, other)])
        self.assertEqual(pair[1].peer(other).address, self.addresses[0])
        pair[0].close_link(link, 2000)
        self.exchange(pair, 2000)
        self.assertEqual(list(pair[1].events()), [weft.SessionEvent(
            weft.SessionEventKind.LOST, other, weft.SessionReason.CLOSED)])

    def test_admission(self):
        asked = []

        def admit(public_key, address):
            asked.append((public_key, address))
            return False

        pair = self.sessions(weft.SessionsOptions(), weft.SessionsOptions(admit=admit))
        pair[0].open(self.addresses[1], 0)
        with self.assertRaisesRegex(weft.Error, "WEFT_E_FOREIGN"):
            self.exchange(pair)
        self.assertEqual(asked[0], (self.identities[0].public_key, self.addresses[0]))
        self.assertEqual(list(pair[1].events()), [])

        def fail(public_key, address):
            raise KeyError("lost")

        pair = self.sessions(weft.SessionsOptions(), weft.SessionsOptions(admit=fail))
        pair[0].open(self.addresses[1], 0)
        with self.assertRaisesRegex(KeyError, "lost"):
            self.exchange(pair)

    def test_no_answer(self):
        one = self.sessions()[0]
        link = one.open(self.addresses[1], 0)
        self.assertIsNotNone(one.deadline_us)
        now_us = 0
        while one.deadline_us is not None and now_us < 60_000_000:
            now_us = max(now_us, one.deadline_us)
            one.tick(now_us)
            list(one.output())
            for event in one.events():
                self.assertEqual(event, weft.SessionEvent(weft.SessionEventKind.LOST, link, weft.SessionReason.NO_ANSWER))
                return
        self.fail("nobody answered, and nobody said so by %d us" % now_us)

    def test_mistakes(self):
        pair = self.sessions()
        public = weft.Identity(self.identities[0].public_key)
        for call, kind, text in (
                (lambda: weft.Sessions(self.context, public, 0), TypeError, "secret key"),
                (lambda: weft.Sessions(self.context, self.identities[0], 0, weft.SessionsOptions(links_max=0)),
                 weft.Error, "0 links"),
                (lambda: weft.Sessions(self.context, self.identities[0], 0, weft.SessionsOptions(blob=bytes(161))),
                 weft.Error, "161 bytes"),
                (lambda: pair[0].set_blob(bytes(161)), weft.Error, "161 bytes, and at most 160"),
                (lambda: pair[0].open(("localhost", 1), 0), ValueError, "localhost"),
                (lambda: pair[0].open(("::1", 65536), 0), ValueError, "a port is 65536"),
                (lambda: pair[0].open(self.addresses[1], 0, b"x"), ValueError, "32 bytes"),
                (lambda: pair[0].peer(0), weft.Error, "WEFT_E_STATE.*link 0"),
                (lambda: pair[0].seal(0, [b"x"], 0), weft.Error, "WEFT_E_STATE"),
                (lambda: pair[0].seal(0, [bytes(1173)], 0), ValueError, "1173 bytes, and at most 1172"),
                (lambda: pair[0].seal(0, [b"x", b""], 0), ValueError, "an empty datagram"),
                (lambda: pair[0].input(self.addresses[1], b"", 0), weft.Error, "WEFT_E_MALFORMED"),
                (lambda: pair[0].input(self.addresses[1], bytes(1201), 0), weft.Error, "WEFT_E_MALFORMED")):
            with self.assertRaisesRegex(kind, text):
                call()
        pair[0].close_link(5, 0)

    def test_engines_over_sessions(self):
        pair, data = self.sessions(), random.randbytes(8 * 1000 * 3 + 5)
        options = weft.EngineOptions(stream=9, blocks=8, block_bytes=1000, trust=weft.Identity(self.identities[0].public_key))
        signing = weft.EngineOptions(stream=9, blocks=8, block_bytes=1000, trust=self.identities[0])
        engines = [weft.Engine(self.context, signing, source=True), weft.Engine(self.context, options)]
        for at in range(0, len(data), options.segment_bytes):
            engines[0].put(data[at:at + options.segment_bytes], 0)
        pair[0].open(self.addresses[1], 0)
        now_us, received = 0, bytearray()
        self.exchange(pair)
        links = [next(one.events()).link for one in pair]
        numbers = [engine.add_neighbour(0, is_source=i == 1) for i, engine in enumerate(engines)]
        while not engines[1].done and now_us < 60_000_000:
            for i in range(2):
                engines[i].tick(now_us)
                for _, datagrams in engines[i].output(now_us):
                    for sealed in pair[i].seal(links[i], datagrams, now_us):
                        link, plain = pair[1 - i].input(self.addresses[i], sealed, now_us)
                        self.assertEqual(link, links[1 - i])
                        engines[1 - i].input(numbers[1 - i], plain, now_us)
            for _, segment in engines[1].segments():
                received += segment
            now_us += 1000
        self.assertEqual(received, data)


if __name__ == "__main__":
    main()
