# SPDX-License-Identifier: Apache-2.0
"""`anonfit compare`: releases side by side, on the screen, as one page, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.cli.showing import print_json, results, stages, table
from anonfit.errors import RequestError

if TYPE_CHECKING:
    from anonfit.evaluation.comparing import Comparison

__all__ = ["compare_releases"]


def compare_releases(
    releases: Sequence[Path], *, source: Path | None, out: Path | None, replace: bool, as_json: bool
) -> None:
    """Compare release folders."""
    from anonfit.evaluation.comparing import check_page, compare

    if out is not None:
        check_page(out, replace=replace)
    if source is not None and not source.exists() and not any(sign in str(source) for sign in "*?["):
        raise RequestError(f"{source}: there is no such file to audit the releases with.")
    with stages(as_json=as_json) as stage:
        found = compare(*releases, source=source, stage=stage)
    if out is not None:
        found.save(out, replace=replace)
    if as_json:
        print_json(found.to_dict() | ({"page": str(out)} if out is not None else {}))
        return
    _show(found, out)


def _show(found: Comparison, out: Path | None) -> None:
    from rich.text import Text

    from anonfit.evaluation.comparing_page import PAIR_HEAD, pair_line, sections

    screen = results()
    for text in found.differences:
        screen.print(Text(text, style="yellow"), soft_wrap=True)
    names = [str(release["name"]) for release in found.releases]
    for section in sections(found.to_dict()):
        screen.print(Text(f"\n{section.title}", style="bold"))
        rows = [(label, *texts) for label, texts in section.lines]
        screen.print(table(("", *names), rows, numbers=range(1, len(names) + 1)))
    if found.pairs:
        screen.print(Text("\nTwo releases together", style="bold"))
        lines = [pair_line(pair) for pair in found.pairs]
        rows = [(label, *texts) for label, texts in lines]
        screen.print(table(("", *PAIR_HEAD), rows, numbers=range(1, 1 + len(PAIR_HEAD))))
        for pair in found.pairs:
            for fault in pair["faults"]:
                screen.print(Text(f"{' with '.join(pair['releases'])}: {fault}", style="red"), soft_wrap=True)
    if out is not None:
        screen.print(Text(f"\nread next: {out}"), soft_wrap=True)
