# SPDX-License-Identifier: Apache-2.0
"""X25519 (RFC 7748) and Ed25519 (RFC 8032), for tests: nothing here is constant in time."""

from hashlib import sha512

P = (1 << 255) - 19
ORDER = (1 << 252) + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1


def x25519(secret, point=(9).to_bytes(32, "little")):
    k = int.from_bytes(secret, "little") & ~7 & ((1 << 255) - 1) | 1 << 254
    u = int.from_bytes(point, "little") & ((1 << 255) - 1)
    x2, z2, x3, z3, swapped = 1, 0, u, 1, 0
    for bit in range(254, -1, -1):
        if k >> bit & 1 != swapped:
            x2, z2, x3, z3, swapped = x3, z3, x2, z2, k >> bit & 1
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % P, b * b % P, d * a % P, c * b % P
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, (aa - bb) * (aa + 121665 * (aa - bb)) % P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, -1, P) % P if z2 else 0).to_bytes(32, "little")


def added(p, q):
    """Points are (X, Y, Z, T)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiple(factor, point):
    result = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            result = added(result, point)
        point = added(point, point)
        factor >>= 1
    return result


def unpacked(data):
    """A point, or None."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def packed(point):
    inverse = pow(point[2], -1, P)
    return (point[1] * inverse % P | (point[0] * inverse % P & 1) << 255).to_bytes(32, "little")


BASE = unpacked((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def hashed(*parts):
    return int.from_bytes(sha512(b"".join(parts)).digest(), "little") % ORDER


class Identity:
    """A key pair, from a seed of 32 bytes."""

    def __init__(self, seed):
        whole = sha512(seed).digest()
        self.scalar = int.from_bytes(whole[:32], "little") & ~7 & ((1 << 254) - 1) | 1 << 254
        self.prefix = whole[32:]
        self.public = packed(multiple(self.scalar, BASE))

    def sign(self, message):
        r = hashed(self.prefix, message)
        point = packed(multiple(r, BASE))
        s = (r + hashed(point, self.public, message) * self.scalar) % ORDER
        return point + s.to_bytes(32, "little")


def verified(public, message, signature):
    key, point = unpacked(public), unpacked(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or point is None or s >= ORDER:
        return False
    k = hashed(signature[:32], public, message)
    return packed(multiple(s, BASE)) == packed(added(point, multiple(k, key)))
