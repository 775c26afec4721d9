# SPDX-License-Identifier: Apache-2.0
"""How a file lays its table out: what a spec can say of it, how its bytes are unpacked, sampled and looked through, and
how they become signs: by the encoding that is marked, that fits, or that a library finds.
"""

from __future__ import annotations

import codecs
import gzip
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import IO, Any

from anonfit.errors import DataError


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What is given of a file's layout; None is found. Lines are counted from 1."""

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None  # the sign around texts; empty: none is
    comment: str | None = None  # what lines begin with that are no records; empty: nothing
    header: bool | None = None
    header_row: int | None = None
    skip_rows: int | tuple[int, ...] | None = None
    """How many lines come before the table, or the numbers of lines that are left out."""
    decimal: str | None = None
    thousands: str | None = None  # the sign between thousands; empty: none
    sheet: str | None = None
    value_labels: bool | None = None

    def left_out(self, line: int) -> bool:
        """Whether a line is left out by what is given."""
        skipped = self.skip_rows or 0
        return line <= skipped if isinstance(skipped, int) else line in skipped


FOUND = FileLayout()  # nothing is given, all of it is found
LAYOUT = tuple(field.name for field in fields(FileLayout))  # the settings, by name
OF_SHEETS = ("header", "header_row", "skip_rows", "sheet")
OF_LABELS = ("value_labels", "encoding")
OF_TEXTS = tuple(name for name in LAYOUT if name not in ("sheet", "value_labels"))
OF_RELEASES = FileLayout(sheet="data", header_row=1, skip_rows=0, value_labels=True)
"""How files of programs are laid out that releases are written as."""


def given_layout(settings: Any) -> dict[str, Any]:
    """The settings of a layout that an object holds."""
    return {name: getattr(settings, name) for name in LAYOUT}


BLANKS = " \u00a0"  # what may stand around a text and is no part of it
PIECE = 1 << 20  # bytes of a file that are looked at in one go: what is made of them stays near the processor
SAMPLE = 1 << 16
SAMPLE_LINES = 20
LONGEST_HEAD = 1 << 25  # bytes that are read to see whole lines, however long they are
UNPACKED = {".gz": 1032, ".zst": 1 << 15}  # bytes that a packed byte can become at most


