# SPDX-License-Identifier: Apache-2.0
"""Errors and handles, which belong to a Context and end with it."""

import contextlib
import ctypes
import os
import threading

from ._declarations import _BackendInfo, _c, _ContextOptions, _whole, OK


class Error(Exception):
    """A status that is neither success nor a normal outcome of the call. `name` as in weft/status.h."""

    def __init__(self, status, about=""):
        self.status = status
        self.name = _c.weft_status_name(status).decode()
        text = _c.weft_status_text(status).decode()
        super().__init__("%s: %s%s" % (self.name, text, " (%s)" % about if about else ""))


def _check(status, about=""):
    """Raises the error of a status. about: the call's arguments, where the status alone says too little."""
    if status != OK:
        raise Error(status, about)


class _Turns:
    """A handle's lock, which also refuses calls that a callback makes on the handle that called it."""

    def __init__(self, callbacks=None):
        self._lock = threading.RLock()
        # Kept alive: a thread that frees the handle holds this lock until the library makes no more calls.
        self._callbacks = callbacks
        # Threads in a callback, including the library's own, which hold no lock.
        self._callers = callbacks.callers if callbacks else ()
        self.inside = False  # a call of the library, which may call back

    def calling_back(self):
        """Whether this thread is in a callback."""
        return threading.get_ident() in self._callers

    def __enter__(self):
        refused = self.calling_back()
        if not refused:
            self._lock.acquire()
            refused = self.inside
            if refused:
                self._lock.release()
        if refused:
            raise RuntimeError("a callback must not use what has called it")

    def __exit__(self, *unused):
        self._lock.release()


class _Closable:
    """Something freed by close(), at the end of a `with`, or when nothing refers to it any more."""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        if not getattr(self, "_at", None):
            return
        # The garbage collector runs in any thread, even in one of the library's that is in a callback, for
        # which closing would wait. Then another thread closes it, and keeps it until that is done.
        if _c is not None and any(isinstance(lock, _Turns) and lock.calling_back() for lock in self._locks()):
            threading.Thread(target=self._end).start()
        else:
            self._end()

    def _end(self):
        """Like close(), but need not wait for another thread that is freeing it."""
        self.close()


class _Handle(_Closable):
    """An object of the library's, freed by close(), with this object, or by its context's close().

    The context knows its handles by address, not by object: the library requires all of them to be freed
    before the context, and Python finalizes the objects of a cycle in any order.
    """

    def __init__(self, context):
        self._at = None
        if not isinstance(context, Context):
            raise TypeError("made from a Context, not from %s" % type(context).__name__)
        self._context = context
        # Reentrant, for signal handlers, which run between calls.
        self._lock = threading.RLock()

    def _take(self, at, free):
        self._at = self._context._keep(at, free, self._lock)

    def close(self):
        """Frees it; further calls on it are errors. If another thread is freeing it, waits for that."""
        try:
            self._end()
        finally:
            self._context._wait_for_freeing(self._lock)

    def _end(self):
        self._context._let_go(self._at, self._lock)  # calls waiting for the lock find it closed
        self._at = None

    def _locks(self):
        return [self._lock]

    def __reduce__(self):
        raise TypeError("%s can be neither copied nor pickled" % type(self).__name__)

    def _run(self, call, *arguments):
        """Makes a call of the library on it, one at a time, also with regard to another thread's close()."""
        with self._lock:
            if not self._context._keeps(self._at, self._lock):
                raise ValueError("%s is closed" % type(self).__name__)
            return call(self._at, *arguments)


def _together(handles, call, *arguments):
    """Makes a call of the library on several handles, holding the locks of all."""
    with contextlib.ExitStack() as held:
        for handle in sorted(set(handles), key=id):  # all threads lock in the same order
            held.enter_context(handle._lock)
        for handle in handles:
            if not handle._context._keeps(handle._at, handle._lock):
                raise ValueError("%s is closed" % type(handle).__name__)
        return call((ctypes.c_void_p * len(handles))(*(handle._at for handle in handles)), *arguments)


def version():
    return _c.weft_version().decode()


