"""The prefixes a person types on the way to a query: edits, typos, backspaces."""

import numpy as np

from telic.simulate.intents import Intents, query_text
from telic.simulate.typist_parameters import TypistParameters

LONGEST_PHRASE = 200
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def keystroke_plan(target: str, previous: str, typo: int, late: int, wrong: str) -> list[str]:
    """List the prefixes on screen after each keystroke on the way to `target`.

    Parameters
    ----------
    target : str
        The text to be typed, not empty.
    previous : str
        What is in the box: it is deleted by backspaces as far as `target` does not share it.
    typo : int
        The character, counted from 1, that goes wrong first; none if beyond the end.
    late : int
        How many more characters are typed before a typo is seen and deleted.
    wrong : str
        The letter typed instead.

    Examples
    --------
    >>> keystroke_plan("tea", "toy", 9, 0, "x")
    ['to', 't', 'te', 'tea']
    >>> keystroke_plan("tea", "", 2, 0, "x")
    ['t', 'tx', 't', 'te', 'tea']
    """
    if previous == target or len(previous) < 2:
        previous = ""  # nothing to delete, or the first keystroke would leave an empty box
    keep = 0
    while keep < min(len(previous), len(target)) and previous[keep] == target[keep]:
        keep += 1
    plan = [previous[:k] for k in range(len(previous) - 1, keep - 1, -1)]
    if keep < typo <= len(target) and target[typo - 1] != wrong:
        right, after = target[: typo - 1], target[typo : typo + late]
        plan += [target[:k] for k in range(keep + 1, typo)]
        plan += [right + wrong + after[:k] for k in range(len(after) + 1)]
        plan += [right + wrong + after[:k] for k in range(len(after) - 1, -1, -1)]
        # Deleting the wrong letter at the very start would leave an empty box: legal, and kept.
        plan += [right]
        keep = typo - 1
    return plan + [target[:k] for k in range(keep + 1, len(target) + 1)]


def draw_plans(
    intents: Intents,
    folded: list[str],
    *,
    parameters: TypistParameters,
    rng: np.random.Generator,
) -> list[list[str]]:
    """Give every composition the prefixes it runs through if no suggestion is chosen.

    Parameters
    ----------
    intents : Intents
        What is wanted, and where the previous query is edited.
    folded : list of str
        The folded phrases.
    parameters : TypistParameters
        Typos and, where users submit blindly, the length at which they do.
    rng : numpy.random.Generator
        Source of randomness.
    """
    p, n = parameters, intents.wanted.size
    lengths = np.full(n, 2 * LONGEST_PHRASE)  # in full
    if p.blind_length is not None:
        lengths = 1 + rng.poisson(rng.gamma(4.0, (p.blind_length - 1) / 4.0, size=n))
    clean = rng.geometric(max(p.typo_rate, 1e-9), size=n)  # the first character that goes wrong
    late = rng.integers(0, 3, size=n)
    wrong = rng.integers(len(LETTERS), size=n)
    plans: list[list[str]] = []
    previous = ""
    edits = intents.edits.ravel()
    for i, wanted in enumerate(intents.wanted.ravel().tolist()):
        text = query_text(wanted, folded)
        in_box = previous if edits[i] else ""
        plans.append(
            keystroke_plan(text[: lengths[i]], in_box, clean[i], late[i], LETTERS[wrong[i]])
        )
        previous = text
    return plans
