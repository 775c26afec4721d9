# SPDX-License-Identifier: Apache-2.0
"""The REST door: jobs, audits, events and releases, with the words of every other door; its OpenAPI is true."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from web_doors import OWN, SPEC, Door, people

from commands import command


def test_a_table_that_is_sent_along_is_released_as_the_command_releases_it(door: Door) -> None:
    sent = {
        "spec": ("spec.toml", SPEC.replace("people.csv", "elsewhere.csv")),
        "data": ("my people.csv", people(300, 2)),
    }
    made = door.rest.post("/api/v1/jobs", files=sent)
    assert made.status_code == 201
    job_id = made.json()["id"]
    door.jobs.wait(job_id, 60)
    job = door.rest.get(f"/api/v1/jobs/{job_id}").json()
    assert (job["state"], job["error"]) == ("done", None)
    assert job["verdict"]["met"]
    assert [stage["stage"] for stage in job["stages"]]
    (door.folder / "there").mkdir()
    (door.folder / "there" / "people.csv").write_text(people(300, 2))
    (door.folder / "there" / "spec.toml").write_text(SPEC)
    assert command("run", "spec.toml", "--out", "release", folder=door.folder / "there").returncode == 0
    assert not list((door.folder / "runs" / job_id).glob("**/my people*"))
    packed = zipfile.ZipFile(io.BytesIO(door.rest.get(job["release"]).content))
    for path in (door.folder / "there" / "release").iterdir():
        assert packed.read(f"release/{path.name}") == path.read_bytes(), path.name
    assert not [name for name in packed.namelist() if "internal" in name]


def test_events_tell_stages_and_the_end(door: Door) -> None:
    job_id = door.rest.post("/api/v1/jobs", data={"spec": SPEC}).json()["id"]
    told = door.rest.get(f"/api/v1/jobs/{job_id}/events").text.strip().split("\n\n")
    assert told[0].startswith("event: stage\ndata: ")
    end = told[-1].partition("data: ")[2]
    assert told[-1].startswith("event: end\n")
    assert json.loads(end)["state"] == "done"


def test_faults_of_a_spec_are_told_at_once_and_all_together(door: Door) -> None:
    answer = door.rest.post("/api/v1/jobs", data={"spec": "version = 1\n[privacy]\nl = 3\n"})
    assert answer.status_code == 422
    (door.folder / "wrong.toml").write_text("version = 1\n[privacy]\nl = 3\n")
    told = json.loads(command("run", "wrong.toml", "--json", folder=door.folder).stdout)
    assert answer.json() == told
    assert len(told["error"]["faults"]) > 1
    assert door.rest.get("/api/v1/jobs").json() == []
    assert list((door.folder / "runs").iterdir()) == []


def test_any_file_is_audited(door: Door) -> None:
    sent = {"data": ("file.csv", people(100))}
    asked = {"quasi_identifiers": ["age", "sex"], "sensitive": "illness", "k": "3"}
    job = door.rest.post("/api/v1/audits?wait=60", data=asked, files=sent).json()
    assert (job["state"], job["passed"]) == ("done", False)
    assert any("k = 3" in sentence for sentence in job["verdict"])


def test_a_job_is_cancelled_and_then_has_no_release(door: Door) -> None:
    (door.folder / "people.csv").write_text(people(400_000))
    job_id = door.rest.post("/api/v1/jobs", data={"spec": SPEC}).json()["id"]
    assert door.rest.delete(f"/api/v1/jobs/{job_id}").json()["state"] == "cancelled"
    assert door.rest.get(f"/api/v1/jobs/{job_id}/release").status_code == 409
    assert door.rest.get("/api/v1/jobs/0009-00000000").status_code == 404


def tried(shared: Door, examples: int, mode) -> int:
    """Send what the document allows, or what it does not; how many requests were sent. No answer is a failure."""
    document = shared.rest.get("/api/v1/openapi.json").json()
    sent = 0
    for operation in schemathesis.openapi.from_dict(document).get_all_operations():

        @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.ok().as_strategy(generation_mode=mode))
        def ask(case) -> None:
            nonlocal sent
            sent += 1
            words = case.as_transport_kwargs(base_url=OWN)
            words["headers"] = {**words.get("headers", {}), "authorization": f"Bearer {shared.keys.bearer}"}
            if isinstance(words.get("params"), dict) and isinstance(words["params"].get("wait"), int | float):
                del words["params"]["wait"]  # nothing is learned by waiting
            if isinstance(words.get("data"), bytes | str):
                words["content"] = words.pop("data")
            answer = shared.rest.request(**{key: words[key] for key in words if key not in ("cookies", "auth")})
            assert answer.status_code < 500, answer.text

        ask()
    return sent


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_that_the_document_allows_or_forbids_is_a_failure(shared: Door, mode) -> None:
    assert tried(shared, 6, mode) > 20


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_of_many_is_a_failure(shared: Door, mode) -> None:
    assert tried(shared, 200, mode) > 500
