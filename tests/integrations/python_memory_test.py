# SPDX-License-Identifier: Apache-2.0
"""What is given to weft as bytes: arrays on a GPU by what they say of themselves (no GPU is needed), and `out`."""

import ctypes
import random
import unittest
import unittest.mock

import weft
from python_support import Array, main, Tensor
from weft._cuda import _Place, device_array
from weft._memory import Given

AT = 0x7f0000000000


class Interfaces(unittest.TestCase):
    """What is read from __cuda_array_interface__."""

    def found(self, *arguments, **options):
        array = device_array(Array(*arguments, **options))
        return array.size, array.rows

    def test_layouts(self):
        for shape, strides, typestr, size, rows in (
                ((10,), None, "|u1", 10, None), ((10,), (1,), "|u1", 10, None), ((), None, "<f8", 8, None),
                ((), (), "<f8", 8, None), ((2, 3), None, "<f4", 24, None), ((2, 3), (12, 4), "<f4", 24, None),
                ((2, 3), (16, 4), "<f4", 24, (2, 12, 16)), ((4, 5), (7, 1), "|i1", 20, (4, 5, 7)),
                ((10,), (2,), "|u1", 10, (10, 1, 2)), ((1, 3), (99, 1), "|u1", 3, None),
                ((3, 1), (1, 99), "|u1", 3, None), ((2, 3, 4), (30, 4, 1), "|b1", 24, (2, 12, 30)),
                ((1, 2, 4), (0, 6, 1), "|u1", 8, (2, 4, 6)),
                ((0,), None, "|u1", 0, None), ((3, 0), (1, 1), "|u1", 0, None), ((2,), None, "<U3", 24, None),
                ((2,), None, "<M8[ns]", 16, None), ((2,), None, "|V12", 24, None), ((2,), None, ">c16", 32, None)):
            self.assertEqual(self.found(AT, shape, strides, typestr), (size, rows), (shape, strides, typestr))

    def test_layouts_that_are_no_rows(self):
        for shape, strides in (((4, 5), (1, 4)), ((4, 5), (-5, 1)), ((10,), (-1,)), ((10,), (0,)), ((4, 5), (4, 1)),
                               ((2, 3, 4), (40, 8, 1)), ((4, 5), (10, 2))):
            with self.assertRaisesRegex(ValueError, "one after the other, or in rows"):
                self.found(AT, shape, strides)

    def test_what_is_no_array_of_bytes(self):
        for kind, text, options in (
                (TypeError, "dtype of numbers", {"typestr": "|O8"}),
                (TypeError, "dtype of numbers", {"typestr": "|t3"}),
                (TypeError, "dtype of numbers", {"typestr": "float"}),
                (ValueError, "bytes is", {"shape": (1 << 40, 1 << 40)}),
                (ValueError, "a stride is", {"shape": (4, 4), "strides": (1 << 64, 1)}),
                (ValueError, "version 1", {"version": 1}),
                (ValueError, "version 4", {"version": 4}), (ValueError, "mask", {"mask": Array(AT, (4,))}),
                (ValueError, "1 strides for 2 dimensions", {"shape": (4, 1), "strides": (1,)}),
                (ValueError, "shape is -4", {"shape": (-4,)}), (TypeError, "float", {"shape": (4.0,)}),
                (ValueError, "data is -1", {"at": -1}), (ValueError, "stream 0", {"stream": 0}),
                (ValueError, "stream is -1", {"stream": -1}), (TypeError, "str", {"stream": "first"})):
            with self.assertRaisesRegex(kind, text):
                self.found(**{"at": AT, "shape": (4,), **options})
        for key in "version", "typestr", "data", "shape":
            array = Array(AT, (4,))
            del array.__cuda_array_interface__[key]
            with self.assertRaisesRegex(TypeError, "lacks " + key):
                device_array(array)

    def test_streams(self):
        for version, more, expected in ((3, {}, None), (3, {"stream": None}, None), (3, {"stream": 1}, 1),
                                        (3, {"stream": 2}, 2), (3, {"stream": AT}, AT), (2, {}, 1),
                                        (2, {"stream": None}, None)):
            self.assertEqual(device_array(Array(AT, (4,), version=version, **more)).stream, expected, (version, more))

    def test_what_has_a_buffer_is_in_host_memory(self):  # managed memory, as an array of numpy
        class Both(bytearray):
            __cuda_array_interface__ = Array(AT, (4,)).__cuda_array_interface__

        with weft.Context(backend="scalar") as context:
            encoder = weft.Encoder(context, weft.SegmentId(1, 1, 1, 4), Both(b"abcd"))
            self.assertEqual(encoder.combine(b"\1"), b"abcd")

    def test_what_has_no_interface(self):
        class Ashore:  # as PyTorch's tensors of the CPU
            @property
            def __cuda_array_interface__(self):
                raise AttributeError("on the CPU")

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **options):
                raise AssertionError("of another device")

        class Gradient:
            @property
            def __cuda_array_interface__(self):
                raise RuntimeError("requires grad")

        with weft.Context(backend="scalar") as context:
            for thing, kind, text in ((Ashore(), TypeError, "bytes-like object is required"),
                                      (5, TypeError, "bytes-like object is required"),
                                      (Gradient(), RuntimeError, "requires grad")):
                with self.assertRaisesRegex(kind, text):
                    weft.Encoder(context, weft.SegmentId(1, 1, 1, 4), thing)


