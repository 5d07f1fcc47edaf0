#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The log's events, with levels and fields, are in its document as they are in the sources, and no others are.

  log_test.py DOCUMENT SOURCE...
"""

import re
import sys

# Names of events that are not literals.
COMPUTED = {'names[r->s->role]': ['join', 'source', 'tracker']}
ONLY_SOURCE = 'key'  # of the field that only one of those has
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def arguments(text, start):
    """The arguments of the call whose parenthesis opens before `start`."""
    depth, found, at = 1, [''], start
    while depth:
        literal = LITERAL.match(text, at)
        piece = literal.group() if literal else text[at]
        depth += {'(': 1, ')': -1}.get(piece, 0)
        if piece == ',' and depth == 1:
            found.append('')
        elif depth:
            found[-1] += piece
        at += len(piece)
    return [argument.strip() for argument in found]


def names_in(text):
    return set(re.findall(r'(?:^| )([a-z_]+)=', text))


def function(sources, name):
    """The body of a function."""
    [body] = re.findall(r'^[^\n;]*\b%s\([^;{]*\) \{\n(.*?)^\}' % name, sources, re.M | re.S)
    return body


def logged(sources):
    """(event, levels, fields) of each call of peer_log; the fields of several calls with one event are one set."""
    events = {}
    for call in re.finditer(r'(?<!void )\bpeer_log\(', sources):
        level, event, *rest = arguments(sources, call.end())
        levels = frozenset(name.lower() for name in re.findall(r'PEER_([A-Z]+)', level))
        fields = set()
        for argument in rest:
            fields |= names_in(''.join(LITERAL.findall(argument)))
        for name in COMPUTED.get(event) or LITERAL.findall(event):
            some = fields - {ONLY_SOURCE} if event in COMPUTED and name != 'source' else fields
            if name == 'summary':  # a loop writes it
                some = set(re.findall(r'\{"([a-z_]+)",', function(sources, 'peer_tell_summary')))
            known = events.setdefault(name, (set(), set()))
            known[0].update(levels)
            known[1].update(some)
    found = {(name, frozenset(levels), frozenset(fields)) for name, (levels, fields) in events.items()}
    errors = re.findall(r'object_set_new\(object, "([a-z_]+)"', function(sources, 'cli_error_describe'))
    return found | {('failed', frozenset(['error']), frozenset(errors))}


def documented(page):
    summary = page[page.index('## Summary') :]
    fields_of_summary = set()
    for row in re.findall(r'^\| (`[^|]*) \|', summary, re.M):
        fields_of_summary |= set(re.findall(r'`([a-z_]+)`', row))
    found = set()
    for name, levels, fields in re.findall(r'^\| `([a-z-]+)` \| ([a-z, ]+) \| ([^|]*) \|', page, re.M):
        fields = fields_of_summary if name == 'summary' else re.findall(r'`([a-z_]+)`', fields)
        found.add((name, frozenset(levels.split(', ')), frozenset(fields)))
    return found


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        wrong = documented(file.read())
    sources = ''
    for name in sys.argv[2:]:
        with open(name, encoding='utf-8') as file:
            sources += file.read()
    right = logged(sources)
    if len(right) < 30:
        sys.exit(f'only {len(right)} events were found in the sources')
    for what, differing in (('is not in the document', right - wrong), ('is not in the sources', wrong - right)):
        for event, levels, fields in sorted(differing, key=lambda one: one[0]):
            print(f'{event} ({", ".join(sorted(levels))}; {", ".join(sorted(fields))}) {what}')
    sys.exit(right != wrong)


main()
