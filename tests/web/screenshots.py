# SPDX-License-Identifier: Apache-2.0
"""Pictures of every step for the docs: `scripts/screenshots`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from walking import chromium, opened, whole_way
from web_doors import start_server

from anonfit.demo.population import hospital


def main(target: Path) -> None:
    with TemporaryDirectory() as name, chromium() as browser:
        hospital(5000).write_csv(Path(name) / "patients.csv")
        server = start_server(Path(name))
        page = opened(browser, server.link, viewport={"width": 1400, "height": 1000})

        def shot(step: str) -> None:
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(500)
            page.screenshot(path=target / f"web-{step}.jpg", type="jpeg", quality=70)

        whole_way(page, "patients.csv", shot)
        server.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