class Tensors(unittest.TestCase):
    """What is read from DLPack."""

    def test_layouts(self):
        for version in (None, (1, 0), (1, 2)):
            for shape, strides, bits, size, rows in (
                    ((10,), None, 8, 10, None), ((), None, 64, 8, None), ((2, 3), (3, 1), 32, 24, None),
                    ((2, 3), (4, 1), 16, 12, (2, 6, 8)), ((0, 3), (3, 1), 8, 0, None)):
                tensor = Tensor(AT, shape, strides, bits, offset=16, version=version)
                found = device_array(tensor)
                self.assertEqual((found.at, found.size, found.rows, found.read_only, found.stream),
                                 (AT + 16, size, rows, False, 1), (version, shape, strides))
                self.assertEqual([asked["stream"] for asked in tensor.asked], [1])
        self.assertTrue(device_array(Tensor(AT, (4,), read_only=True)).read_only)

    def test_types_that_the_interface_lacks(self):  # PyTorch raises a TypeError for bfloat16
        class Brain(Tensor):
            @property
            def __cuda_array_interface__(self):
                raise TypeError("no bfloat16")

        self.assertEqual(device_array(Brain(AT, (4,), bits=16, code=4)).size, 8)

    def test_what_is_no_tensor_of_bytes(self):
        class Empty(Tensor):
            def __dlpack__(self, **options):
                return object()

        class Moved(Tensor):
            def __dlpack_device__(self):
                return 2, 0

        for tensor, kind, text in ((Tensor(AT, (4,), bits=4), TypeError, "4 bits"),
                                   (Tensor(AT, (4,), bits=64, code=3), TypeError, "dtype of numbers"),
                                   (Tensor(AT, (4,), version=(2, 0)), ValueError, "version 2.0"),
                                   (Moved(AT, (4,), device=10), ValueError, "another device"),
                                   (Empty(AT, (4,)), TypeError, "gave no tensor")):
            with self.assertRaisesRegex(kind, text):
                device_array(tensor)


