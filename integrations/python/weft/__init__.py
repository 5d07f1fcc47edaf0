# SPDX-License-Identifier: Apache-2.0
"""weft from Python: random linear network coding and storage codes.

Nothing but ctypes and libweft.so, which tools/install puts under the same prefix. WEFT_LIBRARY names
another one. Bytes go in as anything that has a buffer (bytes, bytearray, memoryview, an array of
numpy) and come out as bytes or bytearray.

    with weft.Context() as context:
        shape = weft.SegmentId(stream=1, segment=0, blocks=32, block_bytes=1024)
        encoder = weft.Encoder(context, shape, data)
        decoder = weft.Decoder(context, shape)
        while not decoder.complete:
            decoder.add(encoder.next())
        assert decoder.read(len(data)) == data

What each call means is said in include/weft/*.h. Calls let go of the interpreter's lock; threads may
share a handle, whose calls then wait for each other, and work side by side with handles of their own.
"""

from ._context import Context, Error, backends, version
from ._declarations import DEPENDENT, OK, PENDING, STRUCTURES, SegmentId
from ._rlnc import Decoder, Encoder, Recoder
from ._storage import Code

__all__ = ["Code", "Context", "Decoder", "Encoder", "Error", "Recoder", "SegmentId", "backends", "version"]

for _name in __all__:  # weft.Error, wherever it is written
    globals()[_name].__module__ = "weft"
