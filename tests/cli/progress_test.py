#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Progress on a terminal: no line is wider than it, so that each can be wiped, and the last one is. None elsewhere.

  progress_test.py WEFT
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

WEFT = os.path.abspath(sys.argv[1])


def drawn(columns, *call):
    """What the call writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    with subprocess.Popen([WEFT, *call], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs) as program:
        os.close(theirs)
        text = b''
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:  # EIO: the other end is closed
            pass
        assert program.wait() == 0, (call, text)
    os.close(ours)
    return text.decode()


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with open('file', 'wb') as file:
        file.write(bytes(1 << 20))
    store = ('store', 'encode', 'file', '--output-dir')
    demo = ('demo', '--clip', '1Mi', '--peers', '3')
    sim = ('sim', 'flash-crowd', '--peers', '20', '--duration', '20s', '--no-files')
    for columns in (0, 200, 60, 40, 20, 1):  # 0: unknown
        for call in (demo, sim, (*store, str(columns))):
            first, *lines = drawn(columns, *call).split('\r\x1b[K')
            assert first == '' and len(lines) >= 2 and lines[-1] == '', (columns, call, lines)
            assert columns == 0 or all(len(line) < max(columns, 2) for line in lines), (columns, call, lines)
            if call[0] != 'sim' and columns != 40:  # there it depends on how long the numbers are
                bar = re.match(r'\[[#.]+\] +\d+ %  ', lines[0])
                assert bool(bar) == (columns in (0, 60, 200)), (columns, call, lines[0])
    for call in (demo, sim, (*store, 'piped')):
        said = subprocess.run([WEFT, *call], stdin=subprocess.DEVNULL, capture_output=True, check=True)
        assert said.stderr == b'' or call[0] == 'store', said.stderr
        assert b'\r' not in said.stderr + said.stdout, said
