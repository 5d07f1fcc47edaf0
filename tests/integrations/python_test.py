# SPDX-License-Identifier: Apache-2.0
"""weft: layouts as the compiler has them, and what each class does, with and without errors."""

import ctypes
import copy
import gc
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import weft


def some_bytes(count):
    return random.randbytes(count)


HEADERS = ("weft/weft.h", "weft/server.h", "weft/peer_engine.h", "weft/peer_session.h")
TYPES = {
    None: "void", ctypes.c_bool: "bool", ctypes.c_int: "int", ctypes.c_uint8: "uint8_t",
    ctypes.c_uint16: "uint16_t", ctypes.c_uint32: "uint32_t", ctypes.c_uint64: "uint64_t",
    ctypes.c_int64: "int64_t"}


# Functions without a counterpart here (docs/integrations.md).
C_ONLY = (
    # Memory of the library's kinds, queues, and what is asynchronous or places results in such memory.
    "weft_(alloc|free)", "weft_queue_.*", "weft_segments_new", "weft_(encoder_batch|decoder_recode_batch)",
    "weft_decoders_.*", "weft_recoder_batch",
    # Packets as parts: here they are datagrams. What is known to who made the handle.
    "weft_packet_.*", "weft_(decoder|recoder)_add", "weft_segment_get_id", "weft_ctx_threads",
    "weft_code_(data_shards|parity_shards|word_bits|unit_bytes)", "weft_decoder_memory_bytes",
    # Plans that are kept, groups of devices, progressive encoding.
    "weft_plan_.*", "weft_code_(precompute|plan_stats)", "weft_code_group_.*", "weft_progress_.*",
    # Of engines by the thousand, as simulations have them; what the runtime's socket filter asks for.
    "weft_engine_(scratch_new|scratch_free|hot_bytes|prefetch|input_token)", "weft_sessions_places",
    # Generators, codecs and policies of one's own.
    "weft_rng_.*", "weft_codec_.*", "weft_policy_.*")


def c_type(kind):
    """What a parameter or a result of this type is in C: a pointer to anything, if not a number."""
    for structure in (name for name, found in weft.STRUCTURES.items() if found is kind):
        return structure
    return TYPES.get(kind, "void *")


