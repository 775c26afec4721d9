# SPDX-License-Identifier: Apache-2.0
"""Manifests, recodings, models, specs, taxonomies, query logs and predicates, changed at random: each is refused with a
sentence or is harmless. Nothing crashes, hangs, or reads a file that it was not given."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CDLL, c_char_p, c_uint32, get_errno
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from mutating import mutate_json, mutate_text

import anonfit as af
from anonfit.cli.specs import workload
from anonfit.engines.tree import LEAF
from anonfit.errors import AnonfitError
from anonfit.recoding.recoding import Recoding
from anonfit.release.bind import schema_of
from anonfit.runtime.files import file_hash
from anonfit.spec.parse import read_spec
from anonfit.tables.taxonomy_files import read_taxonomy
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import kinds_of
from anonfit.workload.truth import holds
from json_layout import write_json

SECONDS = 10.0
"""What any file may take, in time of the processor."""
TREE = {
    "name": "*",
    "children": [{"name": "west", "children": [{"name": "fr"}, {"name": "de"}]}, {"name": "us"}, {"name": "jp"}],
}
SPEC = """version = 1
[data]
source = "people.csv"
missing = ["", "?"]
missing_policy = "category"
[columns.age]
role = "quasi-identifier"
type = "continuous"
domain = [0, 120]
[columns.place]
role = "quasi-identifier"
taxonomy = "place.csv"
split = "multiway"
[columns.stage]
role = "quasi-identifier"
type = "ordinal"
order = ["low", "mid", "high"]
[columns.born]
role = "quasi-identifier"
type = "date"
[columns.ill]
role = "sensitive"
[columns.outcome]
role = "target"
[privacy]
k = 5
[[privacy.diversity]]
column = "ill"
model = "distinct-l"
l = 2
[workload]
targets = ["outcome", { column = "age", classes = [30, 60], weight = 0.5 }]
[[workload.selections]]
where = "age >= 50 and place in ('fr', 'de')"
weight = 2.0
[method]
algorithm = "mondrian"
cut_points = "simplest"
[output]
format = "csv"
values = "labels"
"""
TREE_SPEC = """version = 1
data = { source = "people.csv", missing_policy = "drop" }
columns.age = { role = "quasi-identifier", domain = [0, 120] }
columns.place = { role = "quasi-identifier", taxonomy = "place.csv" }
columns.stage = { role = "quasi-identifier", type = "ordinal", order = ["low", "mid", "high"] }
columns.born = { role = "quasi-identifier", type = "date" }
columns.ill = { role = "insensitive" }
columns.outcome = { role = "target" }
privacy.k = 5
"""
TAXONOMIES = {
    "csv": "fr;west;*\nde;west;*\nus;us;*\njp;jp;*\n",
    "json": json.dumps(TREE),
    "txt": "*\n  west\n    fr\n    de\n  us\n  jp\n",
}
LOG = """SELECT count(*) FROM people WHERE age >= 50 AND place = 'fr';
select avg(age) from people p join other o on p.id = o.id where p.stage in ('low', 'mid') group by place;
-- a remark
SELECT * FROM people WHERE born BETWEEN '1960-01-01' AND '1980-12-31' OR ill IS NULL;
INSERT INTO people VALUES (1, 'x');
"""
SECRETS = ("secret.csv", "secret.json", "secret.parquet", "secret.txt", "secret.sql", "data.csv", "recoding.json")
PREDICATE = "age >= 50 and not (place in ('fr', 'de') or stage = 'low') and born between '1950-01-01' and '1970-01-01'"


def people(rows: int = 150) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "place": rng.choice(["fr", "de", "us", "jp"], rows),
            "stage": rng.choice(["low", "mid", "high"], rows),
            "born": [date(1940, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 20_000, rows)],
            "ill": rng.choice(["flu", "cold", "none"], rows),
            "outcome": rng.choice(["yes", "no"], rows),
        }
    )


@dataclass
class Watched:
    """What was opened: by Python anywhere but where its libraries are, and by anybody among the files outside."""

    outside: Path
    opened: list[str] = field(default_factory=list)
    active: bool = False

    def __post_init__(self) -> None:
        libc = CDLL("libc.so.6", use_errno=True)
        self.events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.events >= 0, get_errno()
        opened = 0x20  # IN_OPEN
        assert libc.inotify_add_watch(self.events, c_char_p(os.fsencode(self.outside)), c_uint32(opened)) >= 0
        sys.addaudithook(self.hear)

    def hear(self, event: str, given: tuple[Any, ...]) -> None:
        """Python tells before it opens anything."""
        if self.active and event == "open" and isinstance(given[0], (str, bytes)):
            self.opened.append(os.fsdecode(given[0]))

    @contextmanager
    def watching(self, *folders: Path) -> Iterator[None]:
        """Nothing but what is in the folders, and what Python itself needs, may be opened here."""
        self.opened.clear()
        self.active = True
        try:
            yield
        finally:
            self.active = False
        libraries = (sys.prefix, sys.base_prefix, "/usr", "/proc/self/", "/sys/", "/dev/null", "/etc/localtime")
        allowed = (
            *map(str, folders),
            *libraries,
            os.environ.get("XDG_CACHE_HOME", "\0"),
            str(Path(af.__file__).parent),
        )
        strange = [path for path in self.opened if not os.path.abspath(path).startswith(allowed)]  # noqa: PTH100
        strange = [path for path in strange if not path.endswith((".py", ".pyc", ".so", ".nbi", ".nbc"))]
        assert not strange, strange
        try:
            heard = os.read(self.events, 65536)
        except BlockingIOError:
            heard = b""
        assert not heard, "a file outside was opened"


@dataclass(frozen=True)
class World:
    """Good files of every kind, and files that nobody was given."""

    folder: Path
    watched: Watched
    outside: list[str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Machine code is there before seconds are counted."""
    from anonfit.release.engine import prepare

    for models, refining in ((False, False), (True, False), (True, True)):
        prepare(print, models=models, refining=refining, ahead=False)
    return make_world(tmp_path_factory.mktemp("good"), tmp_path_factory.mktemp("outside"))


