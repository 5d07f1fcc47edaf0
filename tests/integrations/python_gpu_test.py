# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory of a GPU, against the scalar row on the CPU: on a GPU, and on the double of one.

Needs libweft.so, built with CUDA, and CUDA's driver; no CuPy, no PyTorch. Where there is no GPU every test is
skipped and says so. tools/gpu-check carries it to a machine with one.
"""

import contextlib
import ctypes
import gc
import os
import random
import types
import unittest
import unittest.mock
import weakref

import weft
from python_support import Array, device_context, device_of, DOUBLE, main, Tensor
from weft._declarations import _c

KEY = bytes(range(32))


class OnDevice(unittest.TestCase):
    def setUp(self):
        self.context = device_context()
        self.gpu = device_of(self.context)
        self.host = weft.Context(backend="scalar")

    def tearDown(self):
        if hasattr(self, "host"):
            self.gpu.close()
            self.context.close()
            self.host.close()

    def room(self, size):
        return self.gpu.new(random.randbytes(size))

    def rows(self, count, size, apart, data=None):
        """Rows in a wider matrix of the GPU; and a function that tells whether the bytes between them are as before."""
        whole = bytearray(random.randbytes(count * apart + 64))
        for i in range(count if data is not None else 0):
            whole[i * apart:i * apart + size] = data[i * size:(i + 1) * size]
        at = self.gpu.address(whole)

        def untouched():
            found = bytearray(self.gpu.read(at, len(whole)))
            for i in range(count):
                found[i * apart:i * apart + size] = whole[i * apart:i * apart + size]
            return found == whole

        return Array(at, (count, size), (apart, 1)), untouched


class Coding(OnDevice):
    SHAPES = (1, 1), (3, 5), (32, 1024), (64, 4096), (20, 301)

    def encoders(self, shape, data, **options):
        """One of an array on the GPU, and the same on the CPU."""
        made = (weft.Encoder(self.context, shape, self.gpu.new(data), **options),
                weft.Encoder(self.host, shape, data, **options))
        for encoder in made:
            encoder.fix_random(KEY)
        return made

    def test_batches_from_and_to_a_gpu(self):
        for blocks, block_bytes in self.SHAPES:
            shape = weft.SegmentId(7, 3, blocks, block_bytes)
            data = random.randbytes(shape.bytes - random.randrange(min(block_bytes, shape.bytes)))
            for options in ({}, {"systematic": True}, {"seeded": True, "first_seed": 5},
                            {"seeded": True, "density": 0.5}):
                encoder, scalar = self.encoders(shape, data, **options)
                for on_gpu in ((True, True), (True, False), (False, True), (False, False)):
                    count = random.randrange(1, 2 * blocks + 2)
                    out = [self.room(count * size) if there else None
                           for there, size in zip(on_gpu, (blocks, block_bytes))]
                    made = encoder.batch(count, out)
                    found = [self.gpu.bytes(one) if there else one for there, one in zip(on_gpu, made)]
                    self.assertEqual(found, list(scalar.batch(count)), (blocks, block_bytes, options, on_gpu, count))
                    self.assertEqual([a is b for a, b in zip(made, out)], list(on_gpu))

    def test_many_segments_at_once(self):
        shapes = [weft.SegmentId(1, i, *shape) for i, shape in enumerate(self.SHAPES)]
        both = [self.encoders(shape, random.randbytes(shape.bytes)) for shape in shapes]
        out = [(self.room(9 * shape.blocks), self.room(9 * shape.block_bytes)) for shape in shapes]
        weft.Encoder.batches([encoder for encoder, _ in both], 9, out)
        expected = weft.Encoder.batches([scalar for _, scalar in both], 9)
        self.assertEqual([tuple(map(self.gpu.bytes, pair)) for pair in out], expected)

    def test_rows_that_lie_apart(self):
        shape = weft.SegmentId(1, 1, 20, 300)
        encoder, scalar = self.encoders(shape, random.randbytes(shape.bytes))
        (coefficients, free), (payloads, free_too) = self.rows(20, 20, 37), self.rows(20, 300, 512)
        encoder.batch(20, (coefficients, payloads))
        expected = scalar.batch(20)
        self.assertEqual((self.gpu.bytes(coefficients), self.gpu.bytes(payloads)), expected)
        again, between = self.rows(20, 300, 333)
        self.assertIs(encoder.combine(coefficients, again), again)
        self.assertEqual(self.gpu.bytes(again), expected[1])
        decoded, free_as_well = self.rows(20, 300, 1000)
        self.assertEqual(weft.decode_batch(self.context, [(coefficients, payloads)], [decoded]), [decoded])
        self.assertEqual(self.gpu.bytes(decoded), weft.decode_batch(self.host, [expected])[0])
        self.assertTrue(free() and free_too() and between() and free_as_well())

    def test_coefficients_of_ones_own(self):
        shape = weft.SegmentId(1, 1, 20, 300)
        encoder, scalar = self.encoders(shape, random.randbytes(shape.bytes))
        coefficients = random.randbytes(7 * 20)
        expected, there = scalar.combine(coefficients), self.gpu.new(coefficients)
        self.assertEqual(encoder.combine(there), expected)
        for given in (there, coefficients):
            self.assertEqual(self.gpu.bytes(encoder.combine(given, self.room(7 * 300))), expected)

    def test_decoding_many_segments(self):
        segments, data = [], []
        for i, (blocks, block_bytes) in enumerate(self.SHAPES):
            shape = weft.SegmentId(1, i, blocks, block_bytes)
            data.append(random.randbytes(shape.bytes))
            matrix = bytearray(blocks * blocks)
            matrix[::blocks + 1] = bytes(random.randrange(1, 256) for _ in range(blocks))
            segments.append((matrix, weft.Encoder(self.host, shape, data[-1]).combine(matrix)))
        segments.append((bytes(4), bytes(14)))
        out = [self.room(len(payloads)) for _, payloads in segments]
        for there in (lambda matrix: self.gpu.new(matrix), lambda matrix: matrix):
            given = [(there(matrix), self.gpu.new(payloads)) for matrix, payloads in segments]
            found = weft.decode_batch(self.context, given, out)
            self.assertEqual(found, [*out[:-1], None])
            self.assertEqual([self.gpu.bytes(one) for one in found[:-1]], data)

    def test_data_is_copied(self):
        shape = weft.SegmentId(1, 1, 20, 300)
        data = random.randbytes(shape.bytes)
        array = self.gpu.new(data)
        encoder, gone = weft.Encoder(self.context, shape, array), weakref.ref(array)
        self.gpu.write(array.__cuda_array_interface__["data"][0], bytes(len(data)))
        gc.disable()
        try:
            del array
            self.assertIsNone(gone())  # nobody has it
        finally:
            gc.enable()
        unit = bytearray(20)
        unit[3] = 1
        self.assertEqual(encoder.combine(unit), data[900:1200])

    def test_what_is_given_is_there_until_the_call_is_over(self):
        """Also what nobody else has, as the rows of a matrix."""
        code, freed = weft.Code(self.context, "cauchy", 3, 2), []

        class Row(Array):
            def __del__(self):
                freed.append(1)

        class Rows:
            def __init__(self, addresses):
                self.addresses = addresses

            def __len__(self):
                return len(self.addresses)

            def __getitem__(self, which):
                return Row(self.addresses[which], (4096,))

        data = [random.randbytes(4096) for _ in range(3)]
        addresses = [self.gpu.address(shard) for shard in data]
        encode, during = _c.weft_code_encode, []

        def called(*arguments):
            status = encode(*arguments)
            during.append(len(freed))
            return status

        with unittest.mock.patch.object(_c, "weft_code_encode", called):
            out = [self.room(4096), self.room(4096)]
            code.encode(Rows(addresses), out)
        gc.collect()
        self.assertEqual((during, len(freed)), ([0], 3))
        self.assertEqual([self.gpu.bytes(one) for one in out], weft.Code(self.host, "cauchy", 3, 2).encode(data))


class Storage(OnDevice):
    def test_every_code(self):
        for name in weft.Code.names():
            m = 2 if name == "raid6" else 3
            code, scalar = weft.Code(self.context, name, 5, m), weft.Code(self.host, name, 5, m)
            size = random.choice((1, 1001, 65536, 300_000))
            data = [random.randbytes(size) for _ in range(5)]
            parity, there = scalar.encode(data), [self.gpu.new(shard) for shard in data]
            made = code.encode(there, [self.room(len(shard)) for shard in parity])
            self.assertEqual([self.gpu.bytes(shard) for shard in made], parity, (name, size))
            whole = there + made
            self.assertEqual(code.verify(whole), [])
            lost = random.sample(range(5 + m), m)
            wanted = random.sample(lost, random.randrange(1, m + 1))
            out = [self.room(len((data + parity)[i])) for i in wanted]
            found = code.recover([None if i in lost else shard for i, shard in enumerate(whole)], wanted, size, out)
            for i, shard in enumerate(found):
                self.assertIs(shard, out[wanted.index(i)] if i in wanted else None if i in lost else whole[i])
                if i in wanted:
                    self.assertEqual(self.gpu.bytes(shard), (data + parity)[i], (name, size, i))
            at = made[1].__cuda_array_interface__["data"][0]
            self.gpu.write(at, bytes([parity[1][0] ^ 1]))
            self.assertEqual(code.verify(whole), [6])

    def test_parity_follows_a_shard(self):
        for name in ("cauchy", "vandermonde", "cauchy_good"):
            code, scalar = weft.Code(self.context, name, 5, 2), weft.Code(self.host, name, 5, 2)
            data, new = [random.randbytes(10_001) for _ in range(5)], random.randbytes(10_001)
            parity, expected = scalar.encode(data), scalar.encode([*data[:3], new, data[4]])
            delta = self.gpu.new(bytes(a ^ b for a, b in zip(data[3], new)))
            there = [self.gpu.new(shard) for shard in parity]
            code.update(3, self.gpu.new(data[3]), self.gpu.new(new), there)
            self.assertEqual([self.gpu.bytes(shard) for shard in there], expected, name)
            code.add_delta(3, delta, [there[0], None])
            self.assertEqual([self.gpu.bytes(shard) for shard in there], [parity[0], expected[1]], name)
            made = code.parity_delta(3, delta, [self.room(len(shard)) for shard in parity])
            self.assertEqual([self.gpu.bytes(shard) for shard in made],
                             [bytes(a ^ b for a, b in zip(*both)) for both in zip(parity, expected)], name)

    def test_stripes_here_and_there_in_one_call(self):
        code, scalar = weft.Code(self.context, "cauchy", 4, 2), weft.Code(self.host, "cauchy", 4, 2)
        stripes = [[random.randbytes(size) for _ in range(4)] for size in (4096, 0, 70, 200_000, 4096)]
        expected = scalar.encode_stripes(stripes)
        on_gpu = [i % 2 == 0 for i in range(5)]
        given = [[self.gpu.new(shard) for shard in stripe] if there else stripe
                 for there, stripe in zip(on_gpu, stripes)]
        out = [[self.room(len(shard)) for shard in parity] if there else [None, None]
               for there, parity in zip(on_gpu, expected)]

        def fetched(made):
            return [[self.gpu.bytes(shard) for shard in stripe] if there else stripe
                    for there, stripe in zip(on_gpu, made)]

        made = code.encode_stripes(given, out)
        self.assertEqual(fetched(made), expected)
        lacking = [[None, *stripe[1:], parity[0], None] for stripe, parity in zip(given, made)]
        out = [[self.room(len(stripe[0]))] if there else [None] for there, stripe in zip(on_gpu, stripes)]
        found = code.recover_stripes(lacking, [0], out=out)
        self.assertEqual([self.gpu.bytes(one[0]) if there else one[0] for there, one in zip(on_gpu, found)],
                         [stripe[0] for stripe in stripes])

    def test_tensors_of_dlpack(self):
        code, data = weft.Code(self.context, "cauchy", 3, 2), [random.randbytes(4096) for _ in range(3)]
        given = [Tensor(self.gpu.address(b"12345678" + shard), (64, 8), bits=64, offset=8, version=version)
                 for shard, version in zip(data, (None, (1, 0), (1, 1)))]
        out = [self.room(4096), self.room(4096)]
        with unittest.mock.patch.object(weft._memory, "_wait", self.waits(waited := [])):
            code.encode(given, [Tensor(one.__cuda_array_interface__["data"][0], (4096,)) for one in out])
        self.assertEqual(waited, [1])
        self.assertEqual([tensor.asked[0]["stream"] for tensor in given], [1] * 3)
        self.assertEqual([self.gpu.bytes(one) for one in out], weft.Code(self.host, "cauchy", 3, 2).encode(data))

    @staticmethod
    def waits(noted):
        real = weft._memory._wait

        def wait(context, stream):
            noted.append(stream)
            if not DOUBLE:  # which has no default stream
                real(context, stream)

        return wait

    def test_arrays_whose_interface_knows_no_streams(self):
        """As PyTorch's, which says by DLPack what work is under way."""
        shard, asked = random.randbytes(4096), []

        class Torch(Array):
            def __dlpack__(self, stream):
                asked.append(stream)

        code = weft.Code(self.context, "matrix", 1, 1, parity=b"\1")
        for kind in (Torch, Array):
            out = self.room(4096)
            with unittest.mock.patch.object(weft._memory, "_wait", self.waits(waited := [])):
                code.encode([kind(self.gpu.address(shard), (4096,), version=2)], [out])
            self.assertEqual((waited, self.gpu.bytes(out)), ([1], shard))
        self.assertEqual(asked, [1])


