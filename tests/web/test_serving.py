# SPDX-License-Identifier: Apache-2.0
"""The server: one line, no more; it answers while jobs work, and many clients at once do it no harm."""

from __future__ import annotations

import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from web_doors import SPEC, Server, people, start_server

from anonfit.web.serving import Place, _bytes, _socket
from commands import command


def bearer(folder: Path) -> dict[str, str]:
    return {"authorization": f"Bearer {(folder / '.anonfit-web' / 'token').read_text().strip()}"}


def test_it_prints_one_line_and_keeps_its_secrets_to_itself(server: Server, tmp_path: Path) -> None:
    assert server.link.startswith("http://127.0.0.1:")
    assert "/?token=" in server.link
    assert (tmp_path / ".anonfit-web" / "token").stat().st_mode & 0o077 == 0
    with httpx2.Client(base_url=server.address) as client:
        assert client.get("/table").status_code == 401
        assert client.get(server.link).status_code == 303
        assert client.get("/table").status_code == 200
        assert "server" not in client.get("/table").headers
    server.process.terminate()
    assert server.process.communicate(timeout=20)[0] == ""


def test_wrong_words_are_refused_with_a_sentence(tmp_path: Path) -> None:
    for words in (["nowhere"], [".", "--host", "192.0.2.1"], [".", "--memory", "much"], [".", "--token-file", "none"]):
        told = command("web", *words, "--no-browser", "--json", folder=tmp_path)
        assert told.returncode == 2
        assert json.loads(told.stdout)["error"]["message"]


@pytest.mark.parametrize(("text", "size"), [("4GB", 4 * 10**9), ("1.5 GiB", 3 << 29), ("100", 100), ("2k", 2000)])
def test_sizes(text: str, size: int) -> None:
    assert _bytes("memory", text) == size


def hammered(server: Server, folder: Path, seconds: float) -> tuple[int, int]:
    """Fifty clients ask for pages and jobs; how many requests there were, and how many bytes the server grew."""
    until, own = time.monotonic() + seconds, bearer(folder)
    paths = (
        "/table",
        "/columns",
        "/demands",
        "/explore",
        "/risk",
        "/api/v1/jobs",
        "/static/page.css",
        "/api/v1/openapi.json",
    )
    statm = Path(f"/proc/{server.process.pid}/statm")

    def client(number: int) -> int:
        sent = 0
        with httpx2.Client(base_url=server.address, headers=own, timeout=60) as held:
            while time.monotonic() < until or not sent:
                answer = held.get(paths[(sent + number) % len(paths)])
                assert answer.status_code == 200, answer.text
                sent += 1
        return sent

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(client, range(50)))  # what is loaded once is loaded
        before, until = int(statm.read_text().split()[1]), time.monotonic() + seconds
        sent = sum(pool.map(client, range(50)))
    return sent, (int(statm.read_text().split()[1]) - before) * 4096


def test_fifty_clients_at_once_get_their_answers(server: Server, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    assert hammered(server, tmp_path, 1)[0] >= 50


@pytest.mark.slow
def test_fifty_clients_for_two_minutes_get_their_answers_and_memory_stays_flat(server: Server, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    sent, grown = hammered(server, tmp_path, 120)
    assert sent > 1000
    assert grown < 40 << 20


@pytest.mark.slow
def test_pages_are_answered_at_once_while_a_million_rows_are_anonymized(tmp_path: Path) -> None:
    lines = people(50_000).splitlines()
    (tmp_path / "people.csv").write_text("\n".join([lines[0], *lines[1:] * 20]) + "\n")
    (tmp_path / "spec.toml").write_text(SPEC)
    server = start_server(tmp_path)
    with httpx2.Client(base_url=server.address, headers=bearer(tmp_path), timeout=60) as client:
        client.get("/explore")
        job = client.post("/api/v1/jobs", data={"spec": SPEC}).json()["id"]
        took, worked = [], cpu_seconds(server)
        while client.get(f"/api/v1/jobs/{job}").json()["state"] in ("queued", "running"):
            begun = time.monotonic()
            assert client.get("/explore").status_code == 200
            took.append(time.monotonic() - begun)
            time.sleep(0.05)
        assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "done"
    assert len(took) > 5
    worked = cpu_seconds(server) - worked
    server.end()
    assert worked / len(took) < 0.1, "whatever else the machine does, the server itself has little to do for an answer"
    assert sorted(took)[int(len(took) * 0.9)] < 0.2


def cpu_seconds(server: Server) -> float:
    """The time of processors that the server itself took, without its jobs."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_who_comes_before_the_server_is_at_work_waits_and_is_not_refused() -> None:
    sockets, port = _socket(Place(port=0))
    with sockets[0], socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
