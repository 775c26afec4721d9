# SPDX-License-Identifier: Apache-2.0
"""Reads and writes taxonomies: ARX layout (.csv), JSON tree (.json) and indented text (.txt)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias

from anonfit.errors import AnonfitError, DataError, ReleaseError, TaxonomyError
from anonfit.runtime.files import whole_file
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text
from anonfit.tables.taxonomy import ROOT, Taxonomy, taxonomy_error

# In order of preference where a file can be read with several; files are written with the first.
_DELIMITERS = (";", ",", "\t", "|")
_INDENT = "  "


def read_taxonomy(path: str | Path, *, column: str = "") -> Taxonomy:
    """The taxonomy stored in a file, whose suffix says its format.

    Args:
        path: A `.csv` in ARX layout (a row a leaf: the leaf, then each more general name), a `.json` tree, or
            a `.txt` with one name a line, children indented deeper.
        column: The column to name in a message.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "country.txt"
        ...     write_taxonomy(Taxonomy.flat(["FR", "DE"]), path)
        ...     read_taxonomy(path).leaves
        ('FR', 'DE')
    """
    path = Path(path)
    parse, _ = _format(path)
    text = read_text(path, "taxonomy", DataError, megabytes=64)
    try:
        return parse(text, column)
    except TaxonomyError as error:
        raise TaxonomyError(f"{path}: {error}") from error


def write_taxonomy(taxonomy: Taxonomy, path: str | Path) -> None:
    """Write a taxonomy to a file that reads back as the same tree.

    Args:
        taxonomy: What to write.
        path: Its suffix says the format, as in `read_taxonomy`. An existing file is replaced.
    """
    path = Path(path)
    parse, render = _format(path)
    try:
        text = render(taxonomy)
        if parse(text, "") != taxonomy:
            raise taxonomy_error("it would read back as another tree.")
        # A mark of its own keeps a first name that begins with the byte order mark whole.
        content = text.encode("utf-8-sig" if text.startswith("\ufeff") else "utf-8")
    except TaxonomyError as error:
        raise TaxonomyError(f"{path}: the {path.suffix} format cannot hold it: {error}") from error
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: a name of the taxonomy is not Unicode text; rename it.") from error
    try:
        with whole_file(path) as new:
            new.write_bytes(content)
    except ReleaseError as error:
        raise DataError(f"the taxonomy cannot be written: {error}") from None


def _parse_arx(text: str, column: str) -> Taxonomy:
    """The taxonomy of rows that go from a leaf to the root."""
    rows = _arx_rows(text, column)
    width = len(rows[0][1])
    for line, row in rows:
        if len(row) != width:
            fault = f"line {line} has {len(row)} fields, line {rows[0][0]} has {width}"
            raise taxonomy_error(f"{fault}; give every row the same number of levels.", column)
    paths = [row for _, row in rows]
    if len({row[-1] for row in paths}) > 1:
        paths = [[*row, ROOT] for row in paths]
    return Taxonomy.from_paths(paths, column=column)


def _arx_rows(text: str, column: str) -> list[tuple[int, list[str]]]:
    """The rows, each with its line number, by the delimiter that makes the best table of the text."""
    tables: list[list[tuple[int, list[str]]]] = []
    fault = ""
    for delimiter in (sign for sign in _DELIMITERS if sign in text or sign == _DELIMITERS[0]):
        try:
            tables.append(_delimited(text, delimiter))
        except csv.Error as error:
            fault = fault or str(error)
        if tables and all(_regularity(tables[-1])):
            return tables[-1]
    if not tables:
        raise taxonomy_error(f"its rows cannot be read as delimited text ({fault}); mend the quoting.", column)
    rows = max(tables, key=_regularity)
    if not rows:
        raise taxonomy_error("the file is empty; write one row a leaf.", column)
    return rows


def _delimited(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, each with its line number."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = [(reader.line_num, row) for row in reader if row]
    return rows if len(rows) == 1 else [(line, row) for line, row in rows if len(row) > 1 or row[0].strip()]


def _regularity(rows: list[tuple[int, list[str]]]) -> tuple[int, int, int]:
    """How much rows look like a hierarchy: several fields, of one number, ending in one root."""
    widths = {len(row) for _, row in rows}
    several = max(widths, default=0) > 1
    even = several and len(widths) == 1
    return int(several), int(even), int(even and len({row[-1] for _, row in rows}) == 1)


def _render_arx(taxonomy: Taxonomy) -> str:
    """Rows from leaf to root, each padded by repeating its leaf, which `from_paths` skips."""
    # Quotes everywhere keep a name with another delimiter from passing for several fields.
    is_awkward = any(map(re.compile(r'[;,\t|\r\n"]').search, taxonomy.names))
    form: dict[str, Any] = {"quoting": csv.QUOTE_ALL if is_awkward else csv.QUOTE_MINIMAL, "lineterminator": "\n"}
    text = StringIO(newline="")
    writer = csv.writer(text, delimiter=_DELIMITERS[0], **form)
    width = taxonomy.height + 1
    for node in taxonomy.leaf_nodes:
        path = taxonomy.path(node)
        writer.writerow([path[0]] * (width - len(path)) + list(path))
    return text.getvalue()


def _parse_json(text: str, column: str) -> Taxonomy:
    """The taxonomy of a tree of names, in the form of `from_tree` or the compact one."""
    try:
        tree = parse_json(text)
    except Damaged as error:
        raise taxonomy_error(f"{error}; mend it.", column) from None
    if isinstance(tree, dict) and isinstance(tree.get("name"), str):
        return Taxonomy.from_tree(tree, column=column)
    if not isinstance(tree, dict) or len(tree) != 1:
        form = '{"name": root, "children": [...]} or {root: {child: {...}, ...}}'
        raise taxonomy_error(f"its JSON is not a tree under one root; write {form}.", column)
    return Taxonomy.from_tree(_spelled_out(tree, column), column=column)


def _spelled_out(compact: dict[str, Any], column: str) -> dict[str, Any]:
    """The compact form `{"Europe": {"FR": {}}}` or `{"Europe": ["FR"]}` as the tree of `from_tree`."""
    top: list[dict[str, Any]] = []
    waiting: list[tuple[Any, list[dict[str, Any]], str]] = [(compact, top, "")]
    while waiting:
        content, siblings, parent = waiting.pop()
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            if isinstance(part, str) and isinstance(content, list):
                part = {part: None}
            if not isinstance(part, dict):
                fault = f"below {parent!r} stands something that is neither a name nor a tree"
                raise taxonomy_error(f"{fault}; write names as JSON texts.", column)
            for name, below in part.items():
                children: list[dict[str, Any]] = []
                siblings.append({"name": name, "children": children})
                if below is not None:
                    waiting.append((below, children, name))
    return top[0]


def _render_json(taxonomy: Taxonomy) -> str:
    """The tree of `to_tree`, indented."""
    return json.dumps(taxonomy.to_tree(), ensure_ascii=False, indent=1) + "\n"


def _parse_indented(text: str, column: str) -> Taxonomy:
    """The taxonomy of lines whose indentation says their depth."""
    root: dict[str, Any] | None = None
    # branch: the indentation and tree of each node from the root down to the last line.
    branch: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if not line.strip():
            continue
        tree: dict[str, Any] = {"name": _unquoted(line.strip(), number, column), "children": []}
        indent = line[: len(line) - len(line.lstrip())]
        sibling = indent
        while branch and not (indent.startswith(branch[-1][0]) and len(indent) > len(branch[-1][0])):
            sibling = branch.pop()[0]
        if sibling != indent:
            fault = f"line {number} is indented like no line above it on its branch"
            raise taxonomy_error(f"{fault}; indent siblings alike, by spaces or by tabs.", column)
        if branch:
            branch[-1][1]["children"].append(tree)
        elif root is None:
            root = tree
        else:
            raise taxonomy_error(f"line {number} is a second root; indent all lines below the first.", column)
        branch.append((indent, tree))
    if root is None:
        raise taxonomy_error("the file is empty; write the root on the first line.", column)
    return Taxonomy.from_tree(root, column=column)


def _render_indented(taxonomy: Taxonomy) -> str:
    """A line a node, indented by its depth."""
    lines = (_INDENT * depth + _quoted(name) for name, depth in zip(taxonomy.names, taxonomy.depth, strict=True))
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    """A name as it stands on a line: a JSON string where it could be misread or would not be seen."""
    is_plain = name and name == name.strip() and name.isprintable() and not name.startswith('"')
    return name if is_plain else json.dumps(name)


def _unquoted(text: str, number: int, column: str) -> str:
    """The name a line holds."""
    if not text.startswith('"'):
        return text
    try:
        return JsonPart(parse_json(text), f"line {number}").text()
    except Damaged as error:
        fault = f"line {number} begins with a quote but is not a JSON string ({error})"
        raise taxonomy_error(f"{fault}; write the whole name as one.", column) from None


_Format: TypeAlias = tuple[Callable[[str, str], Taxonomy], Callable[[Taxonomy], str]]
_FORMATS: dict[str, _Format] = {
    ".csv": (_parse_arx, _render_arx),
    ".json": (_parse_json, _render_json),
    ".txt": (_parse_indented, _render_indented),
}
"""How a text is read, for a column, and how it is made."""


def _format(path: Path) -> _Format:
    """The format a file's suffix says."""
    if path.suffix.lower() not in _FORMATS:
        fault = f"{path}: a taxonomy file does not end in {path.suffix!r}" if path.suffix else f"{path}: no suffix"
        raise DataError(f"{fault}; use .csv (ARX layout), .json (tree) or .txt (indented).")
    return _FORMATS[path.suffix.lower()]


def hierarchies_beside(data: Path, columns: Iterable[str], values: Callable[[str], set[str]]) -> dict[str, str]:
    """Files of hierarchies that lie beside a table, by the columns that they are named after and whose `values` they
    have; ARX keeps them so: `adult_hierarchy_age.csv`.
    """
    beside = {}
    files = [file for file in sorted(data.parent.glob("*.csv")) if re.search("hierarch|taxonom", file.stem, re.I)]
    for name in columns:
        named = rf"(^|[^a-z0-9]){re.escape(name.lower())}($|[^a-z0-9])"
        for file in (file for file in files if re.search(named, file.stem.lower())):
            try:
                leaves = set(read_taxonomy(file, column=name).leaves)
            except AnonfitError:
                continue
            if values(name) <= leaves:
                beside[name] = file.name
                break
    return beside
