"""What the privacy report is made of: risk by links and distance, reasons, the attack."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from telic.errors import InputError
from telic.evaluate.wilson import wilson_interval
from telic.hin import Network, density
from telic.privacy.adversary import Adversary, label_of
from telic.privacy.advice.advise import Advice, advise
from telic.privacy.attacks.attribute_inference import Inference, inference
from telic.privacy.attacks.auxiliary import Auxiliary, TooManyPairs
from telic.privacy.attacks.dehin import MAX_PAIRS, attack
from telic.privacy.attacks.link_errors import EXACT, LinkErrors
from telic.privacy.attacks.score import Score, same_ids, scores
from telic.privacy.link_type_sets import sets_to_judge
from telic.privacy.risk.limits import Limits
from telic.privacy.risk.risks import Risk, risks
from telic.privacy.risk.views import farthest

SECONDS = 300
"""How long the report searches for a release at most."""
TELLING = 0.9
"""Above this risk by profile alone, links are shown without profiles: they could add nothing."""


ALL_LINKS = "all links"
ATTACK_DUMP = ("distance", "precision", "unique_wrong", "empty")
"""What JSON says of the attack's scores."""


class Without(NamedTuple):
    """Who would look alike if one field were not seen."""

    field: str
    risk: float
    sizes: np.ndarray


class Attacked(NamedTuple):
    """The attack at one distance, with the interval of its precision."""

    score: Score
    low: float
    high: float


@dataclass(frozen=True)
class RiskFindings:
    """All that the report says, as numbers.

    Parameters
    ----------
    network : Network
    adversary : Adversary
    every : list of Risk
        By set of link types and distance.
    full : list of Risk
        Those of all link types together.
    mapped : list of Risk
        What to draw: `every`, or where profiles alone tell nearly all apart, what the links tell
        without any attribute.
    without : list of Without
        Field by field.
    inferred : list of Inference
        By attribute that the adversary sees of the people.
    attacked : list of Attacked or None
        By distance; None: too many pairs of users would have to be compared.
    errors : LinkErrors
        What the attack tolerated.
    known_users, not_known : int
        Users whom the attacker knows; published users who are not among them.
    own : bool
        Whether the attacker was taken to know the network itself.
    advised : Advice or None
    """

    network: Network
    adversary: Adversary
    every: list[Risk]
    full: list[Risk]
    mapped: list[Risk]
    without: list[Without]
    inferred: list[Inference]
    attacked: list[Attacked] | None
    errors: LinkErrors
    known_users: int
    not_known: int
    own: bool
    advised: Advice | None

    @property
    def users(self) -> int:
        """How many people are to be protected."""
        return self.network.size(self.adversary.node_type)

    @property
    def last(self) -> Risk:
        """All link types, as far as anything changes."""
        return self.full[-1]

    def facts(self) -> dict[str, Any]:
        """Give the numbers for JSON."""
        last, advised = self.last, self.advised
        facts: dict[str, Any] = {
            "users": self.users,
            "adversary": self.adversary.dump(),
            "density": density(self.network),
            "risk_by_profile": self.full[0].risk,
            **measures_dump(last),
            "rows": [
                {"links": list(r.links), "distance": r.distance, **measures_dump(r)}
                for r in self.every
            ],
            "risk_without": {one.field: one.risk for one in self.without},
            "inference": [asdict(one) for one in self.inferred],
            "link_errors": {**asdict(self.errors), "words": self.errors.words()},
            "attack": None
            if self.attacked is None
            else [
                {name: getattr(one.score, name) for name in ATTACK_DUMP} for one in self.attacked
            ],
        }
        if advised is not None:
            facts["advice"] = {
                "steps": advised.steps,
                "limits": advised.limits.given(),
                **measures_dump(advised.after[-1]),
                "loss": advised.loss,
                "attack_precision": advised.attacked,
                "frontier": [
                    {"loss": p.loss, "risk": p.found.risk, "highest": p.found.highest}
                    for p in advised.frontier
                ],
            }
        return facts


def measures_dump(found: Risk) -> dict[str, float]:
    """Give a risk's measures for JSON."""
    return {
        "risk": found.risk,
        "highest": found.highest,
        "worst_1_percent": found.tail,
        "singled_out": found.unique,
    }


