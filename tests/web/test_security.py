# SPDX-License-Identifier: Apache-2.0
"""Nobody else gets in, nothing is loaded from elsewhere, no path leads out, and names of others are shown, not obeyed."""

from __future__ import annotations

import io
import os

import pytest
from web_doors import HOST, OWN, SPEC, Door, door_of

from anonfit.errors import RequestError
from anonfit.web.serving import Place

PAGES = (
    "/",
    "/table",
    "/columns",
    "/demands",
    "/explore",
    "/utility",
    "/risk",
    "/handover",
    "/spec.toml",
    "/api/v1/jobs",
)
SCRIPT = "<script>alert(1)</script>"


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_sees_nothing(shared: Door, path: str) -> None:
    answer = shared.stranger.get(path, follow_redirects=False)
    assert answer.status_code == 401
    assert "people" not in answer.text


def test_a_token_opens_one_browser_once(shared: Door) -> None:
    token = shared.keys.ticket()
    first = shared.stranger.get(f"/?token={token}", follow_redirects=False)
    assert first.status_code == 303
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert token not in cookie
    shared.stranger.cookies.clear()
    assert shared.stranger.get(f"/?token={token}", follow_redirects=False).status_code == 403
    assert shared.stranger.get("/?token=", follow_redirects=False).status_code in (401, 403)


@pytest.mark.parametrize(
    "host", ["evil.example:8420", "127.0.0.1.evil.example:8420", "localhost:9", "", "127.0.0.1:8420@evil"]
)
def test_another_host_is_refused_even_with_the_keys(shared: Door, host: str) -> None:
    assert shared.page.get("/table", headers={"host": host}).status_code == 403
    assert shared.rest.get("/api/v1/jobs", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8420"])
def test_a_page_of_another_site_can_change_nothing(door: Door, origin: str) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    answer = door.page.post("/demands/set", data={"privacy.k": "1"}, headers={"origin": origin}, follow_redirects=False)
    assert answer.status_code == 403
    assert door.spec == SPEC


def test_a_change_without_origin_needs_the_bearer_token(door: Door) -> None:
    assert door.page.post("/spec/undo", follow_redirects=False).status_code == 403
    assert door.page.post("/spec/undo", headers={"origin": OWN, "sec-fetch-site": "cross-site"}).status_code == 403
    assert door.rest.post("/api/v1/jobs", data={"spec": "x"}).status_code == 422


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "Basic Zm9v", "bearer"])
def test_a_wrong_bearer_token_is_refused(shared: Door, header: str) -> None:
    answer = shared.stranger.get("/api/v1/jobs", headers={"authorization": header})
    assert answer.status_code == 401
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("path", [*PAGES, "/static/page.css", "/none"])
def test_every_answer_allows_no_inline_script_and_is_not_kept(shared: Door, path: str) -> None:
    headers = shared.page.get(path).headers
    policy = headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


OUTSIDE = ["/etc/passwd", "../people.csv", "uploads/../../x.csv", ".anonfit-web/token", "a\0b.csv", "link.csv", "", "."]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_reaches_outside_of_the_folder(door: Door, path: str) -> None:
    (door.folder / "link.csv").symlink_to("/etc/passwd")
    with pytest.raises(RequestError, match="leads out of the folder"):
        door.jobs.space.inside(path)
    assert "root:" not in door.post("/table/choose", source=path).text
    assert not (door.folder / "spec.toml").exists()