def backends():
    """Lists (name, technique, whether this machine can run it), best first."""
    found = []
    for i in range(_c.weft_backend_count_all()):
        info = _BackendInfo()
        _check(_c.weft_backend_describe(i, ctypes.byref(info)))
        found.append((info.name.decode(), info.technique.decode(), bool(info.available)))
    return found


class Context(_Closable):
    """Which backend row computes, and on how many threads. Closing it closes everything made from it.

    backend: a name from backends(); "cuda": the best row for GPU number `device`, which works on host memory
    and the GPU's own. None: the row that WEFT_BACKEND names, else the best one for the CPU.
    """

    def __init__(self, backend=None, threads=1, device=0):
        # address: the function that frees it (or its name), its lock and its process, in order of creation
        self._made = {}
        self._at, self._process = None, os.getpid()
        self._place = None  # where its device's memory is, once known
        at = ctypes.c_void_p()
        options = _ContextOptions(backend=backend.encode() if backend else None,
                                  threads=_whole("threads", threads), device=_whole("device", device))
        _check(_c.weft_ctx_new(ctypes.byref(at), ctypes.byref(options)),
               "backend %s, %d threads" % (backend or "by default", threads))
        self._at = at.value

    def close(self):
        """Frees it and everything made from it; further calls on any of these are errors.

        Waits for calls of other threads that use or make one of them.
        """
        at, self._at = self._at, None  # no new call begins from here on
        try:
            while self._made:  # repeated for what was made meanwhile
                for made, (_, lock, _) in reversed(list(self._made.items())):
                    self._let_go(made, lock)
        except BaseException:
            if at:  # else another thread has taken it
                self._at = at  # raised by a callback, say: can be closed later
            raise
        if at and self._may_free(self._process):
            _c.weft_ctx_free(at)

    def _locks(self):
        return [lock for _, lock, _ in list(self._made.values())]

    def _open(self):
        if not self._at:
            raise ValueError("Context is closed")
        return self._at

    def __reduce__(self):
        raise TypeError("Context can be neither copied nor pickled")

    @contextlib.contextmanager
    def _busy(self):
        """Surrounds a call on the context itself, so that close() waits for it."""
        call, lock = object(), _Turns()
        with lock:
            self._note(call, None, lock)
            lock.inside = True
            try:
                yield self._open()
            finally:
                lock.inside = False
                self._made.pop(call, None)

    @staticmethod
    def _may_free(process):
        """Whether freeing is possible: a fork lacks the threads that it waits for, and those that held locks."""
        return _c is not None and process == os.getpid()  # None: the interpreter is shutting down

    def _note(self, key, free, lock):
        self._made[key] = free, lock, os.getpid()

    def _keep(self, at, free, lock):
        self._note(at.value, free, lock)
        return at.value

    def _keeps(self, at, lock):
        """Whether it still exists: another object may have its address by now, but with another lock."""
        return self._made.get(at, (None, None, None))[1] is lock

    def _let_go(self, at, lock):
        _, kept_by, process = self._made.get(at, (None, None, None))
        if kept_by is not lock:
            return
        if not self._may_free(process):
            self._made.pop(at, None)
            return
        with lock:
            if not self._keeps(at, lock):  # another thread freed it first
                return
            # Another object may get its address as soon as it is freed; close() waits for this entry.
            freeing = object()
            self._note(freeing, None, lock)
            free, _, _ = self._made.pop(at)
            try:
                if callable(free):
                    free(at)
                elif free:
                    getattr(_c, free)(at)
            finally:
                self._made.pop(freeing, None)

    def _wait_for_freeing(self, lock):
        """Waits while another thread frees the object with that lock; a fork lacks that thread, and does not wait."""
        if (None, lock, os.getpid()) in list(self._made.values()):
            with lock:
                pass

    def trim(self):
        """Gives back the GPU's memory, and pinned memory, that the context keeps for later calls.

        Waits for the GPU; calls that follow allocate anew. Without a GPU nothing is kept.
        """
        with self._busy() as at:
            _c.weft_ctx_trim(at)

    @property
    def backend(self):
        """The name of the backend row that computes."""
        with self._busy() as at:
            return _c.weft_ctx_backend(at).decode()

    @property
    def host_backend(self):
        """The row that computes what is too small for the GPU; without a GPU, the same as backend."""
        with self._busy() as at:
            return _c.weft_ctx_host_backend(at).decode()