class Layout(unittest.TestCase):
    """What is declared here agrees with the headers, as the compiler has them."""

    def compiled(self, text, *options):
        source = "#include <stddef.h>\n#include <stdio.h>\n%s%s" % (
            "".join("#include <%s>\n" % header for header in HEADERS), text)
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            subprocess.run(["cc", "-x", "c", "-I", os.environ["WEFT_INCLUDE"], *options, "-o", program, "-"],
                           input=source.encode(), check=True)
            return program if "-c" in options else subprocess.run(
                [program], capture_output=True, check=True).stdout.decode()

    def test_structures_are_laid_out_as_in_c(self):
        lines = []
        for name, structure in weft.STRUCTURES.items():
            lines.append('printf("%s %%zu\\n", sizeof(%s));' % (name, name))
            for field in structure._fields_:
                lines.append('printf("%s.%s %%zu %%zu\\n", offsetof(%s, %s), sizeof(((%s *)0)->%s));'
                             % (name, field[0], name, field[0], name, field[0]))
        said = self.compiled("int main(void) {\n%s\nreturn 0;\n}\n" % "\n".join(lines))
        for line in said.splitlines():
            what, *values = line.split()
            name, _, field = what.partition(".")
            structure = weft.STRUCTURES[name]
            place = getattr(structure, field) if field else None
            ours = (place.offset, place.size) if place else (ctypes.sizeof(structure),)
            self.assertEqual(ours, tuple(map(int, values)), what)

    def test_structures_lack_no_member(self):
        """Values for as many as are declared here are enough for the compiler."""
        lines = []
        for name, structure in weft.STRUCTURES.items():
            values = ("{0}" if issubclass(kind, (ctypes.Structure, ctypes.Array)) else "0"
                      for _, kind in structure._fields_)
            lines.append("extern const %s of_%s; const %s of_%s = {%s};" % (name, name, name, name, ", ".join(values)))
        self.compiled("\n".join(lines), "-c", "-Wmissing-field-initializers", "-Werror")

    def test_numbers_are_those_of_c(self):
        lines = ['printf("%s %%llu\\n", (unsigned long long)%s);' % (name, name) for name in weft.CONSTANTS]
        said = self.compiled("int main(void) {\n%s\nreturn 0;\n}\n" % "\n".join(lines))
        theirs = {name: int(value) for name, value in map(str.split, said.splitlines())}
        self.assertEqual(theirs, weft.CONSTANTS)

    def test_functions_take_and_give_what_they_do_in_c(self):
        """A call of each with values of these types compiles without a conversion that loses something."""
        lines = []
        for name, (result, arguments) in weft.FUNCTIONS.items():
            given = ["%s a%d" % (c_type(kind), i) for i, kind in enumerate(arguments)]
            call = "%s(%s)" % (name, ", ".join("a%d" % i for i in range(len(arguments))))
            returned = c_type(result)
            lines.append("%s call_%s(%s);" % (returned, name, ", ".join(given) or "void"))
            lines.append("%s call_%s(%s) { %s%s; }" % (
                returned, name, ", ".join(given) or "void",
                "" if result is None else "return (void *)" if returned == "void *" else "return ", call))
        self.compiled("\n".join(lines), "-c", "-Wall", "-Wconversion", "-Wno-sign-conversion", "-Werror")


    @unittest.skipIf("DEVICE_DOUBLE" in os.environ, "that library shows its inside as well")
    def test_functions_that_lack_are_known_to(self):
        """Whoever adds a function to a header has it here, too, or among those that are C only."""
        library = weft._declarations._c._name
        said = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, check=True).stdout.decode()
        there = {name for _, kind, name in map(str.split, said.splitlines()) if kind == "T"}
        lacking = {name for name in there - set(weft.FUNCTIONS) if not any(re.fullmatch(p, name) for p in C_ONLY)}
        self.assertEqual(lacking, set())
        self.assertEqual([p for p in C_ONLY if not any(re.fullmatch(p, name) for name in there)], [])


class Names(unittest.TestCase):
    def test_names_are_of_weft_whatever_file_has_them(self):
        for name in weft.__all__:
            self.assertEqual(getattr(weft, name).__module__, "weft", name)
        with self.assertRaisesRegex(weft.Error, "WEFT_E"):
            weft.Context(backend="no-such-row")


class Coding(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()
        self.id = weft.SegmentId(stream=7, segment=3, blocks=20, block_bytes=300)
        self.data = some_bytes(self.id.bytes - 17)

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
            data = some_bytes(self.id.bytes)
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
        data = [some_bytes(shape.bytes) for shape in shapes]
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

    def test_closing_waits_for_what_is_being_made(self):
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
                  "weft_code_new": lambda c: weft.Code(c, "vandermonde", 4, 2)}
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
        key = some_bytes(32)
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


