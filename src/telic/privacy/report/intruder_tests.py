"""The regulator's three tests of anonymity, and the motivated intruder who makes them, in words."""

from collections.abc import Sequence
from typing import NamedTuple

from telic.privacy.adversary import Adversary
from telic.privacy.attacks.attribute_inference import WAYS, Inference
from telic.privacy.risk.risks import Risk

MOTIVATED = (
    "The test is the motivated intruder: somebody without special skills or inside knowledge who "
    "has the internet, libraries and public registers, may ask around, and breaks into nothing. "
    "Here this person is granted more than that:"
)
"""Whom the UK Information Commissioner's test imagines, and what is assumed beyond it."""


def inferred_words(found: Sequence[Inference]) -> str:
    """Say which attributes can be guessed of people whose rows were not found.

    A gain counts if its interval lies above zero, and above the control's.
    """
    told = []
    for one in found:
        gains = {
            way: one.gains[way][0]
            for way in ("alike", "linked")
            if one.gains[way][1] > max(0.0, one.control[way][2])
        }
        if gains:
            way = max(gains, key=lambda name: gains[name])
            told.append(
                f"{one.attribute} (guessed from {WAYS[way]}: {one.baseline + gains[way]:.1%} "
                f"right, {one.baseline:.1%} by the commonest value)"
            )
    return f"Yes: {'; '.join(told)}." if told else NOT_INFERRED


NOT_INFERRED = (
    "Of no published attribute more than its commonest value tells, from rows that look the same "
    "or are linked."
)


class Test(NamedTuple):
    """One of the three tests of anonymity, and how the release does."""

    name: str
    question: str
    answer: str


def intruder_tests(
    adversary: Adversary, found: Risk, linked: float | None, inferred: str
) -> list[Test]:
    """Put the numbers in the words of the three tests: singling out, linkability, inference.

    The tests are those of the European data protection authorities' Opinion 05/2014. `found` is
    the risk at the farthest distance the adversary looks, `linked` the share of the people whom the
    attack finds in another source (None: it was not run), `inferred` what is known of inference.
    """
    users = len(found.hashes)
    who = adversary.node_type
    linkable = (
        f"The attack was not run; it can link at most the {found.unique:.1%} alone of their kind."
        if linked is None
        else f"{linked:.1%} of all {who} rows are linked to the right person by the attack."
    )
    return [
        Test(
            "Singling out",
            f"Can one {who} be told from all others?",
            f"{round(found.unique * users):,} of {users:,} can; the risk is at most "
            f"{found.highest:.1%}, and {found.tail:.1%} among the worst 1 %.",
        ),
        Test("Linkability", "Can a row be joined to the same person in another source?", linkable),
        Test(
            "Inference", "Can something be learnt about a person without finding the row?", inferred
        ),
    ]
