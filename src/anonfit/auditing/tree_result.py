# SPDX-License-Identifier: Apache-2.0
"""What the audit of a model found: plain, frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from anonfit.auditing.figures import PERSONS, Share, plain
from anonfit.auditing.result import Audit, Finding

__all__ = ["Exposure", "OneTree", "Span", "TreeAudit"]


@dataclass(frozen=True, slots=True)
class Exposure:
    """The individuals whose class an attacker can tell with a confidence: so large a part of their span has it."""

    confidence: float
    persons: Share


@dataclass(frozen=True, slots=True)
class Span:
    """One span: how many individuals have it, in which leaves they can be, and their class where that is public."""

    persons: int = field(metadata=PERSONS)
    leaves: tuple[int, ...]
    of_class: str | None = None


@dataclass(frozen=True, slots=True)
class OneTree:
    """A tree of a forest by itself."""

    leaves: int
    spans: int
    smallest: int | None = field(metadata=PERSONS)
    persons_below_k: Share | None
    certain: Share | None  # whose class the tree makes certain


@dataclass(frozen=True, slots=True)
class TreeAudit:
    """How anonymous the release of a model is. The groups of `spans` are its spans: persons nobody can tell apart by
    the model and public values. `passed` is about what was asked; the figures are there in any case.
    """

    kind: Literal["tree", "forest", "model"]
    public: tuple[str, ...]
    private: tuple[str, ...]
    target: str | None
    class_is_public: bool
    outcomes: int  # leaves, of all trees; of another model, the outcomes that were met
    spans: Audit
    exposed: tuple[Exposure, ...]  # none where the class is public or not given
    trees: tuple[OneTree, ...]
    of_spans: tuple[Span, ...]  # of a single tree

    @property
    def k(self) -> int | None:
        """The individuals in the smallest span: the model is k-anonymous for this k (Definition 7)."""
        return self.spans.k

    @property
    def below_k(self) -> Share | None:
        """The individuals in spans of fewer than k; None where no k was asked."""
        return self.spans.sizes.persons_below_k

    @property
    def certain(self) -> Share | None:
        """The individuals whose class is certain: all of their span have the same."""
        return next((one.persons for one in self.exposed if one.confidence == 1), None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every demand, and whether it is met."""
        return self.spans.findings

    @property
    def passed(self) -> bool | None:
        """Whether every demand is met; one that could not be checked is not. None: nothing was asked."""
        return self.spans.passed

    @property
    def missed(self) -> tuple[Finding, ...]:
        """Demands that are not met, or could not be checked."""
        return self.spans.missed

    @property
    def verdict(self) -> tuple[str, ...]:
        """In sentences: what was asked and met or missed, and what the folder of a tree claims of itself."""
        return self.spans.verdict

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know."""
        return self.spans.notes

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready: for the owner of the data."""
        return {"passed": self.passed, "k": self.k, **plain(self), "spans": self.spans.to_dict()}

    def public_figures(self, k: int) -> dict[str, Any]:
        """The same without any figure about fewer than k individuals, or all but fewer than k."""
        spans = self.spans.public(k)
        return {"passed": self.passed, "k": spans["k"], **plain(self, k), "spans": spans}