class Lifetimes(unittest.TestCase):
    def test_a_context_closes_what_it_made(self):
        with weft.Context() as context:
            shape = weft.SegmentId(1, 1, 4, 100)
            encoder = weft.Encoder(context, shape, bytes(400))
            decoder, recoder = weft.Decoder(context, shape), weft.Recoder(context, shape)
            code = weft.Code(context, "cauchy", 2, 1)
        for call in (encoder.next, decoder.recode, recoder.next, lambda: code.name,
                     lambda: weft.Decoder(context, shape)):
            with self.assertRaises(ValueError):
                call()

    def test_what_is_made_keeps_its_context(self):
        shape = weft.SegmentId(1, 1, 4, 100)
        encoder = weft.Encoder(weft.Context(), shape, bytes(400))
        gc.collect()
        self.assertGreater(len(encoder.next()), 100)
        held = [weft.Decoder(weft.Context(), shape) for _ in range(20)]
        held.append(held)  # a cycle, freed in whatever order
        del held
        gc.collect()

    def test_nothing_given_is_held_after_the_call(self):
        """Of large data and many packets that would be much, until the collector of cycles comes."""
        context, shape = weft.Context(), weft.SegmentId(1, 1, 4, 100)
        data, shards = bytearray(400), [bytearray(64) for _ in range(3)]
        gc.collect()
        gc.disable()
        try:
            encoder, decoder = weft.Encoder(context, shape, data), weft.Decoder(context, shape)
            data.append(1)  # a BufferError where somebody has a view of it
            packet = encoder.next()
            before = sys.getrefcount(packet)
            for kind in (bytes, bytearray, memoryview):
                decoder.add(kind(packet))
            self.assertEqual(sys.getrefcount(packet), before)
            code = weft.Code(context, "cauchy", 3, 2)
            whole = shards + code.encode(shards)
            code.verify(whole)
            for shard in [*whole, *code.recover([None, *whole[1:]]), *encoder.batch(2), decoder.recode()]:
                bytearray(shard).append(1)
                if isinstance(shard, bytearray):
                    shard.append(1)
        finally:
            gc.enable()

    def test_what_fails_to_be_made_is_freed(self):
        context = weft.Context()
        for _ in range(10):
            with self.assertRaises(weft.Error):
                weft.Encoder(context, weft.SegmentId(1, 1, 4, 100), b"")
        context.close()

    def test_the_document(self):
        with open(os.environ["WEFT_DOCUMENT"], encoding="utf-8") as document:
            examples = [part.split("```")[0] for part in document.read().split("```python\n")[1:]]
        self.assertGreater(len(examples), 1)
        for example in examples:
            program = subprocess.run([sys.executable, "-c", example], capture_output=True, check=False)
            self.assertEqual((program.returncode, program.stderr), (0, b""), example)


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
        data = some_bytes(64000)
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


class Rows(unittest.TestCase):
    def test_rows_by_name(self):
        names = [name for name, technique, available in weft.backends() if available]
        self.assertIn("scalar", names)
        with weft.Context(backend="scalar", threads=2) as context:
            self.assertEqual((context.backend, context.host_backend), ("scalar", "scalar"))
        with self.assertRaises(weft.Error) as raised:
            weft.Context(backend="abacus")
        self.assertEqual(raised.exception.name, "WEFT_E_BACKEND_UNKNOWN")
        self.assertRegex(weft.version(), r"^\d+\.\d+\.\d+$")


