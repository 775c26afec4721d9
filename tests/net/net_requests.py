# SPDX-License-Identifier: Apache-2.0
"""A made-up table and the requests whose releases must not change: what the code does is held here by bytes, so that
how it does it can change.
"""

from __future__ import annotations

import csv
from datetime import date, timedelta
from pathlib import Path
from random import Random

ROWS = 900

COUNTRIES = {"west": ["FR", "DE", "NL", "BE"], "north": ["SE", "NO"], "south": ["IT", "ES", "PT"], "far": ["US"]}
ILLNESSES = ["asthma", "diabetes", "fracture", "hypertension", "infection", "migraine"]

SPEC = """
version = 1
[data]
source = "patients.csv"
[columns]
patient = { role = "identifier" }
visitor = { role = "identifier" }
persons = { role = "identifier" }
weight = { role = "identifier" }
age = { role = "quasi-identifier" }
admitted = { role = "quasi-identifier", type = "date" }
severity = { role = "quasi-identifier", type = "ordinal", order = ["mild", "moderate", "severe"] }
sex = { role = "quasi-identifier" }
country = { role = "quasi-identifier", taxonomy = "countries.txt" }
stay = { role = "quasi-identifier" }
illness = { role = "sensitive" }
costs = { role = "sensitive", diversity = "none", reason = "made up" }
outcome = { role = "target" }
score = { role = "target" }
ward = { role = "insensitive" }
[privacy]
k = 8
[[privacy.diversity]]
column = "illness"
model = "distinct-l"
l = 2
[workload]
targets = ["outcome"]
"""

LOG = """
SELECT count(*) FROM patients WHERE age >= 60 AND country IN ('FR', 'DE');
SELECT ward, count(*) FROM patients WHERE severity = 'severe' GROUP BY ward;
SELECT avg(age) FROM patients WHERE stay > 5;
SELECT count(*) FROM patients WHERE age >= 60 AND country IN ('FR', 'DE');
SELECT sex, avg(stay) FROM patients WHERE age BETWEEN 20 AND 40 GROUP BY sex;
"""

BLIND = 'method.criterion="median"'
RAW = ["workload.denoise=false", "method.min_gain=0.0", 'columns.country.split="multiway"']
"""By raw labels, to the end, level by level of a taxonomy: what a target alone does not ask for."""
TDR = 'method.algorithm="tdr"'
TREE = ['method.algorithm="tree"', 'columns.illness.role="insensitive"', 'columns.costs={role="identifier"}',
        'columns.score.role="identifier"', "privacy.diversity=[]", 'data.missing_policy="drop"']  # fmt: skip
NAMES = ['method.variant="id3"', 'columns.age.role="identifier"', 'columns.stay.role="identifier"',
         'columns.admitted={role="identifier"}', 'columns.severity={role="quasi-identifier", type="nominal", split="multiway"}',
         'columns.sex.split="multiway"']  # fmt: skip
SELECTIONS = "workload.selections=[{where=\"age >= 60 and country in ('FR', 'DE')\"}, {where=\"stay < 3 or ward = 'B'\", weight=2.0}]"


def _model(text: str) -> str:
    return f'privacy.diversity=[{{column="illness", {text}}}]'


def _costs(text: str) -> list[str]:
    illness = '{column="illness", model="distinct-l", l=2}'
    return ['columns.costs={role="sensitive"}', f'privacy.diversity=[{illness}, {{column="costs", {text}}}]']