class Matrix:
    """As much of an array of CuPy as the document's example asks for."""

    def __init__(self, gpu, at, rows, row_bytes):
        self.gpu, self.at, self.rows, self.row_bytes = gpu, at, rows, row_bytes

    def __len__(self):
        return self.rows

    def __getitem__(self, which):
        if isinstance(which, slice):
            first, end, _ = which.indices(self.rows)
            return Matrix(self.gpu, self.at + first * self.row_bytes, end - first, self.row_bytes)
        if which >= self.rows:
            raise IndexError
        return Array(self.at + which * self.row_bytes, (self.row_bytes,))

    def __eq__(self, other):
        same = [self.gpu.bytes(a) == self.gpu.bytes(b) for a, b in zip(self, other)]
        return types.SimpleNamespace(all=lambda: bool(same) and all(same))


class Document(OnDevice):
    def test_the_example(self):
        def matrix(shape, dtype):
            return Matrix(self.gpu, self.gpu.address(random.randbytes(shape[0] * shape[1])), *shape)

        cupy = types.ModuleType("cupy")
        cupy.uint8, cupy.empty = "|u1", matrix
        cupy.random = types.SimpleNamespace(randint=lambda low, high, shape, dtype: matrix(shape, dtype))
        with open(os.environ["WEFT_DOCUMENT"], encoding="utf-8") as document:
            example, = (part.split("```")[0] for part in document.read().split("```python cupy\n")[1:])
        own = unittest.mock.patch.object(weft, "Context", lambda backend: contextlib.nullcontext(self.context))
        with unittest.mock.patch.dict("sys.modules", cupy=cupy), own:  # whose memory the double's arrays are
            exec(compile(example, "the example", "exec"), {})


