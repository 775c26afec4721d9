# SPDX-License-Identifier: Apache-2.0
"""Files changed at random, by their structure where they have one and by their bytes: what somebody who wishes us ill,
or a failing disk, may put in place of what we wrote."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

from json_layout import json_text

PATHS = [
    "/etc/passwd",
    "/dev/zero",
    "/proc/self/mem",
    "~",
    "..",
    "x\0y",
    "a" * 5000,
    "file:///etc/passwd",
    "*",
    "C:\\x",
]
TEXTS = ["", " ", "\u202eabc", "\ufeff", "\ud800", "e\u0301", "\u00e9", "\x1b[31m", "<script>", "=cmd|' /C calc'!A0", "\x00", "'",
         '"', "missing", "other", "*", "null", "NaN", "1e999", "2024-02-30", "9999-12-31", "0001-01-01", "x" * 70_000, "٣"]  # fmt: skip
NUMBERS = [0, -1, 1, 2**31, -(2**31), 2**63, 2**64, 10**400, -(10**30), 0.5, 1e308, -1e-320, float("nan"), float("inf")]
WORDS = ["[", "]", "{", "}", "(", ")", ",", ";", "=", ".", "'", '"', "\n", "\t", "--", "/*", "*/", "and", "or", "not", "in",
         "between", "null", "select", "true", "nan", "inf", "1e999", "9" * 5000, "-1", "0x10", "1_0", "2024-99-99", "é", "\0",
         "\u202e", "[[", "]]", "[a.b]", '"""', "'''", "\\", "\\u0000", "#"]  # fmt: skip


def junk(rng: random.Random, outside: list[str]) -> Any:
    """A value of any kind, among them the paths of files outside."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice([None, True, False, [], {}])
    if kind in (1, 2):
        return rng.choice(NUMBERS)
    if kind in (3, 4):
        return rng.choice(TEXTS)
    if kind in (5, 6):
        return rng.choice([*outside, *PATHS])
    deep: Any = rng.choice([[], {}, 1])
    for _ in range(rng.choice([3, 60, 5000])):
        deep = [deep] if rng.random() < 0.5 else {"name": "x", "children": [deep]}
    return deep


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [(*path, key) for key, _ in inside]
    return found + [deep for key, part in inside for deep in _places(part, (*path, key))]


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _changed(value: Any, rng: random.Random, outside: list[str]) -> None:
    """Delete, replace, retype, swap, double or rename one thing inside a JSON value."""
    places = _places(value)
    if not places:
        return
    where = rng.choice(places)
    holder, key = _at(value, where[:-1]), where[-1]
    kind = rng.randrange(7)
    if kind == 0:
        del holder[key]
    elif kind in (1, 2):
        holder[key] = junk(rng, outside)
    elif kind == 3:
        old = holder[key]
        retyped = [str(old), [old], {"name": old}, len(str(old)), not old, None]
        holder[key] = rng.choice(retyped)
    elif kind == 4:
        other = rng.choice(places)
        if other[: len(where)] != where and where[: len(other)] != other:
            one, two = copy.deepcopy(_at(value, where)), copy.deepcopy(_at(value, other))
            _at(value, other[:-1])[other[-1]], holder[key] = one, two
    elif isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    else:
        holder[str(rng.choice([*TEXTS, *holder]))] = copy.deepcopy(holder[key])


def _json_of(value: Any, rng: random.Random, name: str) -> bytes:
    try:
        laid_out = rng.random() < 0.8  # or else the audit looks no further
        text = json_text(name, value) if laid_out else json.dumps(value, ensure_ascii=rng.random() < 0.5)
    except (RecursionError, ValueError):
        text = "[" * 50_000 + "]" * 50_000
    if rng.random() < 0.1 and isinstance(value, dict) and value:  # a key twice
        twice = rng.choice(list(value))
        text = text.rstrip()[:-1] + f", {json.dumps(twice)}: 0}}"
    return text.encode("utf-8", "surrogatepass")


def mutate_json(content: bytes, rng: random.Random, outside: list[str], name: str) -> bytes:
    """A JSON file of a name changed in one to three places, or in its bytes."""
    if rng.random() < 0.2:
        return mutate_bytes(content, rng)
    value = json.loads(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        try:
            _changed(value, rng, outside)
        except RecursionError:  # it was made so deep that nothing can be done with it
            break
    return _json_of(value, rng, name)


def mutate_text(content: bytes, rng: random.Random, outside: list[str]) -> bytes:
    """A file of words (TOML, CSV, SQL, indented names) with words deleted, doubled, swapped, replaced or put in."""
    if rng.random() < 0.15:
        return mutate_bytes(content, rng)
    words = re.findall(r"\w+|\s+|[^\w\s]", content.decode())
    for _ in range(rng.choice([1, 1, 2, 4])):
        place, kind = rng.randrange(len(words)), rng.randrange(7)
        if kind == 0:
            del words[place : place + rng.choice([1, 1, 5])]
        elif kind == 1:
            words.insert(place, words[rng.randrange(len(words))])
        elif kind == 2:
            other = rng.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        elif kind == 3:
            words[place] = str(rng.choice([*WORDS, *TEXTS, *map(str, NUMBERS)]))
        elif kind == 4:
            words.insert(place, rng.choice(WORDS) * rng.choice([1, 2, 3000]))
        elif kind == 5:
            words[place] = json.dumps(rng.choice([*outside, *PATHS]))
        else:
            lines = "".join(words).splitlines(keepends=True)
            line = rng.randrange(len(lines))
            lines[line : line + 1] = rng.choice(
                [[], [lines[line]] * 2, [lines[line], lines[rng.randrange(len(lines))]]]
            )
            words = re.findall(r"\w+|\s+|[^\w\s]", "".join(lines))
        if not words:
            return b""
    return "".join(words).encode("utf-8", "surrogatepass")


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes turned, cut off, put in or taken out."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 3, 30])):
        place = rng.randrange(len(changed)) if changed else 0
        kind = rng.randrange(4)
        if kind == 0 and changed:
            changed[place] = rng.randrange(256)
        elif kind == 1:
            changed[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 8])))
        elif kind == 2:
            del changed[place : place + rng.choice([1, 40])]
        elif rng.random() < 0.3:
            del changed[place:]
    return bytes(changed)