BY_RAW_VALUES: dict[str, list[str]] = {
    "median": [BLIND],
    "infogain": [],
    "infogain all cuts": ['method.candidates="all"'],
    "infogain min gain": ["method.min_gain=3.0"],
    "infogain split on": ['method.split_on=["age", "country"]'],
    "infogain two targets": ['workload.targets=["outcome", {column="score", classes=[40, 60], weight=0.5}]'],
    "infogain equal width": ['workload.targets=[{column="score", equal_width=4}]'],
    "infogain denoised": ["workload.denoise=true"],
    "lsd": ['workload.targets=["score"]'],
    "lsd unscaled": ['workload.targets=[{column="score", scale=false}]'],
    "lsd denoised": ['workload.targets=["score"]', "workload.denoise=true"],
    "both kinds of targets": ['workload.targets=["outcome", "score"]'],
    "a quasi-identifier as target": ['workload.targets=["outcome", "age"]'],
    "selections": ["workload.targets=[]", SELECTIONS],
    "selections then infogain": [SELECTIONS],
    "a selection for each country": ['workload.selections=[{each="country"}]'],
    "weights first": ["workload.targets=[]", "workload.weights={age=2.0, country=0.5}"],
    "weights naive": ["workload.weights={age=2.0, country=0.5}", 'method.weight_rule="naive"'],
    "weights product": ["workload.weights={age=2.0, country=0.5}", 'method.weight_rule="product"'],
    "weights blend": ["workload.weights={age=2.0}", 'method.weight_rule="blend"', "method.alpha=0.7"],
    "weights probabilistic": ["workload.weights={age=2.0}", 'method.weight_rule="probabilistic"', "method.seed=3"],
    "weights combined": ["workload.weights={stay=2.0}", 'method.weight_rule="combined"', "method.gamma=0.3"],
    "weights by accuracy": ['workload.weights_from="accuracy"'],
    "features": ["workload.targets=[]", 'workload.features=["age", "stay"]'],
    "selected by": ["workload.targets=[]", 'workload.selected_by=["country"]'],
    "clustering": ["workload.targets=[]", 'method.criterion="clustering"', "workload.clusters=3"],
    "query log": ["workload.targets=[]", 'workload.query_log={path="log.sql"}'],
    "query log as a judge": ['workload.query_log={path="log.sql", learn=false}'],
    "query log minterms": ["workload.targets=[]", 'workload.query_log={path="log.sql", minterms=6}'],
    "rules": ["workload.rules=true"],
    "distinct-l": [_model('model="distinct-l", l=4')],
    "entropy-l": [_model('model="entropy-l", l=4.5')],
    "recursive-cl": [_model('model="recursive-cl", c=2.0, l=2')],
    "t-closeness": [_model('model="t-closeness", t=0.3')],
    "alpha-k": [_model('model="alpha-k", alpha=0.5')],
    "beta-likeness": [_model('model="beta-likeness", beta=1.5')],
    "beta-likeness enhanced": [_model('model="beta-likeness", beta=1.5, enhanced=true')],
    "delta-disclosure": [_model('model="delta-disclosure", delta=1.6')],
    "variance": _costs('model="variance", variance=900.0'),
    "squared error": _costs('model="squared-error", error=40000.0'),
    "t-closeness of numbers": _costs('model="t-closeness", t=0.25'),
    "max confidence": ["privacy.max_confidence=0.85", 'columns.score.role="identifier"'],
    "entity": ['columns.visitor.role="entity"'],
    "entity median": ['columns.visitor.role="entity"', BLIND],
    "count": ['columns.persons.role="count"'],
    "sample weight": ['columns.weight.role="sample-weight"'],
    "count and sample weight": ['columns.persons.role="count"', 'columns.weight.role="sample-weight"'],
    "missing dropped": ['data.missing_policy="drop"'],
    "binary splits": ['columns.country.split="binary"', 'columns.sex.split="binary"'],
    "subset splits": ['columns.country.split="subset"'],
    "multiway flat": ['columns.sex.split="multiway"'],
    "declared domains": ["columns.age.domain=[0, 120]", 'columns.sex.domain=["f", "m", "x", "u"]'],
    "cuts at values": ['method.cut_points="value"', "output.consent=true"],
    "bounds": ['output.values="bounds"'],
    "representative": ['output.values="representative"'],
    "observed regions": ['output.regions="observed"', "output.consent=true"],
    "original order": ['output.order="original"', "output.consent=true"],
    "parquet": ['output.format="parquet"'],
    "arrow": ['output.format="arrow"'],
    "k 40": ["privacy.k=40"],
}

