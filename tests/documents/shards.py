# SPDX-License-Identifier: Apache-2.0
"""Reads and writes folders of shards, from docs/format.md alone."""

import collections
import os
import re
import secrets
import struct
from hashlib import blake2b

from chacha import poly1305
from codes import Code

HEADER = struct.Struct(">8sHHHHHBBIQQ16s32s64sQ32s")  # 192 bytes; then authentication, digest
FIELDS = ("magic version header_bytes k m shard keyed zero chunk length generation file_id file_key"
          " name update zeros")
JOURNAL = struct.Struct(">8sH6s16sQQQ32sQ")  # 96 bytes; then authentication
TRAILER = struct.Struct(">QQ16s")


def digest(data, key=b"", size=32):
    return blake2b(data, digest_size=size, key=key).digest()


class Header(collections.namedtuple("Header", FIELDS)):
    def packed(self, key):
        plain = HEADER.pack(*self)
        plain += digest(plain, key)
        return plain + digest(plain)

    def file_key_for(self, user_key):
        if bool(self.keyed) != (user_key is not None):
            raise ValueError("a key is missing, or one too many")
        if not self.keyed:
            return self.file_key
        return digest(b"weft store file\0" + self.file_id, digest(user_key))

    def shared(self):
        return self._replace(shard=0, generation=0, update=0)

    def code(self):
        return Code(self.name.rstrip(b"\0").decode(), self.k, self.m)


def read_header(data):
    """None where there is none."""
    if len(data) < 256 or digest(data[:224]) != data[224:256]:
        return None
    header = Header(*HEADER.unpack(data[:192]))
    in_range = (header.magic == b"WEFTSHRD" and header.version == 1 and header.header_bytes == 256
                and 1 <= header.k and header.k + header.m <= 256 and header.shard < header.k + header.m
                and header.keyed <= 1 and header.zero == 0 and 1 <= header.chunk <= 1 << 30
                and header.length <= 1 << 62 and 1 <= header.generation <= 1 << 62
                and re.fullmatch(rb"[^\0]+\0+", header.name) and not any(header.zeros)
                and not (header.keyed and any(header.file_key)))
    return header if in_range else None


