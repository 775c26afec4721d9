# SPDX-License-Identifier: Apache-2.0
"""How figures of experiments are drawn: nothing looks larger, or more alike, than it is."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Canvas

from anonfit_papers.reproduction import figures
from anonfit_papers.reproduction.figures import Line, Panel


def drawn(panel: Panel) -> Any:
    """The axis on which a panel is drawn."""
    axis = Canvas().subplots()
    figures._panel(axis, panel)
    return axis


def test_bars_begin_at_zero_and_tell_their_numbers() -> None:
    lines = (Line("paper", (0,), (14.7,)), Line("found", (0,), (14.69,)))
    axis = drawn(Panel("", "", "error in %", lines, "bars", ("BE",)))
    assert axis.get_ylim()[0] == 0
    assert [text.get_text() for text in axis.texts] == ["14.7", "14.7"]


@pytest.mark.parametrize("names", ["abcdefgh", ("TDS", "InfoGain", *"abcdef")])
def test_no_two_lines_look_alike(names: tuple[str, ...]) -> None:
    axis = drawn(Panel("", "k", "y", tuple(Line(name, (1, 2), (1.5, 2.0)) for name in names)))
    looks = {(to_hex(one.lines[0].get_color()), one.lines[0].get_marker()) for one in axis.containers}
    assert len(looks) == len({colour for colour, _ in looks}) == len(names)


@pytest.mark.parametrize(
    ("places", "named"),
    [
        ([10, 25, 100], ["10", "25", "100"]),
        ([500, 750, 1000], ["500", "750", "1000"]),
        ([10, 500, 750, 1000, 2000], ["10", "500", "", "1000", "2000"]),
        ([25], ["25"]),
    ],
)
def test_names_on_an_axis_do_not_lie_over_each_other(places: list[float], named: list[str]) -> None:
    assert figures._named_apart(places) == named


def test_whole_numbers_have_whole_ticks() -> None:
    axis = drawn(Panel("", "", "parts", (Line("a", range(2), (1, 2)),), "bars", ("a", "b")))
    assert all(float(tick).is_integer() for tick in axis.get_yticks())
