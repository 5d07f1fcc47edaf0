# SPDX-License-Identifier: Apache-2.0
"""GF(2^w), w = 2 ... 8, as docs/format.md and docs/wire.md have it."""

POLYNOMIALS = {2: 0x7, 3: 0xB, 4: 0x13, 5: 0x25, 6: 0x43, 7: 0x89, 8: 0x11D}


class Field:
    def __init__(self, w):
        self.w, self.size = w, 1 << w
        powers = [1]  # of 2, which generates all but 0
        while len(powers) < self.size - 1:
            power = powers[-1] << 1
            powers.append(power ^ POLYNOMIALS[w] if power & self.size else power)
        logs = {power: exponent for exponent, power in enumerate(powers)}
        self.products = [bytes(powers[(logs[a] + logs[b]) % len(powers)] if a and b else 0
                               for b in range(self.size)) for a in range(self.size)]
        self.inverses = [0] + [powers[-logs[a] % len(powers)] for a in range(1, self.size)]

    def times(self, a, b):
        return self.products[a][b]

    def divide(self, a, b):
        return self.products[a][self.inverses[b]]

    def power(self, a, exponent):
        result = 1
        for _ in range(exponent):
            result = self.products[result][a]
        return result  # of 0: 1

    def dot(self, left, right):
        result = 0
        for a, b in zip(left, right):
            result ^= self.products[a][b]
        return result

    def multiply(self, left, right):
        columns = list(zip(*right))
        return [[self.dot(row, column) for column in columns] for row in left]

    def invert(self, matrix):
        """Gauss and Jordan; ValueError where there is no inverse."""
        n = len(matrix)
        rows = [list(row) + [int(i == j) for j in range(n)] for i, row in enumerate(matrix)]
        for i in range(n):
            pivot = next((j for j in range(i, n) if rows[j][i]), None)
            if pivot is None:
                raise ValueError("singular")
            rows[i], rows[pivot] = rows[pivot], rows[i]
            by = self.products[self.inverses[rows[i][i]]]
            rows[i] = [by[a] for a in rows[i]]
            for j in range(n):
                if j != i and rows[j][i]:
                    by = self.products[rows[j][i]]
                    rows[j] = [a ^ by[b] for a, b in zip(rows[j], rows[i])]
        return [row[n:] for row in rows]


def xor(blocks, length):
    """The sum of byte strings of that length."""
    total = 0
    for block in blocks:
        total ^= int.from_bytes(block, "little")
    return total.to_bytes(length, "little")


GF256 = Field(8)


def sum_of_products(coefficients, blocks, length):
    """Sum of c_i times block i over GF(2^8), byte by byte."""
    return xor((block.translate(GF256.products[c]) if c != 1 else block
                for c, block in zip(coefficients, blocks) if c), length)
