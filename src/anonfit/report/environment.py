# SPDX-License-Identifier: Apache-2.0
"""Templates, and what jinja makes of them: that is Python, kept where the machine code is that was compiled here, since
compiling templates takes longer than all else of a report.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from anonfit.runtime.compiling import own

TEMPLATES = Path(__file__).parent / "templates"


class _KeptTemplates(BytecodeCache):
    """The code of templates behind its hash, in a folder that only this user can write: it is run. It never fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its code, if it is there and whole."""
        with suppress(OSError):
            content = self._place(bucket).read_bytes()
            if hashlib.sha256(content[32:]).digest() == content[:32]:
                bucket.code = marshal.loads(content[32:])  # noqa: S302 - of a folder that only we can write

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        code = marshal.dumps(bucket.code)
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder)
            with open(handle, "wb") as file:  # noqa: PTH123 - an open file
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, self._place(bucket))  # noqa: PTH105 - whole or not at all

    def _place(self, bucket: Bucket) -> Path:
        return self.folder / f"{bucket.key}-{bucket.checksum}"


def environment(finalize: Callable[[Any], Any], *, autoescape: bool) -> Environment:
    """An environment of templates; values go through `finalize`, whose name stands for how they are compiled."""
    folder, made = own("report"), f"{finalize.__name__}-jinja{version('jinja2')}"
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,  # noqa: S701 - not all are pages
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=finalize,
        bytecode_cache=None if folder is None else _KeptTemplates(folder.path / made),
    )