def chunk_sizes(header, unit):
    """Of each stripe."""
    whole, rest = divmod(header.length, header.k * header.chunk)
    last = -(-rest // header.k)
    return [header.chunk] * whole + ([last + -last % unit] if rest else [])


def tag_key(file_key, stripe, shard, generation, nonce):
    return digest(struct.pack(">QH6xQQ", stripe, shard, generation, nonce), file_key)


def sealed_chunk(file_key, stripe, shard, generation, nonce, chunk):
    key = tag_key(file_key, stripe, shard, generation, nonce)
    return chunk + TRAILER.pack(generation, nonce, poly1305(key, chunk))


def opened_chunk(file_key, stripe, shard, newest, size, data):
    """None where it counts as lost."""
    if len(data) != size + 32:
        return None
    generation, nonce, tag = TRAILER.unpack(data[size:])
    key = tag_key(file_key, stripe, shard, generation, nonce)
    return data[:size] if generation <= newest and poly1305(key, data[:size]) == tag else None


class Journal:
    """What an update wrote: generation, update, the shards that take part, chunks with trailers."""

    def __init__(self, data, header, file_key, sizes):
        (magic, version, zeros, file_id, self.generation, records, length, shards,
         self.update) = JOURNAL.unpack(data[:96])
        if (magic, version, zeros, file_id) != (b"WEFTJRNL", 1, bytes(6), header.file_id) \
                or length != len(data) or digest(data[:96], file_key) != data[96:128]:
            raise ValueError("the journal's head is not intact")
        self.shards = [i for i in range(256) if shards[i // 8] >> i % 8 & 1]
        self.chunks, at, place = {}, 128, (-1, 0)
        for _ in range(records):
            stripe, shard = struct.unpack(">QH6x", data[at:at + 16])
            tag = digest(data[at:at + 16] + self.generation.to_bytes(8, "big"), file_key, 16)
            if tag != data[at + 16:at + 32] or (stripe, shard) <= place or stripe >= len(sizes):
                raise ValueError("a record of the journal is not intact")
            place = stripe, shard
            self.chunks[place] = data[at + 32:at + 64 + sizes[stripe]]
            at += 64 + sizes[stripe]
        if at != len(data):
            raise ValueError("the journal's records are not all")


class Folder:
    """A set of shards: which files count, and what they hold."""

    def __init__(self, path, user_key=None):
        files = {}
        for name in sorted(os.listdir(path)):
            if re.fullmatch(r"shard-\d{3}\.weft(\.new)?", name):
                with open(os.path.join(path, name), "rb") as file:
                    files[name] = file.read()
        headers = {name: read_header(data) for name, data in files.items()}
        groups = collections.defaultdict(list)
        for name, header in headers.items():
            if header:
                groups[header.shared()].append(name)
        groups, proven = list(groups.values()), []
        if user_key is not None:  # who lacks it has no vote beside those who have it
            proven = [[name for name in names if headers[name].keyed and digest(
                files[name][:192], headers[name].file_key_for(user_key)) == files[name][192:224]]
                      for names in groups]
        final = [[names for names in some if any(name.endswith(".weft") for name in names)]
                 for some in (proven, groups)]
        groups = final[0] or final[1]
        if not groups:
            raise ValueError("no shards")
        names = max(groups, key=lambda names: len({headers[name].shard for name in names}))
        header = headers[names[0]]
        self.header, self.code = header, header.code()
        self.key, self.sizes = header.file_key_for(user_key), chunk_sizes(header, self.code.unit)
        names = [name for name in names
                 if digest(files[name][:192], self.key) == files[name][192:224]]
        if not names:
            raise ValueError("all shards are forged")
        self.journal = None
        if os.path.exists(os.path.join(path, "update.journal")):
            with open(os.path.join(path, "update.journal"), "rb") as file:
                self.journal = Journal(file.read(), header, self.key, self.sizes)
        states = {}
        for name in names:
            shard, state = headers[name].shard, (headers[name].generation, headers[name].update)
            if self.journal and shard in self.journal.shards \
                    and state[0] == self.journal.generation - 1:
                state = self.journal.generation, self.journal.update
            states[name] = state
        used = self.newest(states, headers)
        self.shards = {}
        for shard in range(header.k + header.m):
            final = "shard-%03d.weft" % shard
            mine = [name for name in used if headers[name].shard == shard]
            mine.sort(key=lambda name: (name != final, name != final + ".new"))
            if mine:
                self.shards[shard] = files[mine[0]]

    def newest(self, states, headers):
        """The names in the state that counts: a generation, and the update that made it."""
        counts = {state: len({headers[name].shard for name in states if states[name] == state})
                  for state in states.values()}
        k = self.header.k
        best = max(counts, key=lambda state: (counts[state] >= k, state[0], counts[state]))
        self.generation = best[0]
        if max(counts)[0] > best[0]:
            raise ValueError("newer shards are too few: somebody has to choose")
        if sum(state[0] == best[0] and count >= k for state, count in counts.items()) > 1:
            raise ValueError("two updates of one generation: somebody has to choose")
        if self.journal and best != (self.journal.generation, self.journal.update):
            raise ValueError("not the journal of these shards")
        return [name for name, state in states.items() if state == best]

    def chunk(self, stripe, shard):
        size = self.sizes[stripe]
        at = 256 + stripe * (self.header.chunk + 32)
        data = self.shards[shard][at:at + size + 32] if shard in self.shards else b""
        if self.journal and shard in self.journal.shards:
            data = self.journal.chunks.get((stripe, shard), data)
        return opened_chunk(self.key, stripe, shard, self.generation, size, data)

    def stripe(self, stripe):
        """Chunks by shard, None where lost."""
        return {shard: self.chunk(stripe, shard) for shard in range(self.header.k + self.header.m)}

    def data(self):
        whole = b"".join(b"".join(self.code.recover(self.stripe(s))) for s in range(len(self.sizes)))
        return whole[:self.header.length]

    def wrong_parity(self):
        """(stripe, shard) whose bytes are not what the code makes of the data."""
        wrong = []
        for stripe in range(len(self.sizes)):
            there = self.stripe(stripe)
            made = self.code.encode(self.code.recover(there))
            wrong += [(stripe, shard) for shard, chunk in there.items()
                      if chunk is not None and chunk != made[shard]]
        return wrong


def stripes_of(data, header, unit):
    """The data chunks of each stripe."""
    at = 0
    for size in chunk_sizes(header, unit):
        part = data[at:at + size * header.k].ljust(size * header.k, b"\0")
        at += size * header.k
        yield [part[i * size:(i + 1) * size] for i in range(header.k)]


def write(path, data, name, k, m, chunk, user_key=None):
    """A set of shards with that data."""
    header = Header(b"WEFTSHRD", 1, 256, k, m, 0, int(user_key is not None), 0, chunk, len(data), 1,
                    secrets.token_bytes(16), bytes(32) if user_key else secrets.token_bytes(32),
                    name.encode().ljust(64, b"\0"), 0, bytes(32))
    key, code, nonce = header.file_key_for(user_key), header.code(), secrets.randbits(64)
    shards = [header._replace(shard=shard).packed(key) for shard in range(k + m)]
    for stripe, chunks in enumerate(stripes_of(data, header, code.unit)):
        for shard, chunk_bytes in enumerate(code.encode(chunks)):
            shards[shard] += sealed_chunk(key, stripe, shard, 1, nonce, chunk_bytes)
    os.mkdir(path)
    for shard, content in enumerate(shards):
        with open(os.path.join(path, "shard-%03d.weft" % shard), "wb") as file:
            file.write(content)


def write_journal(path, folder, data, shards):
    """As an update to that data that was cut off before it reached a shard; returns its number."""
    generation, update, nonce = folder.generation + 1, secrets.randbits(64) or 1, secrets.randbits(64)
    records, count = b"", 0
    for stripe, chunks in enumerate(stripes_of(data, folder.header, folder.code.unit)):
        before = folder.stripe(stripe)
        for shard, chunk in enumerate(folder.code.encode(chunks)):
            if shard in shards and chunk != before[shard]:
                head = struct.pack(">QH6x", stripe, shard)
                records += head + digest(head + generation.to_bytes(8, "big"), folder.key, 16)
                records += sealed_chunk(folder.key, stripe, shard, generation, nonce, chunk)
                count += 1
    bits = sum(1 << shard for shard in shards).to_bytes(32, "little")
    head = JOURNAL.pack(b"WEFTJRNL", 1, bytes(6), folder.header.file_id, generation, count,
                        128 + len(records), bits, update)
    with open(os.path.join(path, "update.journal"), "wb") as file:
        file.write(head + digest(head, folder.key) + records)
    return update