class Storage(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()

    def test_every_code(self):
        for name in weft.Code.names():
            m = 2 if name == "raid6" else 3
            code = weft.Code(self.context, name, 5, m)
            self.assertTrue(code.name.startswith(name))
            data = [some_bytes(1001) for _ in range(5)]
            parity = code.encode(data)
            whole = data + parity
            self.assertEqual(code.verify(whole), [])
            lost = random.sample(range(5 + m), m)
            shards = [None if i in lost else shard for i, shard in enumerate(whole)]
            self.assertEqual(code.recover(shards, data_bytes=1001), whole)
            some = code.recover(shards, wanted=lost[:1], data_bytes=1001)
            self.assertEqual(some[lost[0]], whole[lost[0]])
            self.assertIsNone(some[lost[1]])
            parity[1][0] ^= 1
            self.assertEqual(code.verify(data + parity), [6])

    def test_many_stripes(self):
        code = weft.Code(self.context, "cauchy", 4, 2)
        stripes = [[some_bytes(size) for _ in range(4)] for size in (100, 0, 64, 4096)]
        parity = code.encode_stripes(stripes)
        self.assertEqual(parity, [code.encode(stripe) for stripe in stripes])
        whole = [[*data, *some] for data, some in zip(stripes, parity)]
        lacking = [[None if i in (1, 4) else shard for i, shard in enumerate(stripe)] for stripe in whole]
        self.assertEqual(code.recover_stripes(lacking), whole)
        self.assertEqual([stripe[4] for stripe in code.recover_stripes(lacking, wanted=[1])], [None] * 4)
        self.assertEqual((code.encode_stripes([]), code.recover_stripes([])), ([], []))
        lacking[2] = whole[2]
        with self.assertRaisesRegex(ValueError, "lack the same shards"):
            code.recover_stripes(lacking)

    def test_what_is_wanted_is_lost(self):
        code = weft.Code(self.context, "cauchy", 3, 2)
        data = [some_bytes(64) for _ in range(3)]
        whole = data + code.encode(data)
        shards = [None, *whole[1:4], None]
        for wanted in ([9], [-1], [1], [0, 0], [0, 4, 0]):
            with self.assertRaisesRegex(ValueError, "wanted are ids among the lost"):
                code.recover(shards, wanted)
        for wanted in ([4, 0], iter([0, 4])):
            self.assertEqual(code.recover(shards, wanted), whole)
        self.assertEqual(code.recover(shards, []), shards)

    def test_a_matrix_of_ones_own(self):
        rows = bytes([1, 1, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4])
        code = weft.Code(self.context, "matrix", 4, 3, parity=rows)
        self.assertEqual(code.parity_matrix, rows)
        data = [some_bytes(64) for _ in range(4)]
        whole = data + code.encode(data)
        self.assertEqual(code.inputs([1]), [0, 4])
        self.assertEqual(code.recover([None, data[1], None, None, whole[4], None, None], wanted=[0])[0],
                         data[0])
        with self.assertRaises(weft.Error) as raised:
            code.recover([None, None, data[2], None, whole[4], None, None])
        self.assertEqual(raised.exception.name, "WEFT_E_SINGULAR")
        with self.assertRaises(ValueError):
            weft.Code(self.context, "matrix", 4, 2, parity=rows)

    def test_parity_follows_a_shard(self):
        for name in weft.Code.names():
            code = weft.Code(self.context, name, 5, 2)
            data = [some_bytes(1001) for _ in range(5)]
            parity, new = code.encode(data), some_bytes(1001)
            expected = code.encode([*data[:3], new, data[4]])
            delta = bytes(a ^ b for a, b in zip(data[3], new))
            elsewhere = [bytearray(parity[0]), None]
            code.add_delta(3, delta, elsewhere)
            self.assertEqual(elsewhere, [expected[0], None], name)
            changes = code.parity_delta(3, delta)
            self.assertEqual([bytearray(a ^ b for a, b in zip(*both)) for both in zip(parity, changes)], expected)
            code.update(3, data[3], new, parity)
            self.assertEqual(parity, expected, name)
            code.update(0, b"", b"", [bytearray(), bytearray()])

    def test_parity_that_cannot_follow(self):
        code = weft.Code(self.context, "cauchy", 3, 2)
        parity = [bytearray(4), bytearray(4)]
        for wrong in ((3, b"abcd", b"abcd", parity), (-1, b"abcd", b"abcd", parity), (0, b"abcd", b"abc", parity),
                      (0, b"abcd", b"abcd", parity[:1]), (0, b"abc", b"abc", parity)):
            with self.assertRaises((ValueError, OverflowError)):
                code.update(*wrong)
        with self.assertRaises((TypeError, ValueError, BufferError)):
            code.add_delta(0, b"abcd", [bytes(4), bytes(4)])
        self.assertEqual(parity, [bytearray(4), bytearray(4)])

    def test_wrong_shards(self):
        code = weft.Code(self.context, "cauchy", 3, 2)
        with self.assertRaises(ValueError):
            code.encode([b"a", b"b"])
        with self.assertRaises(ValueError):
            code.encode([b"a", b"b", b"cc"])
        with self.assertRaises(ValueError):
            code.recover([None, None, None, b"d", b"e"])
        with self.assertRaises(weft.Error) as raised:
            code.recover([None, None, None, b"d", b"e"], data_bytes=1)
        self.assertEqual(raised.exception.name, "WEFT_E_SINGULAR")
        self.assertEqual(code.encode([b"", b"", b""]), [bytearray(), bytearray()])
        self.assertEqual(weft.Code(self.context, "cauchy", 3, 0).encode([b"a", b"b", b"c"]), [])
        with self.assertRaises(weft.Error):
            weft.Code(self.context, "cauchy", 300, 2)


if __name__ == "__main__":
    SEED = int(os.environ.get("WEFT_TEST_SEED", "0"), 0) or random.randrange(1 << 48)
    print("WEFT_TEST_SEED=%#x" % SEED, flush=True)
    random.seed(SEED)
    unittest.main()
