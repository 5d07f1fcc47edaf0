# SPDX-License-Identifier: Apache-2.0
"""Storage codes."""

import ctypes

from ._context import _address, _check, _Handle, _length, _read_only, _writable
from ._declarations import _c, _CodeOptions, _Erasures, _size, _Stripe, _whole


class Code(_Handle):
    """k data shards, m parity shards. Names as in weft/storage.h; Code.names() lists them.

    parity: for the name "matrix", m rows of k coefficients, as bytes.
    """

    def __init__(self, context, name, k, m, w=0, packet_bytes=0, parity=None):
        super().__init__(context)
        at = ctypes.c_void_p()
        self.k, self.m = k, m = _whole("k", k), _whole("m", m)
        held = _read_only(parity) if parity is not None else None
        if held is not None and _length(parity) != k * m:
            raise ValueError("a matrix of %d rows of %d" % (m, k))
        options = _CodeOptions(name=name.encode(), k=k, m=m, w=_whole("w", w),
                               packet_bytes=_whole("packet_bytes", packet_bytes),
                               parity=_address(held) if held is not None else None)
        known = [*self.names(), "matrix"]
        with context._busy() as of:
            _check(_c.weft_code_new(of, ctypes.byref(options), ctypes.byref(at)),
                   "%s with k = %d, m = %d" % (name, k, m) if name.partition(":")[0] in known
                   else "there is no code %s, but %s" % (name, ", ".join(known)))
            self._take(at, "weft_code_free")

    @staticmethod
    def names():
        found = []
        while _c.weft_code_known_name(len(found)):
            found.append(_c.weft_code_known_name(len(found)).decode())
        return found

    @property
    def name(self):
        return self._run(_c.weft_code_name).decode()

    @property
    def parity_matrix(self):
        """(m, k) coefficients."""
        matrix = bytearray(self.m * self.k)
        if matrix:
            self._run(_c.weft_code_parity_matrix, _address(_writable(matrix)))
        return matrix

    def parity_bytes(self, data_bytes):
        """Bytes of a parity shard beside data shards of so many."""
        return self._run(_c.weft_code_parity_bytes, _whole("data_bytes", data_bytes))

    def encode(self, data):
        """The m parity shards of k data shards."""
        return self.encode_stripes([data])[0]

    def encode_stripes(self, stripes):
        """The same for many stripes in one call, which small ones and GPUs are quickest with."""
        made, table, held = [], [], []
        for data in stripes:
            if len(data) != self.k:
                raise ValueError("%d data shards, not %d" % (self.k, len(data)))
            for i, shard in enumerate(data):
                if shard is None:
                    raise ValueError("data shard %d is None" % i)
            size = _length(data[0])
            made.append([bytearray(self.parity_bytes(size)) for _ in range(self.m)])
            if size and self.m:
                stripe, bytes_held = self._stripe([*data, *made[-1]], size, range(self.k, self.k + self.m))
                table.append(stripe)
                held.append(bytes_held)
        if table:
            _check(self._run(_c.weft_code_encode, (_Stripe * len(table))(*table), len(table), None))
        del held
        return made

    def inputs(self, lost, wanted=None):
        """Ids of the shards that rebuilding these reads."""
        plan = ctypes.c_void_p()
        erasures = self._erasures(lost, wanted)
        with self._lock:
            _check(self._run(_c.weft_plan_for, ctypes.byref(erasures), ctypes.byref(plan)),
                   "%d of %d shards lost" % (erasures.lost_count, self.k + self.m))
            count = _c.weft_plan_input_count(plan)
            found = list(_c.weft_plan_inputs(plan)[:count])
            _c.weft_plan_free(plan)
        return found

    def recover(self, shards, wanted=None, data_bytes=None):
        """Of k + m shards, None where one is lost: the same, with those that are wanted made again.

        wanted: ids among the lost; None: all. data_bytes: of a data shard, where none is there.
        """
        return self.recover_stripes([shards], wanted, data_bytes)[0]

    def recover_stripes(self, stripes, wanted=None, data_bytes=None):
        """The same for many stripes in one call, which all lack the same shards."""
        stripes, made, table, held = list(stripes), [], [], []
        if not stripes:
            return made
        lost = [i for i, shard in enumerate(stripes[0]) if shard is None]
        outputs = lost if wanted is None else list(wanted)
        if len(set(outputs)) < len(outputs) or not set(outputs) <= set(lost):
            raise ValueError("wanted are ids among the lost, each once: of %s not %s" % (lost, outputs))
        erasures = self._erasures(lost, wanted if wanted is None else outputs)
        for shards in stripes:
            if [i for i, shard in enumerate(shards) if shard is None] != lost:
                raise ValueError("stripes that lack the same shards can be recovered together, and no others")
            size = self._data_bytes(shards, data_bytes)
            whole = list(shards)
            for i in outputs:
                whole[i] = bytearray(size if i < self.k else self.parity_bytes(size))
            made.append(whole)
            if size:
                stripe, bytes_held = self._stripe(whole, size, outputs)
                table.append(stripe)
                held.append(bytes_held)
        _check(self._run(_c.weft_code_recover, ctypes.byref(erasures), (_Stripe * len(table))(*table),
                         len(table), None), "%d of %d shards lost" % (len(lost), self.k + self.m))
        del held
        return made

    def _data_bytes(self, shards, data_bytes):
        sizes = [_length(s) for s in shards[:self.k] if s is not None]
        if data_bytes is None and not sizes:
            raise ValueError("no data shard is there: data_bytes must say how long they are")
        return sizes[0] if data_bytes is None else data_bytes

    def verify(self, shards):
        """Ids of the parity shards that do not match the data."""
        wrong = bytearray(self.m)
        count = _size()
        if any(shard is None for shard in shards):
            raise ValueError("all shards must be there to be verified: recover those that are None")
        if not self.m:
            return []
        size = _length(shards[0]) if len(shards) else 0
        stripe, held = self._stripe(shards, size, ())
        _check(self._run(_c.weft_code_verify, ctypes.byref(stripe), _address(_writable(wrong)),
                                   ctypes.byref(count), None))
        del held
        return [self.k + i for i, flag in enumerate(wrong) if flag]

    # --- Parity in parts: a data shard changes, and the others are not looked at.

    def update(self, index, old, new, parity):
        """Data shard `index` was `old` and is `new`: its m parity shards follow, in place.

        parity: bytearrays, or what else can be written to; None: one that is kept elsewhere.
        """
        if _length(new) != _length(old):
            raise ValueError("%d bytes in the place of %d" % (_length(new), _length(old)))
        held = _read_only(old), _read_only(new)
        self._in_parts(_c.weft_code_update, index, held, _length(old), parity)

    def parity_delta(self, index, delta):
        """What data shard `index` changing by `delta` (old ^ new) changes each parity shard by."""
        made = [bytearray(self.parity_bytes(_length(delta))) for _ in range(self.m)]
        self._in_parts(_c.weft_code_parity_delta, index, (_read_only(delta),), _length(delta), made)
        return made

    def add_delta(self, index, delta, parity):
        """As update, given old ^ new."""
        self._in_parts(_c.weft_code_add_delta, index, (_read_only(delta),), _length(delta), parity)

    def _in_parts(self, call, index, shards, size, parity):
        index, parity = _whole("index", index), list(parity)
        if index >= self.k:
            raise ValueError("there are data shards 0 to %d, and no %d" % (self.k - 1, index))
        if size and self.m:
            stripe, held = self._stripe([None] * self.k + parity, size, range(self.k, self.k + self.m))
            _check(self._run(call, index, *map(_address, shards), ctypes.byref(stripe), None))
            del held

    @staticmethod
    def _erasures(lost, wanted):
        ids = bytes([*lost])  # of one number bytes() would make as many zeros
        some = None if wanted is None else bytes([*wanted])
        return _Erasures(ids, len(ids), some, 0 if some is None else len(some))

    def _stripe(self, shards, size, written):
        """The stripe, and what keeps its bytes where they are."""
        if len(shards) != self.k + self.m:
            raise ValueError("%d shards, not %d" % (self.k + self.m, len(shards)))
        pointers = (ctypes.c_void_p * len(shards))()
        held = [pointers]
        for i, shard in enumerate(shards):
            if shard is None:
                continue
            wanted = size if i < self.k else self.parity_bytes(size)
            if _length(shard) != wanted:
                raise ValueError("shard %d has %d bytes, not %d" % (i, _length(shard), wanted))
            held.append(_writable(shard) if i in written else _read_only(shard))
            pointers[i] = _address(held[-1]).value
        return _Stripe(shards=pointers, bytes=size), held
