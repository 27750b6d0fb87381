"""What a risk means, in words: for a publisher, for one person, and in a regulator's terms."""

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


def hidden_among(risk: float) -> str:
    """Say among how many people a risk hides somebody.

    Examples
    --------
    >>> hidden_among(0.12), hidden_among(0.6), hidden_among(1.0)
    ('hidden among about 8', 'hidden among about 1.7', 'not hidden at all')
    """
    if risk >= 1:
        return "not hidden at all"
    return f"hidden among about {1 / risk:,.{0 if risk <= 1 / 3 else 1}f}"


def meaning(found: Risk) -> str:
    """Say what a network's risk means, the mean first, then what the mean hides.

    Examples
    --------
    >>> import numpy as np
    >>> print(meaning(Risk(("follow",), 1, 0.12, 12, 0.02, 1.0, 1.0, np.arange(100))))
    A mean risk of 12.0% means: of 100 people whom the intruder looks for, guessing among those \
who look alike picks about 12 rightly, as if everybody were hidden among about 8. It is not the \
same for all: 2 of 100 people are alone of their kind and are found for certain.
    """
    users = len(found.hashes)
    alone = round(found.unique * users)
    if alone == users:
        return (
            f"A mean risk of {found.risk:.1%} means: everybody is alone of their kind, so whoever "
            "the intruder looks for is found for certain."
        )
    mean = (
        f"A mean risk of {found.risk:.1%} means: of 100 people whom the intruder looks for, "
        f"guessing among those who look alike picks about {_of_hundred(found.risk)} rightly, as if "
        f"everybody were {hidden_among(found.risk)}."
    )
    if alone:
        return (
            f"{mean} It is not the same for all: {alone:,} of {users:,} people "
            f"{'is' if alone == 1 else 'are'} alone of their kind and "
            f"{'is' if alone == 1 else 'are'} found for certain."
        )
    return (
        f"{mean} Nobody is alone of their kind: even the worst-off person is among "
        f"{round(1 / found.highest)} who look the same."
    )


def for_one_person(alike: int) -> str:
    """Say in one sentence what it means for a person that so many look alike.

    Examples
    --------
    >>> for_one_person(3)
    '3 rows fit this person: whoever guesses is right 1 time in 3.'
    """
    if alike == 1:
        return "Only one row fits this person: whoever knows the listed things has found it."
    return f"{alike:,} rows fit this person: whoever guesses is right 1 time in {alike:,}."


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

    The tests are those of the European data protection authorities' Opinion 05/2014.

    Parameters
    ----------
    adversary : Adversary
    found : Risk
        At the farthest distance the adversary looks.
    linked : float or None
        Share of the people whom the attack finds in another source; None: it was not run.
    inferred : str
        What is known of inference.
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


def _of_hundred(risk: float) -> str:
    return f"{100 * risk:.0f}" if risk >= 0.02 else f"{100 * risk:.1g}"
