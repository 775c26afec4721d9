# SPDX-License-Identifier: Apache-2.0
"""How the bytes of a text file become signs: the encoding that is marked, that fits, or that a library finds."""

from __future__ import annotations

import codecs
import re
import unicodedata

from anonfit.errors import DataError

MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks; the longer ones first."""
CANDIDATES = ["cp1252", "cp850", "mac_roman", "cp1250", "cp1251", "iso8859_2", "iso8859_15", "koi8_r", "cp866"]
CANDIDATES += ["cp1253", "cp1254", "cp932", "euc_jp", "gb18030", "big5", "cp949"]
COHERENT = 0.4
WESTERN = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüŒœŠšŽž")
MOST_ACCENTED = 0.35
"""The share of letters with an accent that a Western language has at most."""
BETWEEN_LETTERS = re.compile(r"[^\W\d_][^\x00-\x7f\w\s’´·][^\W\d_]|[£¥¢¤³¹¿¡ªº][^\W\d_]|[^\W\d_][£¥¢¤³¹¿¡]")


def found_encoding(sample: bytes) -> tuple[str | None, str | None]:
    """The encoding of a sample of whole lines, and a notice where it is a guess; (None, what may be) where no guess is
    sure enough.
    """
    for mark, name in MARKS.items():
        if sample.startswith(mark):
            return name, None
    if zeros := sample.count(b"\0"):
        odd = sample[1::2].count(b"\0")
        share = len(sample) // 2
        if max(odd, zeros - odd) > 0.4 * share and min(odd, zeros - odd) < 0.1 * share:
            name = "utf-16-le" if odd > zeros - odd else "utf-16-be"
            return name, f'its encoding is taken for {name}, by its bytes; write encoding = "{name}" in [data] if so.'
        if b"\0" in sample.partition(b"\n")[0]:
            return None, None
    try:
        sample.decode("utf-8")
    except UnicodeError:
        return _guessed(sample)
    return "utf-8", None


def _guessed(sample: bytes) -> tuple[str | None, str | None]:
    """A guess: Western European if that reads well, or what a library is sure of."""
    lines = b"\n".join(line for line in sample.splitlines() if not line.isascii())
    notice = 'it is not UTF-8, and read as {0}, by its signs; write encoding = "{0}" in [data] if so.'
    if _reads_western(lines):
        return "cp1252", notice.format("cp1252")
    from charset_normalizer import from_bytes

    found = from_bytes(lines, cp_isolation=CANDIDATES)
    best = found.best()
    if best is not None and best.coherence >= COHERENT and _is_foreign(str(best)):
        rivals = [match for match in found if match.coherence >= COHERENT and str(match) != str(best)]
        if not rivals:
            return best.encoding, notice.format(best.encoding)
    names = dict.fromkeys(match.encoding for match in found)
    return None, ", ".join(list(names)[:4]) or None


def _reads_western(lines: bytes) -> bool:
    """Whether Windows' Western European encoding gives words of Western languages."""
    try:
        text = lines.decode("cp1252")
    except UnicodeError:
        return False
    letters = [sign for sign in text if sign.isalpha()]
    accented = [sign for sign in letters if not sign.isascii() and sign not in "ªºµ"]
    return (
        not set(accented) - WESTERN
        and not (accented and set(accented) <= {"Ã", "Â"})  # halves of signs of UTF-8
        and len(accented) <= MOST_ACCENTED * max(len(letters), 8)
        and not BETWEEN_LETTERS.search(text)
    )


def _is_foreign(text: str) -> bool:
    """Whether most letters are of another script than Latin: then a guess of it is seldom wrong."""
    letters = [sign for sign in text if sign.isalpha() and not sign.isascii()]
    foreign = sum("LATIN" not in unicodedata.name(sign, "") for sign in letters)
    return foreign > 0.9 * len(letters)


def line_of_fault(content: bytes, encoding: str) -> int | None:
    """The number of the first line that is not in an encoding."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            line.decode(encoding)
        except UnicodeError:
            return number
    return None


def refuse_encoding(name: str, sample: bytes, candidates: str | None) -> DataError:
    """What to write for a file whose encoding is not found."""
    if b"\0" in sample:
        line = sample[: sample.index(b"\0")].count(b"\n") + 1
        return DataError(f"{name}: line {line} holds NUL bytes: it is no text; save it anew, or write data.encoding.")
    line = line_of_fault(sample, "utf-8") or 1
    some = f" (perhaps {candidates})" if candidates else ""
    return DataError(
        f"{name}: line {line} is not UTF-8 text, and which encoding it has is not sure{some}; write data.encoding, "
        'such as encoding = "cp1252".'
    )
