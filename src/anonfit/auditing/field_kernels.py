# SPDX-License-Identifier: Apache-2.0
"""A compiled loop over the bytes of a text file (`text_fields.py`)."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from anonfit.runtime.compiling import inner

_NO_WHOLE, _FORMULA = 1, 2  # as `text_fields.py`, which does not load a compiler, has them
_QUOTE, _LINE, _RETURN, _TAB = 34, 10, 13, 9
_DIGITS = 18  # that every whole number of so many can be held in 64 bits


@inner
def _quoted_end(data, place, delimiter):
    """Where a field ends that begins with a quote at this place; -1 if it is not written as it must be."""
    begin, needs = place + 1, False
    place = begin
    while place < len(data):
        byte = data[place]
        if byte == _RETURN:
            return -1
        if byte == _QUOTE:
            if place + 1 == len(data) or data[place + 1] != _QUOTE:
                return place + 1 if needs else -1
            needs, place = True, place + 1
        elif byte in (delimiter, _LINE):
            needs = True
        place += 1
    return -1


@inner
def _begins_formula(byte):
    """Whether a spreadsheet may take a text that begins so for a formula."""
    return byte in (61, 43, 45, 64, _TAB, _RETURN)


@inner
def _is_whole(data, place, end):
    """Whether a field is empty, or a whole number in its one spelling."""
    if place < end and data[place] == 45:
        place += 1
        if place == end or data[place] == 48:
            return False
    elif place == end:
        return True
    if end - place > _DIGITS or (data[place] == 48 and end - place > 1):
        return False
    while place < end and 48 <= data[place] <= 57:
        place += 1
    return place == end


def fields_end(data, place, end, delimiter, found):
    """Read records from a place on until one ends at `end` or behind it, and say where; -1 where a record has not as
    many fields as `found`, or a field could be written in another way. `found` gets what fields of a column are.
    """
    last = len(found) - 1
    while place < end:
        for column in range(last + 1):
            begin = place
            if place < len(data) and data[place] == _QUOTE:
                place = _quoted_end(data, place, delimiter)
                if place < 0:
                    return -1
                found[column] |= _NO_WHOLE
                begin += 1
            else:
                while place < len(data) and data[place] != delimiter and data[place] != _LINE:
                    if data[place] == _QUOTE or data[place] == _RETURN:
                        return -1
                    place += 1
                if found[column] & _NO_WHOLE == 0 and not _is_whole(data, begin, place):
                    found[column] |= _NO_WHOLE
            if begin < place and _begins_formula(data[begin]):
                found[column] |= _FORMULA
            if place >= len(data) or data[place] != (delimiter if column < last else _LINE):
                return -1
            place += 1
    return place
