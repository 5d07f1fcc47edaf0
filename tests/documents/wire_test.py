# SPDX-License-Identifier: Apache-2.0
"""packets.py against the vectors of docs/wire.md ($TESTED_DOCUMENT), and against itself."""

import os
import random
import re
import unittest

import packets
from fixture import SEED

MODES = {"systematic": packets.SYSTEMATIC, "vector": packets.VECTOR, "dense": packets.DENSE, "sparse": packets.SPARSE}


def vectors():
    """(words before the colon, settings among them, bytes after it) of each line."""
    with open(os.environ["TESTED_DOCUMENT"], encoding="utf-8") as file:
        text = file.read()
    for block in re.findall(r"```vectors\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            left, right = line.split(" : ")
            words = left.split()
            yield words, dict(word.split("=") for word in words if "=" in word), bytes.fromhex(right)


def mode_data(words, settings):
    for mode in MODES:
        if mode in words:
            data = int(settings.get("index", 0)).to_bytes(2, "big") if mode == "systematic" else b""
            data += bytes.fromhex(settings.get("coefficients", ""))
            data += int(settings["seed"], 16).to_bytes(8, "big") if "seed" in settings else b""
            data += int(settings["density"]).to_bytes(2, "big") if "density" in settings else b""
            return MODES[mode], data
    raise ValueError(words)


class Wire(unittest.TestCase):
    def test_vectors(self):
        kinds = {}
        for words, settings, data in vectors():
            with self.subTest(" ".join(words)):
                kinds[words[0]] = kinds.get(words[0], 0) + 1
                if words[0] == "reject":
                    error = {"WEFT_E_MALFORMED": packets.Malformed, "WEFT_E_VERSION": packets.Version}[words[1]]
                    with self.assertRaises(error):
                        packets.parse(data)
                    continue
                stream, segment, n = int(settings["stream"], 16), int(settings["segment"], 16), int(settings["n"])
                density = int(settings["density"]) if "density" in settings else None
                if words[0] == "coefficients":
                    found = packets.coefficients_of(stream, segment, int(settings["seed"], 16), n, density)
                    self.assertEqual(found, data)
                    continue
                payload = bytes.fromhex(settings["payload"])
                session = (stream, len(payload)) if words[0] == "session" else None
                found = packets.parse(data, session)
                self.assertEqual(found[:3] + found[4:], (stream, segment, n, payload))
                mode, extra = mode_data(words, settings)
                self.assertEqual(packets.written(found, mode, extra, session is not None), data)
        self.assertEqual(sorted(kinds), ["coefficients", "packet", "reject", "session"])

    def test_every_mode_decodes(self):
        rng = random.Random(SEED)
        n, k, stream, segment = 20, 50, rng.getrandbits(64), rng.getrandbits(64)
        blocks = [rng.randbytes(k) for _ in range(n)]
        decoder = packets.Decoder(n)
        for count in range(10 * n):
            seed = rng.getrandbits(64)
            mode, data, coefficients = rng.choice([
                (packets.SYSTEMATIC, (count % n).to_bytes(2, "big"), bytes(int(i == count % n) for i in range(n))),
                (packets.DENSE, seed.to_bytes(8, "big"), packets.coefficients_of(stream, segment, seed, n)),
                (packets.SPARSE, seed.to_bytes(8, "big") + (6554).to_bytes(2, "big"),
                 packets.coefficients_of(stream, segment, seed, n, 6554)),
                (packets.VECTOR, bytes([1] * n), bytes([1] * n))])
            payload = packets.sum_of_products(coefficients, blocks, k)
            datagram = packets.written(packets.Packet(stream, segment, n, None, payload), mode, data)
            packet = packets.parse(datagram)
            self.assertEqual(packet.coefficients, coefficients)
            decoder.add(packet.coefficients, packet.payload)
        self.assertEqual(decoder.rank, n)
        self.assertEqual(decoder.blocks(), blocks)


if __name__ == "__main__":
    unittest.main()
