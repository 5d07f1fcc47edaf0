#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A live viewer that hears of the stream and gets nothing of it says so, and is not healthy until it does.

  standing_test.py WEFT
"""

import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

WEFT = os.path.abspath(sys.argv[1])
SEALED = 28  # bytes that a session adds (docs/session.md)
MANIFEST, DATA = SEALED + 136, 500  # sizes on the wire; coded packets are longer than DATA
held = set()  # of these


def relay(viewer, to_source, source):
    """Between one viewer and the source; may hold back what carries the stream."""
    back = None
    while True:
        for sock in select.select([viewer, to_source], [], [])[0]:
            if sock is viewer:
                datagram, back = viewer.recvfrom(2048)
                to_source.sendto(datagram, source)
                continue
            datagram = to_source.recv(2048)
            kind = MANIFEST if len(datagram) == MANIFEST else DATA if len(datagram) > DATA else None
            if back and kind not in held:
                viewer.sendto(datagram, back)


def start(name, *arguments, **pipes):
    log = open(name + '.log', 'w')
    return subprocess.Popen([WEFT, 'peer', *arguments], stderr=log, **pipes)


def said(name, pattern):
    """The groups of the pattern in the log, once it is there."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        match = re.search(pattern, open(name + '.log').read())
        if match:
            return match.groups()
        time.sleep(0.05)
    raise AssertionError((name, pattern, open(name + '.log').read()))


def health(port):
    try:
        return urllib.request.urlopen(f'http://127.0.0.1:{port}/healthz', timeout=5).read()
    except urllib.error.HTTPError as error:
        assert error.code == 503, error
        return error.read()


def expect_health(port, wanted):
    until = time.monotonic() + 30
    while health(port) != wanted:
        assert time.monotonic() < until, (health(port), wanted, open('viewer.log').read())
        time.sleep(0.1)


def feed(to):
    try:
        while True:
            to.write(os.urandom(20000))
            to.flush()
            time.sleep(0.05)
    except (BrokenPipeError, ValueError):
        pass


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    source = start('source', 'source', '--input', '-', '--listen', '127.0.0.1:0', stdin=subprocess.PIPE)
    threading.Thread(target=feed, args=(source.stdin,), daemon=True).start()
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in ends:
        end.bind(('127.0.0.1', 0))
    port = int(said('source', r'listen=\S*:(\d+)')[0])
    threading.Thread(target=relay, args=(*ends, ('127.0.0.1', port)), daemon=True).start()
    viewer = start('viewer', 'join', '--source', f'127.0.0.1:{ends[0].getsockname()[1]}', '--output', 'out.bin',
                   '--timeout', '2', '--metrics', '127.0.0.1:0')
    metrics = int(said('viewer', r'metrics=(\d+)')[0])
    until = time.monotonic() + 30
    while not (os.path.exists('out.bin') and os.path.getsize('out.bin')):
        assert time.monotonic() < until, open('viewer.log').read()
        time.sleep(0.05)
    assert health(metrics) == b'ok\n'
    for times, lacks in enumerate([{DATA}, {DATA, MANIFEST}], 1):  # it skips all; it knows of nothing to skip
        held |= lacks
        expect_health(metrics, b'standing still\n')
        said('viewer', r'warning standing-still source_segments=\d+')
        time.sleep(1)
        assert open('viewer.log').read().count('standing-still') == times
        held.clear()
        expect_health(metrics, b'ok\n')
    for process in (viewer, source):
        process.kill()
        process.wait()