class Places(unittest.TestCase):
    """Whose memory it is, by what CUDA's driver says."""

    def setUp(self):
        self.context = weft.Context(backend="scalar")
        self.context._place = (_Place(0, 11, False),)  # as if it had a device
        self.answers = {}

    def tearDown(self):
        self.context.close()

    def driver(self, count, wanted, answers, at):
        said = self.answers.get(at)
        if said is None:
            return 1  # CUDA_ERROR_INVALID_VALUE
        for place, kind, value in zip(answers, (ctypes.c_uint64, ctypes.c_uint, ctypes.c_uint, ctypes.c_int), said):
            kind.from_address(place).value = value
        return 0

    def take(self, **options):
        with unittest.mock.patch("weft._cuda._driver", lambda: self.driver):
            return Given(self.context).write(Array(**{"at": AT, "shape": (400,), **options}))

    def test_memory_that_the_device_can_reach(self):
        for context, kind, managed, device in ((11, 2, 0, 0), (0, 2, 0, 0), (99, 2, 1, 0), (0, 1, 1, 0)):
            self.answers[AT] = context, kind, managed, device
            taken = self.take()
            self.assertEqual((taken.at, taken.size, taken.mem), (AT, 400, 2))
        self.assertEqual(self.take(at=0, shape=(0, 3)).size, 0)

    def test_memory_that_it_cannot_reach(self):
        for answer, text in ((None, "knows of no memory at 0x7f0000000000"), ((0, 0, 0, -2), "knows of no memory"),
                             ((11, 2, 0, 1), "on GPU 1, and a Context on GPU 0"), ((99, 2, 1, 1), "on GPU 1"),
                             ((12, 2, 0, 0), "another CUDA context of GPU 0"), ((11, 1, 0, 0), "pinned memory")):
            self.answers[AT] = answer
            with self.assertRaisesRegex(ValueError, text):
                self.take()
        with self.assertRaisesRegex(ValueError, "400 bytes at address 0"):
            self.take(at=0)
        self.answers[AT] = 11, 2, 0, 0
        with self.assertRaisesRegex(TypeError, "the Array on the GPU is read-only"):
            self.take(read_only=True)
        with self.assertRaisesRegex(ValueError, "takes no strides"):
            self.take(strides=(2,))


class Ashore(unittest.TestCase):
    """Contexts and calls that have no device."""

    def setUp(self):
        self.context, self.shape = weft.Context(backend="scalar"), weft.SegmentId(1, 1, 4, 100)

    def tearDown(self):
        self.context.close()

    def test_contexts_of_the_cpu(self):
        there, code = Array(AT, (400,)), weft.Code(self.context, "cauchy", 2, 1)
        encoder = weft.Encoder(self.context, self.shape, bytes(400))
        for call in (lambda: weft.Encoder(self.context, self.shape, there), lambda: encoder.batch(4, (None, there)),
                     lambda: encoder.combine(there), lambda: code.encode([there, there], [there]),
                     lambda: code.encode([Tensor(AT, (400,)), bytes(400)]), lambda: code.verify([there] * 3),
                     lambda: code.recover([None, there, there]), lambda: code.update(0, there, there, [there]),
                     lambda: code.add_delta(0, bytes(400), [there]), lambda: code.parity_delta(0, there),
                     lambda: weft.decode_batch(self.context, [(there, there)])):
            with self.assertRaisesRegex(ValueError, "and a Context that computes on the CPU .scalar"):
                call()
        self.context.close()
        with self.assertRaisesRegex(ValueError, "Context is closed"):
            encoder.combine(there)

    def test_calls_that_take_host_memory_alone(self):
        there, shape = Array(AT, (32,)), self.shape
        encoder, now_us = weft.Encoder(self.context, shape, bytes(400)), 0
        source = weft.Engine(self.context, weft.EngineOptions(stream=1, blocks=4, block_bytes=100), source=True)
        sessions = weft.Sessions(self.context, weft.Identity.random(), now_us)
        server = weft.Server([self.context])
        for call in (lambda: encoder.fix_random(there), lambda: weft.Decoder(self.context, shape).add(there),
                     lambda: weft.Recoder(self.context, shape).add(Tensor(AT, (32,))), lambda: weft.segment_of(there),
                     lambda: weft.Code(self.context, "matrix", 4, 8, parity=there), lambda: source.put(there, now_us),
                     lambda: source.input(source.add_neighbour(now_us), there, now_us),
                     lambda: sessions.set_blob(there), lambda: sessions.input(("127.0.0.1", 5), there, now_us),
                     lambda: server.push(shape, there, now_us, 10)):
            with self.assertRaisesRegex(TypeError, "takes bytes in host memory, and the (Array|Tensor) is on a GPU"):
                call()
        server.close()