class Streams(OnDevice):
    BYTES, TIMES = (1 << 14, 40) if DOUBLE else (128 << 20, 200)

    def test_work_under_way_is_waited_for(self):
        """A producer copies on a stream of its own, many times, and what counts last; the array names the stream."""
        copying = weft.Code(self.context, "matrix", 1, 1, parity=b"\1")
        data, stream = random.randbytes(self.BYTES), self.gpu.stream()
        old, new, between = (self.gpu.address(some) for some in (bytes(self.BYTES), data, bytes(self.BYTES)))
        out = self.gpu.new(bytes(self.BYTES))
        for source in [old] * self.TIMES + [new]:
            self.gpu.copy_later(between, source, self.BYTES, stream)
        self.assertTrue(self.gpu.is_busy(stream), "the producer was done too soon to tell anything: more TIMES")
        copying.encode([Array(between, (self.BYTES,), stream=stream)], [out])
        self.assertTrue(self.gpu.bytes(out) == data, "what was read is older than what the stream's work wrote")

    def test_each_stream_is_waited_for_once(self):
        code = weft.Code(self.context, "cauchy", 2, 2)
        streams = [self.gpu.stream() for _ in range(2)]
        order = []
        real, encode = weft._memory._wait, _c.weft_code_encode
        with unittest.mock.patch.object(weft._memory, "_wait", lambda *a: (order.append(a[1]), real(*a))), \
                unittest.mock.patch.object(_c, "weft_code_encode", lambda *a: (order.append("call"), encode(*a))[1]):
            code.encode([Array(self.gpu.address(bytes(64)), (64,), stream=streams[0]),
                         Array(self.gpu.address(bytes(64)), (64,), stream=None)],
                        [Array(self.gpu.address(bytes(64)), (64,), stream=one) for one in streams])
        self.assertEqual(order, [*streams, "call"])