def gather(
    network: Network,
    adversary: Adversary,
    *,
    auxiliary: Network | None,
    errors: LinkErrors = EXACT,
    limits: Limits | None,
    progress: Callable[[str], None],
) -> RiskFindings:
    """Judge a network in every way that the report shows."""
    known = network if auxiliary is None else auxiliary
    truth = same_ids(known, network, adversary.node_type)
    if len(truth) and (truth < 0).all():  # nobody would be found, which is no protection
        raise InputError(
            f"auxiliary: none of the network's {adversary.node_type} ids is in it, so that nobody "
            "can be recognised. Give both with the ids that they had before new ones were drawn."
        )
    names = list(adversary.links)
    progress("risk by link types and distance")
    every = list(risks(network, adversary, links=sets_to_judge(names)))
    mapped = every
    if every[0].risk > TELLING and names:
        blind = replace(adversary, attributes={kind: {} for kind in adversary.attributes})
        mapped = list(risks(network, blind, links=sets_to_judge(names)))
    progress("what each field adds")
    without = list(_without(network, adversary))
    progress("what can be inferred")
    inferred = [
        inference(network, name, adversary=adversary)
        for name in adversary.attributes[adversary.node_type]
    ]
    progress("running the attack")
    attacked = _attacked(network, known, adversary, truth, errors)
    advised = None
    if limits is not None:
        progress("searching for a release")
        advised = advise(network, limits, adversary=adversary, seconds=SECONDS, progress=progress)
    return RiskFindings(
        network=network,
        adversary=adversary,
        every=every,
        full=[risk for risk in every if len(risk.links) == len(names)],
        mapped=mapped,
        without=without,
        inferred=inferred,
        attacked=attacked,
        errors=errors,
        known_users=known.size(adversary.node_type),
        not_known=int((truth < 0).sum()),
        own=auxiliary is None,
        advised=advised,
    )


def _without(network: Network, adversary: Adversary) -> Iterator[Without]:
    """Judge the network as if one attribute, type of ids, or link type were not seen."""

    def judged(what: str, seen: Adversary) -> Without:
        *_, last = risks(network, seen, links=[list(seen.links)])
        return Without(what, last.risk, last.group_sizes())

    for kind, table in adversary.attributes.items():
        for name in table:
            left = {n: rule for n, rule in table.items() if n != name}
            label = label_of(adversary.node_type, kind, name)
            yield judged(label, replace(adversary, attributes={**adversary.attributes, kind: left}))
    for kind in adversary.known_ids:
        others = tuple(k for k in adversary.known_ids if k != kind)
        yield judged(f"ids of {kind}", replace(adversary, known_ids=others))
    for name in adversary.links:
        rest = (n for n in adversary.links if n != name)
        yield judged(f"{name} links", adversary.with_links(rest))
    if len(adversary.links) > 1:
        yield judged(ALL_LINKS, adversary.with_links([]))


def _attacked(
    network: Network,
    known: Network,
    adversary: Adversary,
    truth: np.ndarray,
    errors: LinkErrors,
) -> list[Attacked] | None:
    prepared = Auxiliary(known, adversary)
    alike = farthest(network, adversary)
    try:
        result = attack(prepared, network, errors=errors, alike=alike, max_pairs=MAX_PAIRS)
    except TooManyPairs:
        return None
    found = scores(result, prepared.size, truth)
    return [Attacked(score, *wilson_interval(score.precision, score.targets)) for score in found]


class Reason(NamedTuple):
    """Why one user is at high risk."""

    user: int
    alike: int
    by_profile: int
    told_by: str


def reasons(found: RiskFindings, count: int) -> list[Reason]:
    """Return the users who are worst off, and what tells them from the others.

    Worst off are those at the highest risk, and among these whom leaving out one field would help
    least.
    """
    sizes, profile = found.last.group_sizes(), found.full[0].group_sizes()
    if not found.without:
        return [
            Reason(v, int(sizes[v]), int(profile[v]), "") for v in found.last.worst(count).tolist()
        ]
    single = [one for one in found.without if one.field != ALL_LINKS]
    table = np.stack([one.sizes for one in single])
    best, helped = table.argmax(axis=0), table.max(axis=0)
    unlinked = {one.field: one.sizes for one in found.without}.get(ALL_LINKS, sizes)
    order = np.lexsort((profile, helped, sizes))[:count]
    out = []
    for v in order.tolist():
        told = "several fields: leaving out one changes nothing"
        if sizes[v] == found.users:
            told = "nothing: all look the same"
        elif helped[v] > sizes[v]:
            told = f"{single[best[v]].field} (without: {helped[v]:,} alike)"
        elif unlinked[v] > sizes[v]:
            told = f"links of several kinds (without any: {unlinked[v]:,} alike)"
        out.append(Reason(v, int(sizes[v]), int(profile[v]), told))
    return out


def told_apart_by(found: RiskFindings) -> list[tuple[str, int]]:
    """Return, field by field, how many of those alone would not be alone without it."""
    alone = found.last.group_sizes() == 1
    return [(one.field, int((one.sizes[alone] > 1).sum())) for one in found.without]