@pytest.mark.parametrize(
    "change",
    [
        ('source = "people.csv"', 'source = "/etc/passwd"'),
        ('source = "people.csv"', 'source = "sqlite:/etc/people.db"'),
        ("[columns.sex]", '[columns.sex]\ntaxonomy = "../../etc/passwd"'),
        ("[privacy]", '[workload.query_log]\npath = ["/var/log/x.sql"]\n[privacy]'),
        ("[output]", '[method]\nstart = "/etc/x.json"\n[output]'),
        ('source = "people.csv"', 'source = "duckdb:../people.duckdb#people"'),
        ("[output]", '[output]\nto = "sqlite:/tmp/out.db#people"'),
        ('source = "people.csv"', 'source = "env:DATABASE_OUTSIDE#people"'),
        ("[output]", '[engine]\nspill = "/var/spill"\n[output]'),
        ('source = "people.csv"', 'source = "file:///etc/people.parquet"\n[engine]\nname = "spark"'),
    ],
)
def test_a_spec_that_names_a_path_outside_is_refused_at_both_doors(
    door: Door, change: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_OUTSIDE", "sqlite:/etc/people.db")
    text = SPEC.replace(*change)
    assert text != SPEC
    answer = door.rest.post("/api/v1/jobs", data={"spec": text})
    assert answer.status_code == 422
    assert "leads out of the folder" in answer.json()["error"]["message"]
    assert "leads out of the folder" in door.post("/spec", text=text, seen="").text
    (door.folder / "spec.toml").write_text(text)
    assert "leads out of the folder" in door.post("/explore/run").text
    assert door.jobs.all() == []


@pytest.mark.parametrize("name", ["../../evil.csv", "/tmp/evil.csv", "..\\evil.csv", ".hidden.csv", "a" * 400 + ".csv"])
def test_an_upload_stays_among_the_uploads_and_is_private(door: Door, name: str) -> None:
    placed = door.folder / door.jobs.space.upload(name, io.BytesIO(b"a,b\n1,2\n"))
    assert placed.parent == door.folder / "uploads"
    assert placed.stat().st_mode & 0o077 == 0
    assert placed.parent.stat().st_mode & 0o077 == 0


def test_an_upload_that_is_too_large_is_refused_and_leaves_nothing(tmp_path) -> None:
    door = door_of(tmp_path, upload=20_000)
    sent = {"file": ("large.csv", b"a,b\n" + b"1,2\n" * 10_000)}
    answer = door.page.post("/table/upload", files=sent, headers={"origin": OWN})
    assert answer.status_code == 413
    kind = {"origin": OWN, "content-type": "multipart/form-data; boundary=x"}
    begin = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    lied = door.page.post("/table/upload", content=iter([begin, b"x" * 15_000, b"x" * 15_000]), headers=kind)
    assert lied.status_code == 413
    assert list((tmp_path / "uploads").iterdir()) == []
    door.jobs.close()


def test_names_and_values_of_a_table_are_shown_and_never_obeyed(door: Door) -> None:
    rows = "".join(f'{20 + row % 50},"{SCRIPT}",a\x1b[31m\n' for row in range(60))
    (door.folder / "odd.csv").write_text(f'age,"x"" onmouseover=""{SCRIPT}",word\n{rows}')
    seen = door.post("/table/choose", source="odd.csv")
    assert "60 rows" in seen.text
    for path in ("/table", "/columns?combine=1", "/demands", "/explore", "/risk?records=1"):
        text = door.page.get(path).text
        assert SCRIPT not in text
        assert 'x" onmouseover' not in text
        assert "\x1b" not in text
    assert "&lt;script&gt;" in door.page.get("/table").text


def test_the_password_of_a_database_is_shown_nowhere(door: Door) -> None:
    text = SPEC.replace("people.csv", "postgresql://anna:topsecret@localhost/people").replace(
        "[columns.name]", 'table = "p"\n[columns.name]'
    )
    (door.folder / "spec.toml").write_text(text)
    shown = door.page.get("/demands").text
    assert "topsecret" not in shown
    assert "anna:…@localhost" in shown
    assert "password" in door.post("/spec", text="x = '…@'", seen="").text


@pytest.mark.parametrize(
    "place",
    [Place("192.0.2.1"), Place("0.0.0.0"), Place("192.0.2.1", token_file=os.devnull), Place(certificate="x")],
)
def test_another_host_than_this_machine_needs_a_token_file_and_tls(place: Place) -> None:
    with pytest.raises(RequestError, match="--tls-key|--host"):
        place.checked()


def test_the_address_is_of_this_machine(shared: Door) -> None:
    assert Place().is_local
    assert Place("::1").is_local
    assert not Place("192.0.2.1").is_local
    assert HOST.startswith("127.")