class Refused(OnDevice):
    """Each with an exception of Python's, and the device goes on working."""

    def setUp(self):
        super().setUp()
        self.code = weft.Code(self.context, "cauchy", 2, 1)
        self.shape = weft.SegmentId(1, 1, 4, 100)
        self.encoder = weft.Encoder(self.context, self.shape, bytes(400))

    def tearDown(self):
        if hasattr(self, "code"):
            data = [random.randbytes(100_000) for _ in range(2)]
            out = [self.room(100_000)]
            self.code.encode([self.gpu.new(shard) for shard in data], out)
            self.assertEqual([self.gpu.bytes(out[0])], weft.Code(self.host, "cauchy", 2, 1).encode(data))
        super().tearDown()

    def refused(self, kind, text, call):
        with self.assertRaisesRegex(kind, text):
            call()

    def test_a_mix_of_memories(self):
        here, there, out = bytearray(64), self.room(64), self.room(64)
        mixed = "lie in one memory"
        for call in (lambda: self.code.encode([there, here], [out]), lambda: self.code.encode([there, there]),
                     lambda: self.code.encode([here, here], [out]), lambda: self.code.verify([there, there, here]),
                     lambda: self.code.recover([None, there, there]), lambda: self.code.update(0, here, there, [out]),
                     lambda: self.code.update(0, there, there, [here]), lambda: self.code.add_delta(1, here, [out]),
                     lambda: self.code.parity_delta(1, there),
                     lambda: weft.decode_batch(self.context, [(bytes(16), self.room(400))]),
                     lambda: weft.decode_batch(self.context, [(self.room(16), bytes(400))], [self.room(400)])):
            self.refused(ValueError, mixed, call)

    def test_what_cannot_be_written(self):
        locked = self.room(400)
        locked.__cuda_array_interface__["data"] = locked.__cuda_array_interface__["data"][0], True
        self.refused(TypeError, "read-only", lambda: self.encoder.batch(4, (None, locked)))
        self.refused(TypeError, "read-only", lambda: self.code.encode([self.room(400), self.room(400)], [locked]))
        self.assertEqual(weft.Encoder(self.context, self.shape, locked).combine(bytes(4)), bytes(100))  # but read

    def test_sizes_and_layouts(self):
        strided = Array(self.gpu.address(bytes(800)), (400,), (2,))
        rows = Array(self.gpu.address(bytes(1000)), (2, 200), (500, 1))
        self.refused(ValueError, "one after the other", lambda: weft.Encoder(self.context, self.shape, strided))
        self.refused(ValueError, "one after the other", lambda: self.code.encode([rows, rows], [self.room(400)]))
        self.refused(ValueError, "payloads are 4 rows of 100 bytes, not the 2 of 200 that lie apart",
                     lambda: self.encoder.batch(4, (None, rows)))
        self.refused(ValueError, "payloads have 399 bytes", lambda: self.encoder.batch(4, (None, self.room(399))))
        self.refused(ValueError, "coefficients have 15 bytes", lambda: self.encoder.batch(4, (self.room(15), None)))
        self.refused(ValueError, "shard 2 has 63 bytes, not 64",
                     lambda: self.code.encode([self.room(64), self.room(64)], [self.room(63)]))
        self.refused(weft.Error, "401 bytes of data", lambda: weft.Encoder(self.context, self.shape, self.room(401)))

    def test_a_context_of_the_cpu(self):
        self.refused(ValueError, "computes on the CPU .scalar",
                     lambda: weft.Encoder(self.host, self.shape, self.room(400)))

    def test_calls_that_know_no_device(self):
        self.refused(TypeError, "host memory, and the Array is on a GPU",
                     lambda: weft.Decoder(self.context, self.shape).add(self.room(64)))

    @unittest.skipIf(DOUBLE, "no driver knows the double's memory")
    def test_memory_that_is_no_device_s(self):
        host = ctypes.create_string_buffer(400)
        self.refused(ValueError, "knows of no memory",
                     lambda: weft.Encoder(self.context, self.shape, Array(ctypes.addressof(host), (400,))))
        pinned = self.gpu.alloc(400, "cuMemHostAlloc", 0, free="cuMemFreeHost")
        self.refused(ValueError, "pinned memory", lambda: weft.Encoder(self.context, self.shape, Array(pinned, (400,))))

    @unittest.skipIf(DOUBLE, "the double has one context")
    def test_memory_of_another_cuda_context(self):
        other = ctypes.c_void_p()
        self.gpu.call("cuCtxCreate_v2", ctypes.byref(other), 0, 0)
        try:
            at = ctypes.c_uint64()
            self.gpu.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(400))
            self.gpu.call("cuCtxSetCurrent", self.gpu.cuda_context)
            self.refused(ValueError, "another CUDA context of GPU 0",
                         lambda: weft.Encoder(self.context, self.shape, Array(at.value, (400,))))
        finally:
            self.gpu.call("cuCtxDestroy_v2", other)
            self.gpu.call("cuCtxSetCurrent", self.gpu.cuda_context)

    @unittest.skipIf(DOUBLE, "there is one double")
    def test_memory_of_another_gpu(self):
        count = ctypes.c_int()
        self.gpu.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value < 2:
            self.skipTest("there is one GPU")
        with weft.Context(backend="cuda", device=1) as other:
            self.refused(ValueError, "an array on GPU 0, and a Context on GPU 1",
                         lambda: weft.Encoder(other, self.shape, self.room(400)))

    @unittest.skipIf(DOUBLE, "kinds of the driver's memory")
    def test_memory_of_other_kinds_is_taken(self):
        """That of pools, which JAX and others have theirs from, and managed memory."""
        data = random.randbytes(400)
        stream = ctypes.c_void_p()
        pool = self.gpu.alloc(400, "cuMemAllocAsync", stream)
        managed = self.gpu.alloc(400, "cuMemAllocManaged", 1)
        for at in (pool, managed):
            self.gpu.write(at, data)
            encoder = weft.Encoder(self.context, self.shape, Array(at, (400,)))
            self.assertEqual(encoder.combine(bytes([0, 1, 0, 0])), data[100:200])


if __name__ == "__main__":
    try:
        with device_context() as tried:
            print("%s, of %s" % (tried.backend, _c._name))
    except unittest.SkipTest as reason:
        print("SKIPPED: %s" % reason)
    main()
