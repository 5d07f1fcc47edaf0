# SPDX-License-Identifier: Apache-2.0
"""Storage codes."""

import random
import unittest

import weft
from python_support import main


class Storage(unittest.TestCase):
    def setUp(self):
        self.context = weft.Context()

    def test_every_code(self):
        for name in weft.Code.names():
            m = 2 if name == "raid6" else 3
            code = weft.Code(self.context, name, 5, m)
            self.assertTrue(code.name.startswith(name))
            data = [random.randbytes(1001) for _ in range(5)]
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
        stripes = [[random.randbytes(size) for _ in range(4)] for size in (100, 0, 64, 4096)]
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
        data = [random.randbytes(64) for _ in range(3)]
        whole = data + code.encode(data)
        shards = [None, *whole[1:4], None]
        for wanted in ([9], [-1], [1], [0, 0], [0, 4, 0]):
            with self.assertRaisesRegex(ValueError, "wanted are ids among the lost"):
                code.recover(shards, wanted)
        for wanted in ([4, 0], iter([0, 4])):
            self.assertEqual(code.recover(shards, wanted), whole)
        self.assertEqual(code.recover(shards, []), shards)

    def test_shards_from_an_iterator(self):
        code = weft.Code(self.context, "cauchy", 3, 2)
        data = [random.randbytes(64) for _ in range(3)]
        parity = code.encode(data)
        self.assertEqual(code.encode(iter(data)), parity)
        self.assertEqual(code.encode_stripes(iter(s) for s in (data, data)), [parity] * 2)
        self.assertEqual(code.verify(shard for shard in data + parity), [])
        self.assertEqual(code.recover(iter([None, *data[1:], *parity])), data + parity)
        code.update(0, data[0], data[1], iter(parity))
        self.assertEqual(code.verify(iter([data[1], *data[1:], *parity])), [])

    def test_a_matrix_of_ones_own(self):
        rows = bytes([1, 1, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4])
        code = weft.Code(self.context, "matrix", 4, 3, parity=rows)
        self.assertEqual(code.parity_matrix, rows)
        data = [random.randbytes(64) for _ in range(4)]
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
            data = [random.randbytes(1001) for _ in range(5)]
            parity, new = code.encode(data), random.randbytes(1001)
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
        with self.assertRaises(ValueError):
            weft.Code(self.context, "cauchy\0x", 3, 2)

    def test_an_empty_shard_among_others(self):
        """A file that a crash left empty, for example: wherever it is, it does not go with the others."""
        code, none = weft.Code(self.context, "cauchy", 3, 2), weft.Code(self.context, "cauchy", 3, 0)
        whole = [b"one", b"two", b"six"]
        whole += [bytes(parity) for parity in code.encode(whole)]
        for empty in range(3):
            data = [b"" if i == empty else shard for i, shard in enumerate(whole)]
            for refused in (lambda: code.encode(data[:3]), lambda: none.encode(data[:3]), lambda: code.verify(data),
                            lambda: none.verify(data[:3]), lambda: code.recover(data[:4] + [None]),
                            lambda: code.recover(whole[:4] + [None], data_bytes=0),
                            lambda: code.add_delta(empty, b"", [bytearray(3), bytearray(3)]),
                            lambda: code.encode([b"", b"", b""], [bytearray(3), bytearray(3)])):
                with self.assertRaises(ValueError):
                    refused()
        with self.assertRaises(ValueError):
            none.verify(whole[:2])


if __name__ == "__main__":
    main()
