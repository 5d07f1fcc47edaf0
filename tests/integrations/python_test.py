# SPDX-License-Identifier: Apache-2.0
"""weft: layouts as the compiler has them, rows by name, and how long what is made lives."""

import ctypes
import gc
import os
import re
import subprocess
import sys
import tempfile
import unittest

import weft
from python_support import main

HEADERS = ("weft/weft.h", "weft/cuda.h", "weft/server.h", "weft/peer_engine.h", "weft/peer_session.h")
TYPES = {
    None: "void", ctypes.c_bool: "bool", ctypes.c_int: "int", ctypes.c_uint8: "uint8_t",
    ctypes.c_uint16: "uint16_t", ctypes.c_uint32: "uint32_t", ctypes.c_uint64: "uint64_t",
    ctypes.c_int64: "int64_t"}


# Functions without a counterpart here (docs/integrations.md).
C_ONLY = (
    # Queues, and what is asynchronous or of many decoders.
    "weft_queue_(new|poll)", "weft_segments_new", "weft_(encoder_batch|decoder_recode_batch)", "weft_decoders_.*",
    "weft_recoder_batch",
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


class Rows(unittest.TestCase):
    def test_rows_by_name(self):
        names = [name for name, technique, available in weft.backends() if available]
        self.assertIn("scalar", names)
        with weft.Context(backend="scalar", threads=2) as context:
            self.assertEqual((context.backend, context.host_backend), ("scalar", "scalar"))
            context.trim()  # keeps nothing
        with self.assertRaises(weft.Error) as raised:
            weft.Context(backend="abacus")
        self.assertEqual(raised.exception.name, "WEFT_E_BACKEND_UNKNOWN")
        self.assertRegex(weft.version(), r"^\d+\.\d+\.\d+$")


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


if __name__ == "__main__":
    main()