def make_world(folder: Path, outside: Path) -> World:
    """Good files of every kind, and files outside."""
    for name in SECRETS:
        (outside / name).write_text("name;diagnosis\nmrs x;flu\n")
    frame = people()
    frame.write_csv(folder / "people.csv")
    (folder / "spec.toml").write_text(SPEC)
    for ending, text in TAXONOMIES.items():
        (folder / f"place.{ending}").write_text(text)
    words: dict[str, Any] = {
        "quasi_identifiers": ["age", "place", "stage", "born"],
        "k": 5,
        "targets": ["outcome"],
        "types": {"stage": "ordinal"},
        "orders": {"stage": ["low", "mid", "high"]},
        "taxonomies": {"place": TREE},
        "domains": {"age": [18, 90]},
        "identifiers": ["ill"],
    }
    af.anonymize(frame, splits={"place": "binary"}, **words).save(folder / "tree", format="csv")
    af.anonymize(frame, algorithm="tdr", **words).save(folder / "grid", format="parquet")
    (folder / "tree.toml").write_text(TREE_SPEC)
    af.run_tree(folder / "tree.toml", folder / "model")
    return World(folder, Watched(outside), sorted(str(outside / name) for name in SECRETS))


def copied(source: Path, target: Path, name: str, content: bytes, *, mend: bool) -> Path:
    """A folder whose one file is another, with the hash in its manifest mended or not."""
    shutil.copytree(source, target)
    (target / name).write_bytes(content)
    if mend and name != "manifest.json":
        manifest = json.loads((target / "manifest.json").read_text())
        manifest["files"][name] = file_hash(target / name)
        write_json(target / "manifest.json", manifest)
    return target


def told(error: AnonfitError) -> None:
    """A refusal is a sentence that does not go on for ever."""
    assert 10 < len(str(error)) < 5000


def check_recoding(recoding: Recoding) -> None:
    """Rows go to one region each, or are refused."""
    for unseen in ("error", "suppress"):
        try:
            frame = people(40)
            cells = recoding.cells(frame, unseen=unseen)  # type: ignore[arg-type]
            nodes = recoding.nodes(cells)
            assert len(recoding.apply(frame, unseen=unseen)) == len(frame)
        except AnonfitError:
            continue
        known = np.all([found >= 0 for found in cells], axis=0) if cells else np.ones(len(frame), bool)
        if hasattr(recoding.shape, "column"):
            assert (recoding.tree.column[nodes[known]] == LEAF).all()


def release_door(world: World, folder: Path, rng: random.Random) -> None:
    """A release folder with one file changed: loaded and audited."""
    kind = rng.choice(["tree", "grid"])
    name = rng.choice(["manifest.json", "manifest.json", "recoding.json", "report.json"])
    content = mutate_json((world.folder / kind / name).read_bytes(), rng, world.outside, name)
    release = copied(world.folder / kind, folder / "release", name, content, mend=rng.random() < 0.9)
    for door in (af.load, af.audit_release):
        try:
            found = door(release)
            if door is af.load:
                check_recoding(found.recoding)
                found.extend(people(60))
        except AnonfitError as error:
            told(error)


def recoding_door(world: World, folder: Path, rng: random.Random) -> None:
    """The text of a recoding."""
    content = mutate_json(
        (world.folder / rng.choice(["tree", "grid"]) / "recoding.json").read_bytes(),
        rng,
        world.outside,
        "recoding.json",
    )
    check_recoding(Recoding.from_json(content.decode("utf-8", "replace")))


