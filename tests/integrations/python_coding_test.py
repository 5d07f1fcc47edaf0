# SPDX-License-Identifier: Apache-2.0
"""Encoders, decoders and recoders, with and without errors, from one thread and from many."""

import copy
import ctypes
import pickle
import random
import threading
import unittest
import unittest.mock

import weft
from python_support import main


class Coding(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()
        self.id = weft.SegmentId(stream=7, segment=3, blocks=20, block_bytes=300)
        self.data = random.randbytes(self.id.bytes - 17)

    def tearDown(self):
        self.context.close()

    def decoded(self, source):
        decoder = weft.Decoder(self.context, self.id)
        for packet in source:
            decoder.add(packet)
            if decoder.complete:
                break
        return decoder

    def packets(self, coder):
        while True:
            yield coder.next()

    def test_packets_give_the_segment_back(self):
        for options in ({}, {"systematic": True}, {"seeded": True, "first_seed": 5},
                        {"seeded": True, "density": 0.5}):
            for data in (self.data, bytearray(self.data), memoryview(self.data)):
                encoder = weft.Encoder(self.context, self.id, data, **options)
                decoder = self.decoded(self.packets(encoder))
                self.assertEqual(decoder.read(len(self.data)), self.data, options)
                self.assertEqual(decoder.read(), self.data + bytes(17))
                self.assertEqual(decoder.block(2), self.data[600:900])
                self.assertEqual(decoder.read(10, offset=290), self.data[290:300])

    def test_packets_of_few_blocks(self):  # whose seed is longer than their coefficients
        for blocks in range(1, 12):
            self.id = weft.SegmentId(stream=7, segment=3, blocks=blocks, block_bytes=5)
            data = random.randbytes(self.id.bytes)
            for options in ({}, {"systematic": True}, {"seeded": True}, {"seeded": True, "density": 0.9}):
                encoder = weft.Encoder(self.context, self.id, data, **options)
                self.assertEqual(self.decoded(self.packets(encoder)).read(), data, (blocks, options))

    def test_packets_say_whose_they_are(self):
        for options in ({}, {"systematic": True}, {"seeded": True}, {"seeded": True, "density": 0.5}):
            packet = weft.Encoder(self.context, self.id, self.data, **options).next()
            found = weft.segment_of(memoryview(packet))
            self.assertEqual([getattr(found, name) for name, _ in found._fields_], [7, 3, 20, 300])
        for wrong in (packet[:-1], b"", b"\xff" + packet[1:]):
            with self.assertRaises(weft.Error):
                weft.segment_of(wrong)

    def test_recoding(self):
        encoder = weft.Encoder(self.context, self.id, self.data)
        relay = weft.Decoder(self.context, self.id)
        recoder = weft.Recoder(self.context, self.id, capacity=8)
        self.assertIsNone(relay.recode())
        self.assertIsNone(recoder.next())
        for _ in range(self.id.blocks):
            packet = encoder.next()
            relay.add(packet)
            recoder.add(packet)
        self.assertEqual(recoder.held, 8)
        while not relay.complete:
            relay.add(encoder.next())
        again = self.decoded(relay.recode() for _ in range(1000))
        self.assertEqual(again.read(len(self.data)), self.data)
        mixed = weft.Decoder(self.context, self.id)
        for _ in range(50):
            mixed.add(recoder.next())
        self.assertEqual(mixed.rank, 8)
        self.assertIsNone(mixed.read())
        self.assertIsNone(mixed.block(0))

    def test_the_next_segment(self):
        decoder, recoder = weft.Decoder(self.context, self.id), weft.Recoder(self.context, self.id)
        for number in range(3, 6):
            shape = weft.SegmentId(7, number, 20, 300)
            data = random.randbytes(shape.bytes)
            encoder = weft.Encoder(self.context, shape, data)
            for coder in (decoder, recoder):
                coder.reset(shape)
                self.assertEqual(coder.id.segment, number)
            self.assertEqual((decoder.rank, recoder.held), (0, 0))
            while not decoder.complete:
                recoder.add(encoder.next())
                decoder.add(recoder.next())
            self.assertEqual(decoder.read(), data)
        for other in (weft.SegmentId(7, 3, 21, 300), weft.SegmentId(7, 3, 20, 301)):
            for coder in (decoder, recoder):
                with self.assertRaises(weft.Error):
                    coder.reset(other)
                self.assertEqual(coder.id.segment, 5)
        self.assertTrue(decoder.complete)
        with self.assertRaises(TypeError):
            decoder.reset(b"")

    def test_many_datagrams(self):
        for blocks in (1, 3, 20):
            self.id = weft.SegmentId(stream=7, segment=3, blocks=blocks, block_bytes=300)
            data = random.randbytes(self.id.bytes)
            for options in ({}, {"systematic": True}, {"seeded": True, "systematic": True, "first_seed": 5},
                            {"seeded": True, "density": 0.5}):
                encoders = [weft.Encoder(self.context, self.id, data, **options) for _ in range(2)]
                for encoder in encoders:
                    encoder.fix_random(bytes(32))
                many = encoders[0].datagrams(2) + encoders[0].datagrams(0) + encoders[0].datagrams(30)
                self.assertEqual(many, [encoders[1].next() for _ in range(32)], options)
                self.assertEqual(self.decoded(many).read(), data)
                # A recoder holds as many as there are blocks, of which one may depend on the others.
                probe = weft.Decoder(self.context, self.id)
                innovative = [packet for packet in many if probe.add(packet)]
                coders = weft.Decoder(self.context, self.id), weft.Recoder(self.context, self.id)
                for coder in coders:
                    self.assertEqual(coder.datagrams(3), [])
                    for packet in innovative:
                        coder.add(packet)
                    self.assertEqual(self.decoded(coder.datagrams(30)).read(), data)
        with self.assertRaises(ValueError):
            encoders[0].datagrams(-1)

    def test_what_adds_nothing_and_what_is_refused(self):
        encoder = weft.Encoder(self.context, self.id, self.data, systematic=True)
        decoder = weft.Decoder(self.context, self.id)
        first = encoder.next()
        self.assertTrue(decoder.add(first))
        self.assertFalse(decoder.add(bytearray(first)))
        self.assertEqual((decoder.rank, decoder.prefix, decoder.complete), (1, 1, False))
        for wrong, name in ((first[:-1], "WEFT_E_MALFORMED"), (b"", "WEFT_E_MALFORMED")):
            with self.assertRaises(weft.Error) as raised:
                decoder.add(wrong)
            self.assertEqual(raised.exception.name, name)
        other = weft.Decoder(self.context, weft.SegmentId(7, 4, 20, 300))
        with self.assertRaises(weft.Error) as raised:
            other.add(first)
        self.assertEqual(raised.exception.name, "WEFT_E_FOREIGN")
        with self.assertRaises(weft.Error):
            weft.Decoder(self.context, weft.SegmentId(1, 1, 0, 5))
        with self.assertRaises(weft.Error):
            decoder.block(20)

    def test_batches(self):
        encoder = weft.Encoder(self.context, self.id, self.data)
        coefficients, payloads = encoder.batch(6)
        self.assertEqual((len(coefficients), len(payloads)), (120, 1800))
        self.assertEqual(encoder.combine(coefficients), payloads)
        unit = bytearray(20)
        unit[3] = 1
        self.assertEqual(encoder.combine(unit), self.data[900:1200])
        self.assertEqual(encoder.batch(0), (bytearray(), bytearray()))
        with self.assertRaises(ValueError):
            encoder.combine(bytes(21))

    def test_many_at_once(self):
        shapes = [weft.SegmentId(7, i, *random.choice(((20, 300), (5, 64), (1, 1)))) for i in range(6)]
        data = [random.randbytes(shape.bytes) for shape in shapes]
        encoders = [weft.Encoder(self.context, shape, some) for shape, some in zip(shapes, data)]
        made = weft.Encoder.batches(encoders, 3)
        for encoder, (coefficients, payloads) in zip(encoders, made):
            self.assertEqual(encoder.combine(coefficients), payloads)
        whole = [encoder.batch(encoder.id.blocks) for encoder in encoders]
        for attempt in whole:  # a matrix of chance is singular now and then
            attempt[0][:] = bytearray(len(attempt[0]))
            blocks = len(attempt[0]) ** 0.5
            attempt[0][::int(blocks) + 1] = bytes([3]) * int(blocks)
        whole = [(c, encoder.combine(c)) for encoder, (c, _) in zip(encoders, whole)]
        self.assertEqual(weft.decode_batch(self.context, whole), data)
        whole[2] = bytes(len(whole[2][0])), whole[2][1]
        self.assertEqual(weft.decode_batch(self.context, whole), [*data[:2], None, *data[3:]])
        self.assertEqual((weft.decode_batch(self.context, []), weft.Encoder.batches([], 5)), ([], []))

    def test_an_encoder_several_times_at_once(self):
        encoder, other, alone = (weft.Encoder(self.context, self.id, self.data) for _ in range(3))
        for one in encoder, other, alone:
            one.fix_random(bytes(32))
        made = weft.Encoder.batches([encoder, other, encoder], 2)
        self.assertEqual([made[0], made[2]], [alone.batch(2), alone.batch(2)])  # it goes on from batch to batch
        self.assertEqual(made[1], made[0])

    def test_closing_waits_for_what_is_being_made_or_asked(self):
        def slowly(real):
            def call(context, *rest):
                begun.set()
                closes.wait(0.2)
                order.append("made")
                return real(context, *rest)
            return call

        makers = {"weft_segment_new": lambda c: weft.Encoder(c, self.id, self.data),
                  "weft_decoder_new": lambda c: weft.Decoder(c, self.id),
                  "weft_recoder_new": lambda c: weft.Recoder(c, self.id),
                  "weft_engine_new": lambda c: weft.Engine(c, weft.EngineOptions(stream=1, blocks=8, block_bytes=64)),
                  "weft_server_new": lambda c: weft.Server([self.context, c]),
                  "weft_code_new": lambda c: weft.Code(c, "vandermonde", 4, 2),
                  "weft_ctx_trim": lambda c: c.trim(),
                  "weft_ctx_backend": lambda c: c.backend,
                  "weft_ctx_host_backend": lambda c: c.host_backend}
        for name, make in makers.items():
            begun, closes, order, context = threading.Event(), threading.Event(), [], weft.Context()
            with unittest.mock.patch.object(weft._context._c, name, slowly(getattr(weft._context._c, name))):
                maker = threading.Thread(target=make, args=(context,))
                maker.start()
                begun.wait()
                context.close()
                order.append("closed")
                closes.set()
                maker.join()
            self.assertEqual((name, order), (name, ["made", "closed"]))
            self.assertEqual(context._made, {})

    def test_many_that_do_not_go_together(self):
        encoder, other = (weft.Encoder(self.context, self.id, self.data) for _ in range(2))
        with weft.Context() as context:
            foreign = weft.Encoder(context, self.id, self.data)
            for wrong in ([encoder, foreign], [foreign, encoder]):
                with self.assertRaisesRegex(ValueError, "encoders of one context"):
                    weft.Encoder.batches(wrong, 1)
        closed = weft.Encoder(self.context, self.id, self.data)
        closed.close()
        with self.assertRaisesRegex(ValueError, "Encoder is closed"):
            weft.Encoder.batches([encoder, closed], 1)
        for wrong in ((bytes(3), bytes(4)), (bytes(4), bytes(5)), (b"", b""), (bytes(4), b"")):
            with self.assertRaisesRegex(ValueError, "are not \\(n, n\\)"):
                weft.decode_batch(self.context, [wrong])
        with self.assertRaisesRegex(ValueError, "Context is closed"):
            weft.decode_batch(context, [encoder.batch(20)])
        threads = [threading.Thread(target=weft.Encoder.batches, args=(pair, 50))  # in either order
                   for pair in ([encoder, other], [other, encoder]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_fixed_randomness_repeats(self):
        def packet(key):
            encoder = weft.Encoder(self.context, self.id, self.data)
            encoder.fix_random(key)
            return encoder.next()
        key = random.randbytes(32)
        self.assertEqual(packet(key), packet(key))
        self.assertNotEqual(packet(key), packet(bytes(32)))
        with self.assertRaises(ValueError):
            packet(b"short")

    def test_classes_of_ones_own(self):
        class Counting(weft.Decoder):
            taken = 0

            def add(self, datagram):
                self.taken += super().add(datagram)

        counting = Counting(self.context, self.id)
        counting.fix_random(bytes(32))
        counting.add(weft.Encoder(self.context, self.id, self.data).next())
        self.assertEqual(counting.taken, 1)

    def test_closed_handles_say_so(self):
        decoder = weft.Decoder(self.context, self.id)
        decoder.close()
        decoder.close()
        with self.assertRaises(ValueError):
            decoder.add(b"x")
        with weft.Encoder(self.context, self.id, self.data) as encoder:
            pass
        with self.assertRaises(ValueError):
            encoder.next()


class Mistakes(unittest.TestCase):
    """What is wrong is said before the library cuts, guesses or crashes."""

    def setUp(self):
        self.context = weft.Context()
        self.shape = weft.SegmentId(1, 1, 4, 100)

    def test_numbers_that_do_not_fit(self):
        for words in ((-1, 0, 4, 100), (1 << 64, 0, 4, 100), (0, 0, -1, 100), (0, 0, 1 << 32, 100)):
            with self.assertRaisesRegex(ValueError, "not from 0 to"):
                weft.SegmentId(*words)
        with self.assertRaises(TypeError):
            weft.SegmentId(1, 1, 4.5, 100)
        decoder = weft.Decoder(self.context, self.shape)
        encoder = weft.Encoder(self.context, self.shape, bytes(400))
        for call in (lambda: decoder.block(-1), lambda: decoder.read(401), lambda: decoder.read(offset=-1),
                     lambda: decoder.read(-1), lambda: weft.Context(threads=-1), lambda: encoder.batch(-1),
                     lambda: weft.Recoder(self.context, self.shape, -1),
                     lambda: weft.Code(self.context, "cauchy", -1, 2)):
            with self.assertRaises(ValueError):
                call()
        self.assertEqual(decoder.read(offset=400), b"")

    def test_a_shape_stays(self):
        # The library writes as much as it said at first.
        for coder in (weft.Encoder(self.context, self.shape, bytes(400)), weft.Decoder(self.context, self.shape),
                      weft.Recoder(self.context, self.shape)):
            with self.assertRaises(AttributeError):
                coder.id = weft.SegmentId(1, 1, 4, 1)
            coder.id.block_bytes = 1
            self.assertEqual(coder.id.block_bytes, 100)

    def test_densities(self):
        def coded(density):
            shape = weft.SegmentId(1, 1, 1000, 1)
            with weft.Encoder(self.context, shape, bytes(1000), density=density) as encoder:
                return encoder.batch(1)[0]
        for wrong in (-0.1, 1.1, float("nan")):
            with self.assertRaisesRegex(ValueError, "density"):
                coded(wrong)
        self.assertEqual([coded(0).count(0), coded(1).count(0)], [0, 0])
        self.assertGreater(coded(1e-9).count(0), 900)

    def test_one_id_is_no_list_of_ids(self):  # bytes(1) would be the id 0
        code = weft.Code(self.context, "cauchy", 4, 2)
        for call in (lambda: code.inputs(1), lambda: code.inputs([1, 2], wanted=1)):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(ValueError):
            code.parity_bytes(-1)

    def test_messages_name_what_was_wrong(self):
        strided = memoryview(bytes(400))[::2]
        code = weft.Code(self.context, "cauchy", 2, 1)
        for call, kind, text in (
                (lambda: weft.Encoder(self.context, self.shape, bytes(401)), weft.Error,
                 "401 bytes of data for 4 blocks of 100"),
                (lambda: weft.Context(backend="abacus"), weft.Error, "backend abacus"),
                (lambda: weft.Code(self.context, "nonesuch", 4, 2), weft.Error, "no code nonesuch, but .*cauchy"),
                (lambda: weft.Code(self.context, "cauchy", 200, 100), weft.Error, "k = 200, m = 100"),
                (lambda: weft.Code(self.context, "cauchy_good:w=4:packet=512", 15, 4), weft.Error,
                 "cauchy_good:w=4:packet=512 with k = 15, m = 4"),
                (lambda: code.encode([b"a", None]), ValueError, "data shard 1 is None"),
                (lambda: weft.Encoder(self.shape, self.context, b"x"), TypeError, "made from a Context"),
                (lambda: weft.Decoder(self.context, (1, 1, 4, 100)), TypeError, "SegmentId"),
                (lambda: weft.Encoder(self.context, self.shape, strided), ValueError, "one after the other"),
                (lambda: code.verify([b"a", None, b"b"]), ValueError, "must be there"),
                (lambda: code.recover([b"a", None, None]), weft.Error, "2 of 3 shards lost")):
            with self.assertRaisesRegex(kind, text):
                call()

    def test_objects_are_no_bytes(self):  # of an array of them there are addresses alone
        class Named(ctypes.Structure):
            _fields_ = [("Offset", ctypes.c_uint32)]

        objects = (ctypes.py_object * 25)(*range(25))
        with self.assertRaisesRegex(TypeError, "dtype of numbers"):
            weft.Encoder(self.context, self.shape, memoryview(objects))
        weft.Encoder(self.context, self.shape, (Named * 50)()).close()

    def test_handles_are_not_copied(self):
        for handle in (self.context, weft.Decoder(self.context, self.shape)):
            for copying in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "neither copied nor pickled"):
                    copying(handle)

    def test_threads_share_a_handle(self):
        shape = weft.SegmentId(1, 1, 64, 1000)
        data = random.randbytes(64000)
        encoder, decoder = weft.Encoder(self.context, shape, data), weft.Decoder(self.context, shape)
        failed = []

        def work():
            try:
                while not decoder.complete:
                    decoder.add(encoder.next())
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((failed, decoder.read()), ([], data))

    def test_closing_waits_for_calls(self):
        for close in (lambda encoder, context: encoder.close(), lambda encoder, context: context.close()):
            context = weft.Context()
            encoder = weft.Encoder(context, weft.SegmentId(1, 1, 64, 10000), bytes(640000))
            ends, started = [], threading.Event()

            def work():
                try:
                    while True:
                        encoder.batch(32)
                        started.set()
                except Exception as error:
                    ends.append(str(error))

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            started.wait(60)
            close(encoder, context)
            for thread in threads:
                thread.join()
            self.assertEqual(ends, ["Encoder is closed"] * 3)


if __name__ == "__main__":
    main()