class Results(unittest.TestCase):
    """`out` in host memory."""

    def setUp(self):
        self.context, self.shape = weft.Context(), weft.SegmentId(1, 1, 4, 100)
        self.data = random.randbytes(400)
        self.encoder = weft.Encoder(self.context, self.shape, self.data)
        self.code = weft.Code(self.context, "cauchy", 2, 2)

    def tearDown(self):
        self.context.close()

    def test_coding(self):
        matrix, payloads = bytearray(16), memoryview(bytearray(400))
        made = self.encoder.batch(4, (matrix, payloads))
        self.assertIs(made[0], matrix)
        self.assertIs(made[1], payloads)
        self.assertEqual(self.encoder.combine(matrix), payloads)
        again = bytearray(400)
        self.assertIs(self.encoder.combine(matrix, again), again)
        self.assertEqual(again, payloads)
        (some, more), = weft.Encoder.batches([self.encoder], 2, [(None, None)])
        self.assertEqual((self.encoder.combine(some), len(some)), (more, 8))
        matrix[:] = b"\3\0\0\0\0\3\0\0\0\0\3\0\0\0\0\3"
        self.encoder.combine(matrix, payloads)
        out = bytearray(400)
        found = weft.decode_batch(self.context, [(matrix, payloads)] * 2, [out, None])
        self.assertIs(found[0], out)
        self.assertEqual(found, [self.data] * 2)
        self.assertEqual(weft.decode_batch(self.context, [(bytes(16), payloads)], [out]), [None])

    def test_storage(self):
        data, out = [random.randbytes(64) for _ in range(2)], [bytearray(64), memoryview(bytearray(64))]
        parity = self.code.encode(data)
        self.assertEqual(self.code.encode(data, out), parity)
        self.assertEqual(out, parity)
        first, = self.code.encode_stripes([data], [[out[0], None]])
        self.assertIs(first[0], out[0])
        self.assertEqual(first, parity)
        room = bytearray(64)
        found = self.code.recover([None, data[1], None, parity[1]], [2, 0], out=[None, room])
        self.assertIs(found[0], room)
        self.assertEqual(found, data + parity)
        changes = self.code.parity_delta(1, data[0])
        self.assertEqual(self.code.parity_delta(1, data[0], out), changes)
        self.assertEqual(out, changes)
        self.assertEqual(self.code.encode([b"", b""], [bytearray(), bytearray()]), [b"", b""])

    def test_what_does_not_fit(self):
        data, code, encoder = [bytes(64)] * 2, self.code, self.encoder
        room = bytearray(64)
        for kind, text, call in (
                (ValueError, "1 parts, not 2", lambda: code.encode(data, [room])),
                (ValueError, "2 parts, not 1", lambda: code.encode_stripes([data], [[room] * 2] * 2)),
                (ValueError, "shard 3 has 63 bytes, not 64", lambda: code.encode(data, [room, bytearray(63)])),
                (ValueError, "2 parts, not 1", lambda: code.recover([None, *data, room], out=[room] * 2)),
                (TypeError, "not writable", lambda: code.encode(data, [bytes(64), room])),
                (ValueError, "one after the other",
                 lambda: code.encode(data, [room, memoryview(bytearray(128))[::2]])),
                (ValueError, "payloads have 399 bytes, not 4 rows of 100",
                 lambda: encoder.batch(4, (None, bytearray(399)))),
                (ValueError, "coefficients have 17 bytes, not 4 rows of 4",
                 lambda: encoder.batch(4, (bytearray(17), None))),
                (ValueError, "2 pairs for 1 encoders", lambda: weft.Encoder.batches([encoder], 1, [(None, None)] * 2)),
                (TypeError, "not writable", lambda: encoder.combine(bytes(16), bytes(400))),
                (ValueError, "2 parts for 1 segments",
                 lambda: weft.decode_batch(self.context, [(bytes(16), bytes(400))], [None] * 2)),
                (ValueError, "decoded blocks have 1 bytes",
                 lambda: weft.decode_batch(self.context, [(bytes(16), bytes(400))], [bytearray(1)]))):
            with self.assertRaisesRegex(kind, text):
                call()
        self.assertEqual(room, bytes(64))  # nothing was written


if __name__ == "__main__":
    main()