def model_door(world: World, folder: Path, rng: random.Random) -> None:
    """The model of a tree: loaded, asked and audited."""
    name = rng.choice(["model.json", "model.json", "manifest.json", "audit.json"])
    content = mutate_json((world.folder / "model" / name).read_bytes(), rng, world.outside, name)
    release = copied(world.folder / "model", folder / "model", name, content, mend=rng.random() < 0.9)
    for model in (release, release / "model.json"):
        try:
            tree = af.load_tree(model)
            assert len(tree.predict(people(40))) == 40
            assert len(tree.predict_shares(people(40))) == 40
        except AnonfitError as error:
            told(error)
    af.audit_tree(release, people(), target="outcome", k=2)


def taxonomy_door(world: World, folder: Path, rng: random.Random) -> None:
    """A taxonomy of every format."""
    ending = rng.choice(list(TAXONOMIES))
    good = TAXONOMIES[ending].encode()
    is_json = ending == "json"
    content = mutate_json(good, rng, world.outside, "") if is_json else mutate_text(good, rng, world.outside)
    (folder / f"place.{ending}").write_bytes(content)
    taxonomy = read_taxonomy(folder / f"place.{ending}")
    json.dumps(taxonomy.to_tree())


def predicate_door(world: World, folder: Path, rng: random.Random) -> None:
    """The predicate of a selection."""
    text = mutate_text(PREDICATE.encode(), rng, world.outside).decode("utf-8", "replace")
    frame = people(40)
    spec = read_spec(world.folder / "spec.toml")
    holds(parse_predicate(text, kinds_of(schema_of(spec, frame.columns).columns, frame)), frame)


DOORS: dict[str, Callable[[World, Path, random.Random], None]] = {
    "release": release_door,
    "recoding": recoding_door,
    "model": model_door,
    "taxonomy": taxonomy_door,
    "predicate": predicate_door,
}


def spec_door(world: World, folder: Path, rng: random.Random) -> None:
    """A spec: read and run. It may name any file, so what it opens is not looked at."""
    for name in ("people.csv", "place.csv"):
        shutil.copyfile(world.folder / name, folder / name)
    content = mutate_text(SPEC.encode(), rng, ["people.csv", "place.csv"])
    (folder / "spec.toml").write_bytes(content)
    af.run(folder / "spec.toml", folder / "out")


def log_door(world: World, folder: Path, rng: random.Random) -> None:
    """A query log, by the verb that learns from it."""
    (folder / "log.sql").write_bytes(mutate_text(LOG.encode(), rng, world.outside))
    workload(
        [folder / "log.sql"],
        world.folder / "spec.toml",
        folder / "learned.toml",
        dialect=rng.choice([None, "postgres", "tsql"]),
        replace=True,
        as_json=True,
    )


FREE_DOORS = {"spec": spec_door, "log": log_door}


def seed_of(kind: str, number: int) -> int:
    return zlib.crc32(kind.encode()) + number


def late(*_: object) -> None:
    raise TimeoutError


def check(kind: str, number: int, world: World, tmp_path: Path) -> None:
    """One changed file: refused with a sentence, or harmless, and soon."""
    folder = tmp_path / f"{kind}-{number}"
    folder.mkdir()
    rng = random.Random(seed_of(kind, number))
    before, begin = signal.signal(signal.SIGALRM, late), time.process_time()
    signal.alarm(120)
    try:
        if kind in DOORS:
            with world.watched.watching(folder, world.folder):
                attempt(DOORS[kind], world, folder, rng)
        else:
            attempt(FREE_DOORS[kind], world, folder, rng)
    except Exception as error:
        raise AssertionError(f"{kind} {number}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        shutil.rmtree(folder)
    assert time.process_time() - begin < SECONDS, f"{kind} {number} took too long"


def attempt(door: Callable[[World, Path, random.Random], None], world: World, folder: Path, rng: random.Random) -> None:
    try:
        door(world, folder, rng)
    except AnonfitError as error:
        told(error)


EVERY = {"release": 60, "recoding": 150, "model": 60, "taxonomy": 200, "predicate": 150, "spec": 25, "log": 4}
MANY = {"release": 2000, "recoding": 2500, "model": 1500, "taxonomy": 1500, "predicate": 1000, "spec": 1300, "log": 200}


@pytest.mark.parametrize("kind", EVERY)
def test_a_mutated_file_is_refused_or_harmless(kind: str, world: World, tmp_path: Path) -> None:
    for number in range(EVERY[kind]):
        check(kind, number, world, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("tenth", range(10))
@pytest.mark.parametrize("kind", MANY)
def test_ten_thousand_mutated_files_are_refused_or_harmless(
    kind: str, tenth: int, world: World, tmp_path: Path
) -> None:
    count = MANY[kind] // 10
    for number in range(1000 + tenth * count, 1000 + (tenth + 1) * count):
        check(kind, number, world, tmp_path)
