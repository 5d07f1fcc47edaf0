# SPDX-License-Identifier: Apache-2.0
"""Errors and handles: what belongs to a Context, and ends with it."""

import contextlib
import ctypes
import os
import threading

from ._declarations import _BackendInfo, _c, _ContextOptions, _whole, OK


class Error(Exception):
    """A call's status that is neither success nor one of its outcomes. `name` as in weft/status.h."""

    def __init__(self, status, about=""):
        self.status = status
        self.name = _c.weft_status_name(status).decode()
        text = _c.weft_status_text(status).decode()
        super().__init__("%s: %s%s" % (self.name, text, " (%s)" % about if about else ""))


def _check(status, about=""):
    """`about`: what the call was given, where the status alone would leave one guessing."""
    if status != OK:
        raise Error(status, about)


class _Turns:
    """A lock as a handle's, which also refuses what a callback asks of the very thing that called it."""

    def __init__(self, callbacks=None):
        self._lock = threading.RLock()
        # Kept: whoever frees the handle has this lock until the library calls them no more.
        self._callbacks = callbacks
        # Threads in a callback: the library's own, too, which hold no lock.
        self._callers = callbacks.callers if callbacks else ()
        self.inside = False  # the library, which may call back

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
    """What close() frees: at the end of a `with`, or once nobody has it any more."""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        if not getattr(self, "_at", None):
            return
        # The collector comes in any thread: also in one of the library's that is in a callback, and that
        # closing waits for. Then another one closes it, and has it until that is done.
        if _c is not None and any(isinstance(lock, _Turns) and lock.calling_back() for lock in self._locks()):
            threading.Thread(target=self._end).start()
        else:
            self._end()

    def _end(self):
        """As close(), but what another thread is freeing need not be waited for."""
        self.close()


class _Handle(_Closable):
    """Something of the library's, freed by close(), with the object, or by its context's close().

    The context knows what was made from it by address, not by object: the library wants all of it
    freed before the context, and objects of a cycle are finalised in whatever order.
    """

    def __init__(self, context):
        self._at = None
        if not isinstance(context, Context):
            raise TypeError("made from a Context, not from %s" % type(context).__name__)
        self._context = context
        # Reentrant, for signal handlers, which come between calls.
        self._lock = threading.RLock()

    def _take(self, at, free):
        self._at = self._context._keep(at, free, self._lock)

    def close(self):
        """Frees it; further calls on it are errors. If another thread is at that, it is waited for."""
        try:
            self._end()
        finally:
            self._context._wait_for_freeing(self._lock)

    def _end(self):
        self._context._let_go(self._at, self._lock)  # calls that are waiting find that it is gone
        self._at = None

    def _locks(self):
        return [self._lock]

    def __reduce__(self):
        raise TypeError("%s can be neither copied nor pickled" % type(self).__name__)

    def _run(self, call, *arguments):
        """The library's call on it, one at a time: also against a close() of another thread."""
        with self._lock:
            if not self._context._keeps(self._at, self._lock):
                raise ValueError("%s is closed" % type(self).__name__)
            return call(self._at, *arguments)


def _together(handles, call, *arguments):
    """A call of the library on several handles, each used by nobody else meanwhile."""
    with contextlib.ExitStack() as held:
        for handle in sorted(set(handles), key=id):  # everybody takes them in one order
            held.enter_context(handle._lock)
        for handle in handles:
            if not handle._context._keeps(handle._at, handle._lock):
                raise ValueError("%s is closed" % type(handle).__name__)
        return call((ctypes.c_void_p * len(handles))(*(handle._at for handle in handles)), *arguments)


def version():
    return _c.weft_version().decode()


def backends():
    """(name, what it does, whether this machine has what it needs), best first."""
    found = []
    for i in range(_c.weft_backend_count_all()):
        info = _BackendInfo()
        _check(_c.weft_backend_describe(i, ctypes.byref(info)))
        found.append((info.name.decode(), info.technique.decode(), bool(info.available)))
    return found


class Context(_Closable):
    """Which row of the table computes, and on how many threads. Closing it closes what it made.

    backend: a name of backends(); "cuda": the best of GPU number `device`, from and to host memory and the
    GPU's own. None: what WEFT_BACKEND names, else the best of the CPU's.
    """

    def __init__(self, backend=None, threads=1, device=0):
        # address: what frees it, or the name of that, its lock, and its process, in order of making
        self._made = {}
        self._at, self._process = None, os.getpid()
        self._place = None  # where its device's memory is, once that was asked for
        at = ctypes.c_void_p()
        options = _ContextOptions(backend=backend.encode() if backend else None,
                                  threads=_whole("threads", threads), device=_whole("device", device))
        _check(_c.weft_ctx_new(ctypes.byref(at), ctypes.byref(options)),
               "backend %s, %d threads" % (backend or "by default", threads))
        self._at = at.value

    def close(self):
        """Frees it and all that was made from it; further calls on any of these are errors.

        A call of another thread on one of them, or that makes one, is waited for.
        """
        at, self._at = self._at, None  # nothing is begun from here on
        try:
            while self._made:  # again for what was being made meanwhile
                for made, (_, lock, _) in reversed(list(self._made.items())):
                    self._let_go(made, lock)
        except BaseException:
            if at:  # else another thread has it, or gave it back
                self._at = at  # such as a callback's of one of them: to be closed later
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
        """For a call on the context itself, which its close() waits for."""
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
        """A fork lacks the threads that freeing waits for, and whoever had a lock."""
        return _c is not None and process == os.getpid()  # None: the interpreter is ending

    def _note(self, key, free, lock):
        self._made[key] = free, lock, os.getpid()

    def _keep(self, at, free, lock):
        self._note(at.value, free, lock)
        return at.value

    def _keeps(self, at, lock):
        """Whether it is there yet: what has its address may be another by now, which has another lock."""
        return self._made.get(at, (None, None, None))[1] is lock

    def _let_go(self, at, lock):
        _, kept_by, process = self._made.get(at, (None, None, None))
        if kept_by is not lock:
            return
        if not self._may_free(process):
            self._made.pop(at, None)
            return
        with lock:
            if not self._keeps(at, lock):  # another thread was first
                return
            # Its address may be another's as soon as it is free; close() is to wait for the freeing.
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
        """Of what has that lock, by another thread; in a fork there is none, and the lock is never given back."""
        if (None, lock, os.getpid()) in list(self._made.values()):
            with lock:
                pass

    @property
    def backend(self):
        """The row that computes."""
        return _c.weft_ctx_backend(self._open()).decode()

    @property
    def host_backend(self):
        """The row that does what is too small for a GPU; without one, the same."""
        return _c.weft_ctx_host_backend(self._open()).decode()
