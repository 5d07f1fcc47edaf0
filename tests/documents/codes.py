# SPDX-License-Identifier: Apache-2.0
"""The erasure codes of docs/format.md: matrices, and what they make of chunks."""

from galois import Field, GF256, sum_of_products, xor


def systematic(field, rows, k):
    """Rows whose first k are made the identity by operations on columns."""
    return field.multiply(rows, field.invert(rows[:k]))


def vandermonde(field, k, m):
    return systematic(field, [[field.power(r, c) for c in range(k)] for r in range(k + m)], k)[k:]


def reed_sol_van(field, k, m):
    rows = [[field.power(r, c) for c in range(k)] for r in range(k + m - 1)]
    rows.append([0] * (k - 1) + [1])
    parity = systematic(field, rows, k)[k:]
    first = parity[0]
    parity = [[field.divide(a, b) for a, b in zip(row, first)] for row in parity]
    return [[field.divide(a, row[0]) for a in row] for row in parity]


def cauchy(field, k, m):
    return [[field.inverses[(k + i) ^ j] for j in range(k)] for i in range(m)]


def isal_rs(field, k, m):
    return [[field.power(field.power(2, i), j) for j in range(k)] for i in range(m)]


def par1(field, k, m):
    return [[field.power(j + 1, i) for j in range(k)] for i in range(m)]


def raid6(field, k, m):
    return [[1] * k, [field.power(2, j) for j in range(k)]]


def cauchy_orig(field, k, m):
    return [[field.inverses[i ^ (m + j)] for j in range(k)] for i in range(m)]


def ones(field, element):
    """Ones of the element's matrix of bits."""
    return sum(bin(column).count("1") for column in columns(field, element))


def columns(field, element):
    return [field.times(element, 1 << x) for x in range(field.w)]


def cauchy_good(field, k, m):
    if m == 2:
        best = sorted(range(1, field.size), key=lambda element: (ones(field, element), element))
        return [[1] * k, best[:k]]
    rows = cauchy_orig(field, k, m)
    first = rows[0] if rows else []
    rows = [[field.divide(a, b) for a, b in zip(row, first)] for row in rows]

    def weight(row):
        return sum(ones(field, a) for a in row)
    for i in range(1, m):
        # The first that makes it least, the row as it is before all others.
        rows[i] = min([rows[i]] + [[field.divide(a, b) for a in rows[i]] for b in rows[i]], key=weight)
    return rows


RS = {"vandermonde": vandermonde, "cauchy": cauchy, "reed_sol_van": reed_sol_van,
      "isal_rs": isal_rs, "par1": par1, "raid6": raid6}
CRS = {"cauchy_orig": cauchy_orig, "cauchy_good": cauchy_good, "gcrs": cauchy_orig,
       "perasure": cauchy_orig}


class Code:
    """One code by the name that a header carries."""

    def __init__(self, name, k, m):
        base, *settings = name.split(":")
        settings = dict(setting.split("=") for setting in settings)
        self.crs = base in CRS
        if not self.crs and base not in RS:
            raise ValueError("unknown code " + name)
        self.field = Field(int(settings["w"])) if self.crs else GF256
        self.packet = int(settings["packet"]) if self.crs else 1
        self.unit = self.field.w * self.packet if self.crs else 1
        self.k = k
        self.parity = (CRS if self.crs else RS)[base](self.field, k, m)

    def row(self, shard):
        return [int(j == shard) for j in range(self.k)] if shard < self.k else self.parity[shard - self.k]

    def combine(self, coefficients, chunks):
        """One chunk: the sum of coefficient times chunk."""
        length = len(chunks[0])
        if not self.crs:
            return sum_of_products(coefficients, chunks, length)
        planes, w, packet = [[] for _ in range(self.field.w)], self.field.w, self.packet
        for coefficient, chunk in zip(coefficients, chunks):
            for x, column in enumerate(columns(self.field, coefficient)):
                plane = b"".join(chunk[at:at + packet] for at in range(x * packet, length, w * packet))
                for y in range(w):
                    if column >> y & 1:
                        planes[y].append(plane)
        planes = [xor(plane, length // w) for plane in planes]
        return b"".join(planes[y][at:at + packet] for at in range(0, length // w, packet) for y in range(w))

    def encode(self, data):
        return data + [self.combine(row, data) for row in self.parity]

    def recover(self, chunks):
        """All k data chunks from any k: chunks by shard, None or missing where lost."""
        there = sorted(shard for shard, chunk in chunks.items() if chunk is not None)[:self.k]
        if len(there) < self.k:
            raise ValueError("too few chunks")
        inverse = self.field.invert([self.row(shard) for shard in there])
        return [chunks[i] if i in there else self.combine(inverse[i], [chunks[s] for s in there])
                for i in range(self.k)]