OTHERS: dict[str, list[str]] = {
    "target alone": [],
    "target alone k 3": ["privacy.k=3"],
    "target alone of numbers": ['workload.targets=["score"]'],
    "target alone twice": ['workload.targets=["outcome", {column="score", weight=0.5}]'],
    "target alone itself generalized": ['workload.targets=["outcome", "age"]'],
    "target alone then selections": [SELECTIONS],
    "target alone count and sample weight": ['columns.persons.role="count"', 'columns.weight.role="sample-weight"'],
    "target alone with weights": ["workload.weights={age=2.0, country=0.5}"],
    "explore": ["workload.targets=[]", 'method.criterion="explore"'],
    "tdr": [TDR],
    "tdr infogain": [TDR, 'method.criterion="infogain"'],
    "tdr several": [
        TDR,
        'method.average="all"',
        'privacy.quasi_identifiers=[{columns=["age", "sex", "country"], k=30},'
        ' {columns=["admitted", "severity", "stay", "sex"]}]',
    ],
    "tdr zero gain": [
        TDR,
        "method.zero_gain=true",
        'method.suppression="best_gain"',
        "privacy.k=3",
    ],
    "tdr entropy-l": [TDR, _model('model="entropy-l", l=5.0')],
    "tdr count": [TDR, 'columns.persons.role="count"'],
    "tree table": TREE,
    "tree table k 30": [*TREE, "privacy.k=30", "method.pruning=0.1"],
    "tree table id3": [*TREE, *NAMES],
}

REQUESTS = {name: [*RAW, *settings] for name, settings in BY_RAW_VALUES.items()} | OTHERS

TREES: dict[str, list[str]] = {
    "c45": TREE,
    "c45 unpruned": [*TREE, "method.pruning=0.0"],
    "c45 public class": [*TREE, "privacy.class_is_public=true"],
    "c45 relative": [*TREE, 'output.populations="relative"'],
    "c45 majority": [*TREE, 'output.populations="majority"', "privacy.k=20"],
    "c45 max confidence": [*TREE, "privacy.max_confidence=0.9"],
    "id3": [*TREE, *NAMES],
}  # fmt: skip


def _row(random: Random, number: int) -> dict[str, object]:
    def draw(choices: list[str]) -> str:
        return choices[int(random.random() * len(choices))]

    age = int(18 + 70 * random.random() ** 1.3)
    country = draw(COUNTRIES[draw(["west", "west", "north", "south", "south", "far"])])
    severity = draw(["mild", "mild", "moderate", "severe"])
    stay = int(1 + 20 * random.random() ** 3)
    risk = age / 88 + (severity == "severe") * 0.4 + stay / 40 + 0.5 * random.random()
    return {
        "patient": f"p{number:04}",
        "visitor": f"v{age}-{int(3 * random.random())}",
        "persons": 1 + int(random.random() * 3),
        "weight": round(0.5 + random.random(), 3),
        "age": "" if random.random() < 0.03 else age,
        "admitted": date(2024, 1, 1) + timedelta(days=int(300 * random.random())),
        "severity": severity,
        "sex": draw(["f", "m", "f", "m", "f", "m", "x"]),
        "country": country,
        "stay": stay,
        "illness": draw(ILLNESSES),
        "costs": round(100 + 40 * stay * random.random(), 1),
        "outcome": "died" if risk > 1.25 else "well",
        "score": round(100 * risk / 2.2),
        "ward": draw(["A", "B", "C"]),
    }


def write_request(folder: Path) -> Path:
    """The table, its taxonomy, a query log and the spec that all requests begin with; returns the spec's path."""
    random = Random(20)
    rows = [_row(random, number) for number in range(ROWS)]
    with (folder / "patients.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        "all",
        *(line for part, leaves in COUNTRIES.items() for line in (f"  {part}", *(f"    {leaf}" for leaf in leaves))),
    ]
    (folder / "countries.txt").write_text("\n".join(lines) + "\n")
    (folder / "log.sql").write_text(LOG)
    (folder / "spec.toml").write_text(SPEC)
    return folder / "spec.toml"
