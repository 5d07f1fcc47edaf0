# SPDX-License-Identifier: Apache-2.0
"""Handles whose calls call back into Python."""

import threading

from ._context import _Handle, _Turns


class _Callbacks:
    """Functions that the library may call during its own calls; kept alive, since it has their addresses.

    The first exception that one raises is raised again when the library's call returns. If it came in another
    thread, the next call raises it, and does nothing else. Until then every function returns False or 0
    without being called.
    """

    def __init__(self):
        self._held = []
        # Shared with the functions, which do not refer to this object itself: no reference cycle.
        self._raised, self.callers = [], set()

    def keep(self, *things):
        """Keeps other things whose addresses the library has, for as long as it may call."""
        self._held.extend(things)
        return things

    def make(self, kind, function, result=bool):
        raised, callers = self._raised, self.callers

        def call(*arguments):
            thread = threading.get_ident()
            callers.add(thread)
            try:
                return result() if raised else result(function(*arguments))
            except BaseException as error:
                raised.append((thread, error))
                return result()
            finally:
                callers.discard(thread)

        self._held.append(kind(call))
        return self._held[-1]

    def tell(self, thread=None):
        """Raises the exception that a function raised: in that thread, or in any."""
        first = self._raised[:1]  # another thread may raise it meanwhile
        if first and thread in (None, first[0][0]):
            self._raised.clear()
            raise first[0][1]


class _CalledBack(_Handle):
    """A handle with callbacks."""

    def __init__(self, context):
        super().__init__(context)
        self._callbacks = _Callbacks()
        self._lock = _Turns(self._callbacks)

    def _run(self, call, *arguments):
        with self._lock:
            self._callbacks.tell()
            result = self._silently(call, *arguments)
            # An exception of another thread has nothing to do with this call, whose result would be lost.
            self._callbacks.tell(threading.get_ident())
            return result

    def _silently(self, call, *arguments):
        """Like _run, but does not raise what callbacks raised."""
        with self._lock:
            if not self._context._keeps(self._at, self._lock):
                raise ValueError("%s is closed" % type(self).__name__)
            self._lock.inside = True
            try:
                return call(self._at, *arguments)
            finally:
                self._lock.inside = False
