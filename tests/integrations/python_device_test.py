# SPDX-License-Identifier: Apache-2.0
"""A context of a device, which is a double here; all that is asked of a CPU is asked of it, too."""

import random
import unittest

import weft
from python_support import main
from weft._declarations import _c

LOST, NO_MEMORY = 719, 2  # what CUDA calls them


class Device(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context(backend="cuda")
        self.shape = weft.SegmentId(1, 1, 32, 4096)
        self.data = random.randbytes(self.shape.bytes)

    def tearDown(self):
        _c.weft_double_inject(0, 0, 0)
        self.context.close()

    def test_names(self):
        self.assertEqual(self.context.backend, "cuda-double")
        self.assertIn(self.context.host_backend, [name for name, _, here in weft.backends() if here])
        self.assertNotEqual(self.context.host_backend, "cuda-double")
        with self.assertRaisesRegex(weft.Error, "WEFT_E_BACKEND_ABSENT"):
            weft.Context(backend="cuda", device=5)

    def test_products_are_the_devices(self):
        with weft.Encoder(self.context, self.shape, self.data) as encoder, weft.Context() as host:
            _c.weft_double_inject(0, 0, 0)
            coefficients, payloads = encoder.batch(32)
            self.context.trim()  # what follows allocates anew
            decoded = weft.decode_batch(self.context, [(coefficients, payloads)])
            self.assertGreater(_c.weft_double_calls(), 1)
            self.assertEqual(decoded, weft.decode_batch(host, [(coefficients, payloads)]))
            self.assertIn(decoded, ([self.data], [None]))

    def test_a_device_that_fails(self):
        encoder = weft.Encoder(self.context, self.shape, self.data)
        with weft.Context(backend=self.context.host_backend) as host:
            data = [random.randbytes(100_000) for _ in range(4)]
            parity = weft.Code(host, "cauchy", 4, 2).encode(data)
        _c.weft_double_inject(0, NO_MEMORY, 1)
        with self.assertRaisesRegex(weft.Error, "WEFT_E_DEVICE_NOMEM"):
            encoder.batch(32)
        _c.weft_double_inject(0, LOST, 1)
        with self.assertRaisesRegex(weft.Error, "WEFT_E_DEVICE_LOST"):
            encoder.batches([encoder], 32)
        _c.weft_double_inject(0, 0, 0)
        code, ends = weft.Code(self.context, "cauchy", 4, 2), set()
        for skip in range(8):  # storage goes on with the CPU, once it has a stream to wait for
            _c.weft_double_inject(skip, NO_MEMORY, 0)
            try:
                self.assertEqual(code.encode(data), parity)
                ends.add("same")
            except weft.Error as error:
                ends.add(error.name)
        self.assertIn("same", ends)
        self.assertLessEqual(ends, {"same", "WEFT_E_DEVICE_NOMEM"})


if __name__ == "__main__":
    main()
