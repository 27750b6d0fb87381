"""What a risk means, in words: for a publisher, and for one person."""

from telic.privacy.risk.risks import Risk


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


def _of_hundred(risk: float) -> str:
    return f"{100 * risk:.0f}" if risk >= 0.02 else f"{100 * risk:.1g}"
