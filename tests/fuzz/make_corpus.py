#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets' corpora; the same files every time.

    tests/fuzz/make_corpus.py     from the root of the tree

Files called seed-* are made here; others were found by the fuzzer (tools/fuzz/run --keep).
"""
import hashlib
import pathlib
import random
import re
import struct

HERE = pathlib.Path(__file__).resolve().parent
WIRE = HERE.parent.parent / "docs" / "wire.md"
MODES = {"systematic": 0, "vector": 1, "dense": 2, "sparse": 3}


def write(target, name, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ("seed-" + name)).write_bytes(data)


def packets():
    """The vectors of docs/wire.md, good and bad."""
    for number, line in enumerate(re.findall(r"^(?:packet|session|reject) .*", WIRE.read_text(), re.M)):
        write("packet", f"{number:02}-{line.split()[0]}", bytes.fromhex(line.split(" : ")[1]))
    write("packet", "widest", struct.pack(">BBHIQQ", 1, 1, 1024, 1, 5, 6) + bytes(range(256)) * 4 + b"\x07")


def vector(coefficients):
    return bytes([1]) + bytes(coefficients) + b"\0"  # the step for this mode, the coefficients, an unused density


def decoders():
    """Programs of decoder_fuzz.c: n - 1, k - 1, the recoder's capacity, then steps."""
    draw = random.Random(1)
    ask = bytes([6, 7])
    for n, k in [(1, 1), (2, 3), (5, 8), (16, 40)]:
        head = bytes([n - 1, k - 1, n // 2])
        systematic = b"".join(bytes([0, i, 0]) + ask for i in range(n))
        dense = b"".join(vector([draw.randrange(1, 256) for _ in range(n)]) for _ in range(n + 1))
        seeded = b"".join(bytes([2 + i % 2]) + struct.pack(">Q", i) + b"\xff" for i in range(2 * n))
        # Each vector adds one more block: every vector makes a block known.
        growing = b"".join(vector([9 * j + 1 & 255 if j <= i else 0 for j in range(n)]) + ask for i in range(n))
        # The reverse: no block is known before the last vector.
        falling = b"".join(vector([7 * j + 3 & 255 if j >= i else 0 for j in range(n)]) + ask for i in range(n))
        mixed = b"".join(
            bytes([0, draw.randrange(n), 0]) + vector([draw.randrange(256) if draw.random() < 0.4 else 0 for _ in range(n)]) +
            bytes([5, 13, 21]) + ask for _ in range(n))
        raw = b"".join(bytes([4, place, 1 << place % 8]) + bytes([5]) for place in range(24)) + bytes([4, 0, 0, 3])
        for name, steps in [("systematic", systematic), ("dense", dense), ("seeded", seeded), ("growing", growing),
                            ("falling", falling), ("mixed", mixed), ("refused", systematic[:5] + raw)]:
            write("decoder", f"{n:02}x{k:02}-{name}", head + steps + ask)


def engines():
    """Conversations of engine_fuzz.c (n = 4, k = 16, window 3), as docs/protocol.md has the messages."""

    def step(neighbour, message, wait=1):
        return bytes([wait << 1 | neighbour, len(message)]) + message

    def note(kind, word, number):
        return struct.pack(">BBHQ", 1, kind, word, number)

    def ranks(first, horizon, end, *counts):
        head = struct.pack(">BBHQQQIIIHHHH", 1, 17, int(end > 0), first, horizon, end, 9, 1, 0, 2, len(counts), 0, 0)
        return head + struct.pack(f">{len(counts)}H", *counts)

    def block(segment, index, n=4, payload=bytes(range(16))):
        return struct.pack(">BBHQH", 1, 0, n, segment, index) + payload

    def manifest(segment, n=4, size=64, last=0, at=0, digest=bytes(32)):
        return struct.pack(">BBHQHHIQQI", 1, 22, last, segment, n, 0, size, at, 5, 0) + digest + bytes(64)

    def checksum(segment, made):
        return struct.pack(">BBHQQQ", 1, 23, 4, segment, made, 77) + bytes(64 + 32)

    def revealed(segment, made):
        return struct.pack(">BBHQQ", 1, 24, 0, segment, made)

    def request(*entries):
        return struct.pack(">BBHQ", 1, 25, len(entries), 0) + b"".join(struct.pack(">QHHQ", *e) for e in entries)

    def refer(flags, *addresses):
        return bytes([1, 26, flags, len(addresses)]) + b"".join(bytes([len(a)]) + a for a in addresses)

    def meet(flags, *addresses):
        return bytes([1, 27]) + refer(flags, *addresses)[2:]

    def pace(sent, stamp):
        return struct.pack(">BBHII", 1, 20, 0, sent, stamp)

    def ack(sent, received):
        return struct.pack(">BBHIIIII", 1, 21, 0, sent, received, 1000, 9, 10)

    hello = struct.pack(">BBHQHHIIII", 1, 16, 1, 7, 4, 3, 16, 1, 0, 0)
    both = step(0, hello) + step(1, hello)
    blocks = b"".join(step(i % 2, block(s, i)) for s in range(3) for i in range(4))
    last = step(0, block(3, 0, 1))
    conversations = {
        "received": both + blocks + step(0, ranks(3, 4, 3 * 64 + 5)) + last + step(1, ranks(4, 4, 3 * 64 + 5)),
        "late": both + blocks + blocks + step(0, block(9, 0)) + step(0, note(18, 0, 1)),
        "served": both + step(0, ranks(0, 1, 0, 0, 0, 0)) * 5 + step(1, ranks(1, 1, 0, 2, 2)) + step(0, note(18, 0, 0)) * 2,
        "farewell": both + step(0, ranks(0, 0, 0, 0, 0, 0)) + step(0, note(19, 0, 0)) + step(1, note(19, 1, 0)) + blocks,
        "strangers": step(0, block(0, 0)) + step(1, ranks(0, 1, 0)) + step(0, hello[:-1]) + step(0, hello[:4] + hello),
        "silence": both + step(0, b"", 127) * 64,
    }
    manifests = b"".join(step(0, manifest(s, at=s * 1000)) for s in range(3))
    asked = [(0, 0, 3, 0), (0, 1, 0, 9), (1, 2, 0, 0), (1, 3, 0, 0), (1 << 48, 2, 0, 0)]
    trusting = {
        "signed": both + manifests + blocks + step(0, manifest(3, 1, 5, 1)) + last + step(0, block(3, 0, 1)),
        "ended": both + step(0, manifest(2, 0, 0, 1, 128)) + step(1, ranks(0, 2, 128, 0, 0)) + manifests + blocks,
        "revealed": both + manifests + step(1, block(0, 0), 60) + step(1, revealed(0, 9)) + step(1, checksum(0, 400000)) + blocks,
        "asked": both + step(0, ranks(0, 1, 0, 0, 0, 0)) + step(0, request(*asked)) * 3 + step(1, request(asked[0])) * 9,
        "referred": both + step(0, refer(1)) + step(0, refer(0, b"ab", b"cde")) + step(0, refer(4, b"gh", b"ab")) + step(1, refer(6, b"f" * 20)) + step(0, b"", 127) * 9,
        "met": both + step(0, b"", 127) * 3 + step(0, refer(0, b"cd", b"e")) + step(0, meet(0, b"a", b"b", b"x")) + step(1, meet(1, b"yz")) + step(0, b"", 100) * 9,
        "paced": both + step(0, ranks(0, 1, 0, 0, 0, 0)) + step(0, ack(1, 1)) + step(0, ack(3, 1)) + step(0, pace(4, 7)) + step(1, pace(1, 9)),
    }
    # One neighbour sends blocks of zeros, which match the checksum and the digest; the other sends others and is convicted.
    zeros = hashlib.blake2b(bytes(64), digest_size=32).digest()
    right = b"".join(step(0, manifest(s, at=s * 1000, digest=zeros)) for s in range(3))
    truth = [step(1, block(0, i, payload=bytes(16))) for i in range(4)]
    false = step(0, block(0, 2)) + step(0, block(0, 3))
    judged = both + right + truth[0] + truth[1] + false + truth[2] + step(1, b"", 12) + step(1, checksum(0, 76000), 3)
    trusting["judged"] = judged + step(1, revealed(0, 90000)) + truth[2] + truth[3] + step(1, checksum(1, 99000))
    trusting["settled"] = both + right + truth[0] + false[: len(false) // 2] + truth[2] + truth[3] + truth[1] + blocks
    # The engine gets nine segments, holds three of them, and gives them to a neighbour that lacks all, then catches up.
    nine = b"".join(step(0, block(s, i)) for s in range(9) for i in range(4))
    lags = both + step(0, ranks(9, 9, 9 * 64)) + nine + b"".join(step(1, ranks(s, 9, 9 * 64, 0, 0, 0), 9) for s in (0, 0, 3, 1, 6, 0))
    for how in (0x06, 0x07, 0x0E, 0x0F, 0x26, 0x27):
        write("engine", f"lags-{how:02x}", bytes([how]) + lags)
    for name, steps in conversations.items():
        write("engine", name + "-receiver", b"\0" + steps)
        write("engine", name + "-source", b"\1" + steps)
    # Modes and tables of engine_fuzz.c: live, VoD, trust, checksums, blocks, congestion.
    for name, steps in {**conversations, **trusting}.items():
        for how in (0x0C, 0x1C, 0x0A, 0x2C, 0x48, 0x49, 0x0D, 0x1D, 0x2D, 0x8A, 0x8B):
            if name in trusting or how in (0x1C, 0x2D):
                write("engine", f"{name}-{how:02x}", bytes([how]) + steps)


def sessions():
    """What a network does to two nodes that want a session (session_fuzz.c)."""
    opened = bytes(12)
    write("session", "opened", opened + bytes([4, 3, 0, 3, 3, 0, 1]))
    write("session", "moved", opened + bytes([4, 2, 6, 6, 0, 0, 0, 4, 1, 0, 0]))
    write("session", "renewed", opened + (bytes([4, 2, 5, 50, 0, 0]) + bytes(8)) * 6)
    write("session", "late", opened + bytes([4, 2, 5, 120]) + bytes(8) + bytes([5, 255, 3, 0, 5, 255, 5, 255, 0, 0]) * 6)


def stores():
    """Heads of shards and journals (docs/format.md); the fuzzer makes their digests fit."""
    for name, k, m, shard, keyed, chunk, length, code in [
        ("plain", 10, 4, 13, 0, 4096, 12345678, b"cauchy"),
        ("keyed", 1, 0, 0, 1, 1, 0, b"raid6"),
        ("widest", 255, 1, 255, 0, 1 << 30, 1 << 62, b"cauchy_good:w=8:packet=4096"),
        ("refused", 200, 57, 0, 0, 0, 1, b""),
    ]:
        head = struct.pack(">8sHHHHHBBIQQ", b"WEFTSHRD", 1, 256, k, m, shard, keyed, 0, chunk, length, 3)
        write("store", name, head + bytes(range(16)) + bytes(32) + code.ljust(64, b"\0") + bytes(40))
    head = struct.pack(">8sH6x16sQQQ32s", b"WEFTJRNL", 1, bytes(range(16)), 3, 2, 999, b"\xff\x03")
    write("store", "journal", head + bytes(8) + bytes(32) + struct.pack(">QH6x16x", 77, 12))


def words():
    """What strangers tell a node (docs/peer/tracker.md), and ask its HTTP output for (words_fuzz.c)."""
    shape = struct.pack(">HHIQQQII", 64, 0, 1024, 5, 2500000, 0, 3000, 0)
    for role, mode in enumerate([2, 2, 1, 0]):
        write("words", f"role-{role}", bytes([0, 1, role, mode, 3]) + (shape if role else bytes(40)) + bytes(range(32)))
    most = struct.pack(">HHIQQQII", 1024, 0, 100, 2**64 - 1, 2**64 - 1, 2**64 - 1, 2**32 - 1, 0)
    write("words", "role-most", bytes([0, 1, 2, 2, 3]) + most + bytes(32))
    v4 = bytes(10) + b"\xff\xff" + bytes([192, 0, 2, 1]) + struct.pack(">H", 7000)
    link = b"\xfe\x80" + bytes(5) + b"\x01" + bytes(7) + b"\x01" + struct.pack(">H", 7000)
    write("words", "announce", bytes([1, 1, 64, 0, 1]) + struct.pack(">Q", 5))
    write("words", "list", bytes([2, 1, 65, 0, 2]) + struct.pack(">Q", 5) + v4 + link)
    write("words", "list-source", bytes([2, 1, 65, 1, 1]) + struct.pack(">Q", 5) + v4)
    write("words", "meet", bytes([3, 1, 66, 0, 1]) + v4)
    write("words", "mapped", bytes([4, 1, 67, 0, 0]) + v4)
    write("words", "unmapped", bytes([4, 1, 67, 0, 0]) + bytes(18))
    for name, text in [("v4", "1.2.3.4:7000"), ("v6", "[2001:db8::1]:0"), ("any", ":7000"), ("link", "[fe80::1%1]:9")]:
        write("words", f"address-{name}", bytes([5]) + text.encode())
    for name, text in [("all", "bytes=0-"), ("some", "bytes=5-99"), ("last", "bytes=-1"), ("far", f"bytes={2**64}-"), ("none", "bytes=5x")]:
        write("words", f"range-{name}", bytes([6]) + struct.pack(">Q", 100) + text.encode())
    write("words", "media-ts", bytes([7]) + (b"G" + bytes(187)) * 5)
    write("words", "media-mp4", bytes([7, 0, 0, 0, 32]) + b"ftypisom")


packets()
decoders()
engines()
sessions()
stores()
words()