def unpacked(path: Path) -> IO[bytes]:
    """A file, unpacked if it is packed."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix != ".zst":
        return path.open("rb")
    try:
        from pyarrow import CompressedInputStream, OSFile
    except ModuleNotFoundError:
        raise DataError(f"{path.name}: its lines need mending, which the package pyarrow is for; unpack it.") from None
    opened: IO[bytes] = CompressedInputStream(OSFile(str(path)), "zstd")
    return opened


def samples_of(path: Path) -> tuple[bytes, bool, list[bytes]]:
    """The beginning of the file and whether that is all of it, and stretches of whole lines from its middle and end
    where they can be reached.
    """
    try:
        if path.suffix == ".zst":
            head = _zstd_head(path)
            return head, len(head) < SAMPLE, []
        with unpacked(path) as file:
            head, is_whole = _head(file)
            more = []
            size = path.stat().st_size
            if path.suffix != ".gz" and size > 4 * SAMPLE and not is_whole:
                for place in (size // 2, size - SAMPLE):
                    file.seek(place)
                    lines = file.read(SAMPLE).split(b"\n")
                    more.append(b"\n".join(lines[1:-1] if place < size - SAMPLE else lines[1:]))
        return head, is_whole, more
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path.name} cannot be unpacked: it is cut short, or not what its ending says.") from None


def _head(file: IO[bytes]) -> tuple[bytes, bool]:
    """The beginning of a file, as much of it as some lines need, and whether that is all of it."""
    head = file.read(SAMPLE)
    if len(head) < SAMPLE:
        return head, True
    while max(head.count(b"\n"), head.count(b"\r")) < SAMPLE_LINES and len(head) < LONGEST_HEAD:
        more = file.read(len(head))
        if not more:
            return head, True
        head += more
    return head, False


def _zstd_head(path: Path) -> bytes:
    """The beginning of a zstd file, through polars, which brings its own decompressor."""
    import polars as pl

    try:
        lines = pl.read_csv(path, has_header=False, separator="\x01", quote_char=None, n_rows=500, infer_schema=False)
    except pl.exceptions.NoDataError:
        return b""
    except pl.exceptions.PolarsError:
        raise DataError(f"{path.name} cannot be unpacked, or is not UTF-8 text.") from None
    return "\n".join(line or "" for line in lines.to_series()).encode()


def pieces_of(path: Path, skipped: int = 0) -> Iterator[bytes]:
    """What a file holds after some lines, unpacked, piece by piece."""
    with unpacked(path) as file:
        for _ in range(skipped):
            file.readline()
        while piece := file.read(PIECE):
            yield piece


def count_delimiters(path: Path, delimiter: str, skipped: int) -> int:
    """How many delimiters a text file has outside of quotes, after some lines."""
    delimiters, is_quoted = 0, False
    for piece in pieces_of(path, skipped):
        parts = piece.split(b'"')
        delimiters += sum(part.count(delimiter.encode()) for part in parts[int(is_quoted) :: 2])
        is_quoted ^= len(parts) % 2 == 0
    return delimiters


def has_stray_signs(path: Path, delimiter: str, skipped: int) -> bool:
    """Whether a quote stands within a field (readers part lines at such quotes in ways of their own), or a byte order
    mark within the file, as where files were put together.
    """
    import numpy as np  # not for the help of commands

    edges = np.zeros(256, np.bool_)
    edges[[ord(delimiter), 10, 13, 34]] = True
    carried = b"\n"
    for piece in chain(pieces_of(path, skipped), [b"\n"]):
        signs = np.frombuffer(carried + piece, np.uint8)
        places = np.flatnonzero(signs[1:-1] == 34) + 1
        if (~(edges[signs[places - 1]] | edges[signs[places + 1]])).any():
            return True
        if codecs.BOM_UTF8 in carried + piece:
            return True
        carried = bytes(signs[-2:])
    return False


def count_led_by_zero(source: Path | bytes, delimiter: str, skipped: int) -> int:
    """How many fields of a text file begin with a zero and another digit, as 01067 does."""
    import numpy as np  # not for the help of commands

    # Two signs are compared at once: what comes before a zero, and the zero.
    begins = [np.uint16(ord(sign) | ord("0") << 8) for sign in (delimiter, "\n", '"', "+", "-")]
    found, carried = 0, b"\n"
    for piece in pieces_of(source, skipped) if isinstance(source, Path) else [source]:
        signs = np.frombuffer(carried + piece, np.uint8)
        for offset in (0, 1):
            pairs = signs[offset : len(signs) - (len(signs) - offset) % 2].view("<u2")
            places = 2 * np.flatnonzero(np.logical_or.reduce([pairs == begin for begin in begins])) + offset + 2
            after = signs[places[places < len(signs)]]
            found += int(((after >= ord("0")) & (after <= ord("9"))).sum())
        carried = bytes(signs[-2:])
    return found


def unpacked_size(path: Path, most: int) -> int:
    """Bytes of a file when it is unpacked, counted until they are more than `most`: a few may become very many."""
    packed, size = path.stat().st_size, 0
    if path.suffix not in UNPACKED or packed * UNPACKED[path.suffix] <= most:
        return packed
    try:
        for piece in pieces_of(path):
            size += len(piece)
            if size > most:
                break
    except DataError:
        return packed
    except (OSError, EOFError, zlib.error):
        pass  # whoever reads it tells what is wrong
    return size


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
MOST_ACCENTED = 0.35  # the share of letters with an accent that a Western language has at most
BETWEEN_LETTERS = re.compile(r"[^\W\d_][^\x00-\x7f\w\s’´·][^\W\d_]|[£¥¢³¹¿¡ªº®©¦¨¯¸¼½¾×÷][^\W\d_]|[^\W\d_][£¥¢³¹¿¡]|¤")
NOT_WESTERN = re.compile(r"õ(?!e)|[ìò][^\W\d_]|ã(?![oei]|s?\b)", re.IGNORECASE)
"""Letters where no Western language has them: õ and ã of Portuguese, ì and ò of Italian, or what they are elsewhere."""
LOST, TWICE = "\ufffd", re.compile("[ÃÂ][\u0080-\u00bf\u0152-\u0192\u02c6\u02dc\u2013-\u2122]")


def found_encoding(sample: bytes) -> tuple[str | None, str | None]:
    """The encoding of a sample of whole lines, and a notice where it is a guess; (None, what may be) where no guess is
    sure enough.
    """
    for mark, name in MARKS.items():
        if sample.startswith(mark):
            return name, None
    if zeros := sample.count(b"\0"):
        odd, share = sample[1::2].count(b"\0"), len(sample) // 2
        if max(odd, zeros - odd) > 0.4 * share and min(odd, zeros - odd) < 0.1 * share:
            name = "utf-16-le" if odd > zeros - odd else "utf-16-be"
            return name, f'its encoding is taken for {name}, by its bytes; write encoding = "{name}" in [data] if so.'
        if b"\0" in sample.partition(b"\n")[0]:
            return None, None
    return ("utf-8", None) if line_of_fault([sample], "utf-8") is None else _guessed(sample)


def _guessed(sample: bytes) -> tuple[str | None, str | None]:
    """A guess: Western European if that reads well, or what a library is sure of."""
    lines = b"\n".join(line for line in sample.splitlines() if not line.isascii())
    notice = 'it is not UTF-8, and read as {0}, by its signs; write encoding = "{0}" in [data] if so.'
    if _reads_western(lines):
        return "cp1252", notice.format("cp1252")
    from charset_normalizer import from_bytes

    guesses = from_bytes(lines, cp_isolation=CANDIDATES)
    best = guesses.best()
    has_rival = any(match.coherence >= COHERENT and str(match) != str(best) for match in guesses)
    if best is not None and best.coherence >= COHERENT and not has_rival and _is_foreign(str(best)):
        return best.encoding, notice.format(best.encoding)
    names = dict.fromkeys(match.encoding for match in guesses)
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
        and not NOT_WESTERN.search(text)
    )


def _is_foreign(text: str) -> bool:
    """Whether most letters are of another script than Latin: then a guess of it is seldom wrong."""
    letters = [sign for sign in text if sign.isalpha() and not sign.isascii()]
    foreign = sum("LATIN" not in unicodedata.name(sign, "") for sign in letters)
    return foreign > 0.9 * len(letters)


def spoiled_signs(text: str) -> list[str]:
    """What is to be told of a text that an earlier conversion spoiled."""
    if LOST in text:
        return [f"signs in it were lost before ({LOST}), as by a wrong conversion; export it anew if you can."]
    if TWICE.search(text):
        return ["signs in it look as if they were converted twice (Ã¼ for ü); export it anew if you can."]
    return []


def line_of_fault(lines: Iterable[bytes], encoding: str) -> int | None:
    """The number of the first line that is not in an encoding."""
    for number, line in enumerate(lines, start=1):
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
    line = line_of_fault(sample.split(b"\n"), "utf-8") or 1
    some = f" (perhaps {candidates})" if candidates else ""
    return DataError(
        f"{name}: line {line} is not UTF-8 text, and which encoding it has is not sure{some}; write data.encoding, "
        'such as encoding = "cp1252".'
    )
