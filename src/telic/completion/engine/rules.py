"""What an editor says of suggestions: what is never shown, and what means the same."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unicodedata import normalize

from telic.completion.engine.folding import fold, seen
from telic.completion.engine.words import words_of
from telic.data.pieces import open_pieces, text_lines
from telic.errors import InputError

VARIANTS = 8
"""Most ways to say what was typed that are looked for."""


@dataclass(frozen=True)
class DenyList:
    """Phrases that are never suggested.

    Parameters
    ----------
    rules : tuple of str
        ``tea`` denies that phrase alone and ``*tea*`` every phrase that contains it, both of folded
        text. ``/t.a/`` denies every phrase in which the regular expression is found, as it is
        written or folded, whatever the case.

    Raises
    ------
    InputError
        If a rule is empty, a star alone or on one side, or no regular expression; if `rules` is a
        str.

    Examples
    --------
    >>> deny = DenyList(("Tea", "*bad*", "/^x+$/"))
    >>> [deny.denies(text) for text in ("TEA", "teapot", "not BÁD", "xxx")]
    [True, False, True, True]
    """

    rules: tuple[str, ...]

    def __post_init__(self) -> None:
        _refuse_text(self.rules, "deny rules")
        exact, inside = set(), []
        patterns: list[re.Pattern[str]] = []
        for given in self.rules:
            rule = given.replace("\0", " ").strip()  # as phrases are tidied
            if "\r" in rule or "\n" in rule:
                raise InputError(
                    f"deny rule {given[:40]!r}: has several lines. Make a rule of each."
                )
            starred = len(rule) > 2 and rule.startswith("*") and rule.endswith("*")
            if len(rule) > 2 and rule.startswith("/") and rule.endswith("/"):
                patterns += map(
                    _compiled, dict.fromkeys((rule[1:-1], normalize("NFC", rule[1:-1])))
                )
            elif not fold(rule[1:-1] if starred else rule) or rule == "*":
                raise InputError(f"deny rule {given!r}: expected a phrase, *part* or /pattern/.")
            elif not starred and rule.startswith("*") != rule.endswith("*"):
                raise InputError(
                    f"deny rule {given!r}: has a star on one side. Write *part*, or a /pattern/ "
                    r"such as /^tea/ or /\*$/."
                )
            elif starred:
                begins = " " * rule[1].isspace()  # folding drops it, and keeps one at the end
                inside.append(re.escape(begins + seen(fold(rule[1:-1]))))
            else:
                exact.add(fold(rule).strip())
        object.__setattr__(self, "_exact", exact)
        object.__setattr__(self, "_inside", re.compile("|".join(inside)) if inside else None)
        # All at once, but for those with groups, which would be numbered by the ones before, and
        # those with flags.
        plain = [p.pattern for p in patterns if not p.groups and "(?" not in p.pattern]
        others = [p for p in patterns if p.groups or "(?" in p.pattern]
        joint = [_compiled("|".join(f"(?:{pattern})" for pattern in plain))] if plain else []
        object.__setattr__(self, "_patterns", joint + others)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a text file of rules, one a line."""
        return _read(path, cls, str)

    def denies(self, text: str) -> bool:
        """Say whether a phrase is never to be suggested."""
        folded = fold(text).strip()
        # An accent may be a character of its own in the phrase and not in the pattern, or the other
        # way round; half a syllable is no part of a phrase, though it begins one.
        syllables = seen(folded)
        forms = {syllables, text, seen(text)}
        inside: re.Pattern[str] | None = self._inside  # type: ignore[attr-defined]
        patterns: list[re.Pattern[str]] = self._patterns  # type: ignore[attr-defined]
        return (
            folded in self._exact  # type: ignore[attr-defined]
            or (inside is not None and inside.search(syllables) is not None)
            or any(pattern.search(form) for pattern in patterns for form in forms)
        )


@dataclass(frozen=True)
class Synonyms:
    """Words, or sequences of them, that mean the same.

    Parameters
    ----------
    groups : tuple of tuple of str
        Each at least two.

    Examples
    --------
    >>> Synonyms((("tv", "television"), ("nyc", "new york"))).variants("NYC tv st")
    ['new york tv st', 'nyc television st']
    """

    groups: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        others: dict[tuple[str, ...], list[str]] = {}
        for group in self.groups:
            _refuse_text(group, "a group of synonyms")
            forms = [tuple(words_of(fold(text))) for text in group]
            if len(forms) < 2 or not all(forms):
                raise InputError(
                    f"synonyms {', '.join(group)!r}: expected at least two, each with a word."
                )
            for form in forms:
                others.setdefault(form, []).extend(" ".join(o) for o in forms if o != form)
        object.__setattr__(self, "_others", others)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a text file: a group a line, separated by commas."""
        return _read(path, cls, lambda line: tuple(part.strip() for part in line.split(",")))

    def variants(self, typed: str) -> list[str]:
        """Return what was typed with one of its parts said in another way, at most `VARIANTS`."""
        folded = fold(typed)
        tokens = words_of(folded)
        end = " " if folded.endswith(" ") else ""
        others: dict[tuple[str, ...], list[str]] = self._others  # type: ignore[attr-defined]
        found: list[str] = []
        for i in range(len(tokens)):
            for j in range(i + 1, len(tokens) + 1):
                for other in others.get(tuple(tokens[i:j]), ()):
                    found.append(" ".join([*tokens[:i], other, *tokens[j:]]) + end)
        return list(dict.fromkeys(found))[:VARIANTS]  # several groups may say the same


def _refuse_text(texts: Any, name: str) -> None:
    """Raise InputError for one text in place of several, which its letters would be taken for.

    So too for what is no sequence of texts.
    """
    if isinstance(texts, str):
        raise InputError(f"{name}: {texts[:40]!r} is one str, expected a sequence of them.")
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name}: {texts!r}, expected a sequence of str.")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"deny rule /{pattern}/: no regular expression ({error}).") from None


def kept(texts: Iterable[str], deny: DenyList | None) -> list[str]:
    """Return the texts that are not denied."""
    return [text for text in texts if deny is None or not deny.denies(text)]


def _read(
    path: str | Path, kind: Callable[[tuple[Any, ...]], Any], rule: Callable[..., Any]
) -> Any:
    """Make a `kind` of the rules of a text file, one a line; an error names the line."""
    pieces = open_pieces(path)
    if pieces.columns:
        raise InputError(f"{path}: expected a text file (.txt), one rule a line.")
    lines = [line for piece in pieces.read(["line"]) for line in piece["line"].to_pylist()]
    try:
        return kind(tuple(map(rule, lines)))
    except InputError:
        for number, line in text_lines(Path(path), returns=True):
            try:
                kind((rule(line),) if line.strip() else ())
            except InputError as error:
                raise InputError(f"{path}: line {number}: {error}") from None
        raise
