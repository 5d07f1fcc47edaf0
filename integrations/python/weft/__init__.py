# SPDX-License-Identifier: Apache-2.0
"""weft from Python: random linear network coding, storage codes, a streaming server, the engine of a peer.

Needs only ctypes and libweft.so, which tools/install puts under the same prefix; WEFT_LIBRARY names
another one. Bytes are passed as any object with a buffer (bytes, bytearray, memoryview, numpy arrays)
and returned as bytes or bytearray. Encoders, codes and decode_batch also take arrays on the GPU of
their Context (`__cuda_array_interface__` or DLPack), and write into the arrays given as `out`.

    with weft.Context() as context:
        shape = weft.SegmentId(stream=1, segment=0, blocks=32, block_bytes=1024)
        encoder = weft.Encoder(context, shape, data)
        decoder = weft.Decoder(context, shape)
        while not decoder.complete:
            decoder.add(encoder.next())
        assert decoder.read(len(data)) == data

Server codes for many clients in the background. Engine is a peer over a transport of your own, and
Sessions the layer below it that encrypts and authenticates: both take datagrams and the time, and give
datagrams and events.

The headers include/weft/*.h specify each call. Calls release the interpreter's lock; threads may share a
handle, whose calls then wait for each other, and run in parallel with handles of their own.
"""

from ._context import Context, Error, backends, version
from ._declarations import CONSTANTS, DEPENDENT, FUNCTIONS, OK, PENDING, STRUCTURES, SegmentId
from ._engine import (
    Burst, Engine, EngineOptions, EngineStatistics, EngineTimers, Event, EventKind, LostReason, Mode,
    NeighbourStatistics)
from ._rlnc import Decoder, Encoder, Recoder, decode_batch, segment_of
from ._server import (
    LaneStatistics, Server, ServerOptions, ServerPacket, ServerRequest, ServerStatistics)
from ._session import (
    Cipher, SessionEvent, SessionEventKind, SessionPeer, SessionReason, Sessions, SessionsOptions,
    SessionStatistics)
from ._storage import Code
from ._trust import Identity, Trust

__all__ = [
    "Burst", "Cipher", "Code", "Context", "Decoder", "Encoder", "Engine", "EngineOptions", "EngineStatistics",
    "EngineTimers", "Error", "Event", "EventKind", "Identity", "LaneStatistics", "LostReason", "Mode",
    "NeighbourStatistics", "Recoder", "SegmentId", "Server", "ServerOptions", "ServerPacket", "ServerRequest",
    "ServerStatistics", "SessionEvent", "SessionEventKind", "SessionPeer", "SessionReason",
    "SessionStatistics", "Sessions", "SessionsOptions", "Trust", "backends", "decode_batch", "segment_of",
    "version"]

for _name in __all__:  # such as weft.Error, rather than weft._context.Error
    globals()[_name].__module__ = "weft"
