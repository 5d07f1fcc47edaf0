# SPDX-License-Identifier: Apache-2.0
"""Storage codes."""

import ctypes

from ._context import _check, _Handle
from ._declarations import _c, _CodeOptions, _Erasures, _size, _Stripe, _whole
from ._memory import Given, host, one_memory


class Code(_Handle):
    """A code with k data and m parity shards. Names as in weft/storage.h; Code.names() lists them.

    parity: for the name "matrix", m rows of k coefficients, as bytes.

    The shards of a stripe are all in host memory or all on the context's GPU. Calls that make shards write them
    to the arrays in `out`; where it, or an element of it, is None, to new bytearrays.
    """

    def __init__(self, context, name, k, m, w=0, packet_bytes=0, parity=None):
        super().__init__(context)
        at = ctypes.c_void_p()
        self.k, self.m = k, m = _whole("k", k), _whole("m", m)
        held = host(parity) if parity is not None else None
        if held is not None and held.size != k * m:
            raise ValueError("a matrix of %d rows of %d" % (m, k))
        if "\0" in name:
            raise ValueError("a code's name without zeros, not %r" % name)
        options = _CodeOptions(name=name.encode(), k=k, m=m, w=_whole("w", w),
                               packet_bytes=_whole("packet_bytes", packet_bytes),
                               parity=held.at if held is not None else None)
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
            self._run(_c.weft_code_parity_matrix, host(matrix, writable=True))
        return matrix

    def parity_bytes(self, data_bytes):
        """Returns the bytes of a parity shard for data shards of data_bytes."""
        return self._run(_c.weft_code_parity_bytes, _whole("data_bytes", data_bytes))

    def stride(self, data_bytes):
        """Returns the distance, in bytes, at which shards in one allocation are coded fastest."""
        return self._run(_c.weft_code_stride, _whole("data_bytes", data_bytes))

    def encode(self, data, out=None):
        """Returns the m parity shards of k data shards."""
        return self.encode_stripes([data], None if out is None else [out])[0]

    def encode_stripes(self, stripes, out=None):
        """The same for many stripes in one call, the fastest way for small stripes and GPUs. out: one for each."""
        stripes, given, made, table = [list(data) for data in stripes], Given(self._context), [], []
        for data, parity in zip(stripes, _outs(out, len(stripes))):
            if len(data) != self.k:
                raise ValueError("%d data shards, not %d" % (self.k, len(data)))
            shards = []
            for i, shard in enumerate(data):
                if shard is None:
                    raise ValueError("data shard %d is None" % i)
                shards.append(given.read(shard))
            size = shards[0].size
            made.append(self._results(parity, [self.parity_bytes(size)] * self.m))
            stripe = self._stripe(given, shards + [given.write(shard) for shard in made[-1]], size)
            if size and self.m:
                table.append(stripe)
        if table:
            given.wait()
            _check(self._run(_c.weft_code_encode, (_Stripe * len(table))(*table), len(table), None))
        return made

    def inputs(self, lost, wanted=None):
        """Returns the ids of the shards that are read to rebuild the lost, or only the wanted, ones."""
        plan = ctypes.c_void_p()
        erasures = self._erasures(lost, wanted)
        with self._lock:
            _check(self._run(_c.weft_plan_for, ctypes.byref(erasures), ctypes.byref(plan)),
                   "%d of %d shards lost" % (erasures.lost_count, self.k + self.m))
            count = _c.weft_plan_input_count(plan)
            found = list(_c.weft_plan_inputs(plan)[:count])
            _c.weft_plan_free(plan)
        return found

    def recover(self, shards, wanted=None, data_bytes=None, out=None):
        """Takes k + m shards, None for lost ones; returns them with the wanted ones rebuilt.

        wanted: ids of lost shards; None: all. data_bytes: of a data shard, if all of these are lost. out: one array
        for each wanted shard, in that order.
        """
        return self.recover_stripes([shards], wanted, data_bytes, None if out is None else [out])[0]

    def recover_stripes(self, stripes, wanted=None, data_bytes=None, out=None):
        """The same for many stripes in one call, all of which lack the same shards. out: one for each."""
        stripes, given, made, table = [list(shards) for shards in stripes], Given(self._context), [], []
        if not stripes:
            return made
        lost = [i for i, shard in enumerate(stripes[0]) if shard is None]
        outputs = lost if wanted is None else list(wanted)
        if len(set(outputs)) < len(outputs) or not set(outputs) <= set(lost):
            raise ValueError("wanted are ids among the lost, each once: of %s not %s" % (lost, outputs))
        erasures = self._erasures(lost, wanted if wanted is None else outputs)
        for shards, results in zip(stripes, _outs(out, len(stripes))):
            if [i for i, shard in enumerate(shards) if shard is None] != lost:
                raise ValueError("stripes that lack the same shards can be recovered together, and no others")
            parts = [None if shard is None else given.read(shard) for shard in shards]
            size = self._data_bytes(parts, data_bytes)
            sizes = [size if i < self.k else self.parity_bytes(size) for i in outputs]
            for i, result in zip(outputs, self._results(results, sizes)):
                shards[i], parts[i] = result, given.write(result)
            made.append(shards)
            stripe = self._stripe(given, parts, size)
            if size:
                table.append(stripe)
        given.wait()
        _check(self._run(_c.weft_code_recover, ctypes.byref(erasures), (_Stripe * len(table))(*table),
                         len(table), None), "%d of %d shards lost" % (len(lost), self.k + self.m))
        return made

    def _data_bytes(self, parts, data_bytes):
        sizes = [part.size for part in parts[:self.k] if part is not None]
        if data_bytes is None and not sizes:
            raise ValueError("no data shard is there: data_bytes must say how long they are")
        return sizes[0] if data_bytes is None else data_bytes

    def verify(self, shards):
        """Returns the ids of the parity shards that do not match the data."""
        shards, wrong, count, given = list(shards), bytearray(self.m), _size(), Given(self._context)
        if any(shard is None for shard in shards):
            raise ValueError("all shards must be there to be verified: recover those that are None")
        parts = [given.read(shard) for shard in shards]
        stripe = self._stripe(given, parts, parts[0].size if parts else 0)
        if not self.m:
            return []
        given.wait()
        _check(self._run(_c.weft_code_verify, ctypes.byref(stripe), host(wrong, writable=True),
                         ctypes.byref(count), None))
        return [self.k + i for i, flag in enumerate(wrong) if flag]

    # --- Parity updates after one data shard changed, without reading the others.

    def update(self, index, old, new, parity):
        """Updates the m parity shards in place after data shard `index` changed from `old` to `new`.

        parity: bytearrays or other writable memory; None for a shard that is kept elsewhere.
        """
        given = Given(self._context)
        shards = given.read(old), given.read(new)
        if shards[0].size != shards[1].size:
            raise ValueError("%d bytes in the place of %d" % (shards[1].size, shards[0].size))
        self._in_parts(_c.weft_code_update, index, given, shards, parity)

    def parity_delta(self, index, delta, out=None):
        """Returns by what each parity shard changes if data shard `index` changes by `delta` (old ^ new)."""
        given = Given(self._context)
        shard = given.read(delta)
        made = self._results(out, [self.parity_bytes(shard.size)] * self.m)
        self._in_parts(_c.weft_code_parity_delta, index, given, (shard,), made)
        return made

    def add_delta(self, index, delta, parity):
        """Like update, given delta = old ^ new."""
        given = Given(self._context)
        self._in_parts(_c.weft_code_add_delta, index, given, (given.read(delta),), parity)

    def _in_parts(self, call, index, given, shards, parity):
        index, size = _whole("index", index), shards[0].size
        if index >= self.k:
            raise ValueError("there are data shards 0 to %d, and no %d" % (self.k - 1, index))
        parts = [None if shard is None else given.write(shard) for shard in parity]
        stripe = self._stripe(given, [None] * self.k + parts, size)
        stripe.mem = one_memory([*shards, *parts], "a shard and its parity")
        if size and self.m:
            given.wait()
            _check(self._run(call, index, *shards, ctypes.byref(stripe), None))

    @staticmethod
    def _erasures(lost, wanted):
        ids = bytes([*lost])  # bytes(n) would be n zeros
        some = None if wanted is None else bytes([*wanted])
        return _Erasures(ids, len(ids), some, 0 if some is None else len(some))

    @staticmethod
    def _results(out, sizes):
        """Returns the memory that shards of these sizes are written to."""
        return [bytearray(size) if one is None else one for one, size in zip(_outs(out, len(sizes)), sizes)]

    def _stripe(self, given, parts, size):
        if len(parts) != self.k + self.m:
            raise ValueError("%d shards, not %d" % (self.k + self.m, len(parts)))
        pointers = given.keep((ctypes.c_void_p * len(parts))())
        for i, part in enumerate(parts):
            if part is None:
                continue
            wanted = size if i < self.k else self.parity_bytes(size)
            if part.size != wanted:
                raise ValueError("shard %d has %d bytes, not %d" % (i, part.size, wanted))
            pointers[i] = part.at
        return _Stripe(shards=pointers, bytes=size, mem=one_memory(parts, "the shards of a stripe"))


def _outs(out, count):
    if out is None:
        return [None] * count
    outs = list(out)
    if len(outs) != count:
        raise ValueError("`out` has %d parts, not %d" % (len(outs), count))
    return outs
