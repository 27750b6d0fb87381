"""Releases that were judged, kept in a file, so that a search goes on where the last one ended."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from telic.data import atomic_path
from telic.errors import InputError
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.advice.coarsening_levels import Lever
from telic.privacy.merged_types import in_a_row
from telic.privacy.risk.risks import Measures

Judged = dict[tuple[int, ...], tuple[Measures, bool]]
"""By choice of levels: what was found, and whether at the farthest distance."""


def fingerprint(network: Network, adversary: Adversary, fields: Sequence[Lever]) -> str:
    """Hash what the judgement of a release depends on: nodes, links, levels, and what is seen."""
    digest = hashlib.blake2b(digest_size=16)
    seen = [adversary.dump(), [[x.name, *(level.label for level in x.levels)] for x in fields]]
    sizes = {kind: network.size(kind) for kind in in_a_row(adversary)}
    digest.update(json.dumps([*seen, sizes]).encode())
    for name in adversary.links:
        links = network.links[name]
        digest.update(links.indptr.tobytes() + links.indices.tobytes())
    for lever in fields:
        for level in lever.levels:
            if level.shown is not None:
                digest.update(level.shown.tobytes())
    return digest.hexdigest()


@contextmanager
def keep_judged(
    path: str | Path | None,
    judged: Judged,
    network: Network,
    adversary: Adversary,
    fields: Sequence[Lever],
) -> Iterator[None]:
    """Begin with what a file says was judged, and keep what is judged, also of a search cut short.

    Without a path nothing is read or kept.
    """
    if path is None:
        yield
        return
    judged.update(read_judged(path, network, adversary, fields))
    try:
        yield
    finally:
        write_judged(path, judged, network, adversary, fields)


def read_judged(
    path: str | Path, network: Network, adversary: Adversary, fields: Sequence[Lever]
) -> Judged:
    """Read what was judged before; nothing if the file is not there yet.

    Raises
    ------
    InputError
        If the file is no such file, or is of another network or adversary.
    """
    path = Path(path)
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        kept = {
            tuple(choice): (Measures(*found), final) for choice, found, final in content["judged"]
        }
        whose = content["of"]
    except (OSError, ValueError, TypeError, KeyError):
        raise InputError(
            f"{path}: does not hold judged releases, as an earlier search left them. Name a new "
            "file."
        ) from None
    if whose != fingerprint(network, adversary, fields):
        raise InputError(f"{path}: is about another network, or another intruder. Name a new file.")
    return kept


def write_judged(
    path: str | Path,
    judged: Mapping[tuple[int, ...], tuple[Measures, bool]],
    network: Network,
    adversary: Adversary,
    fields: Sequence[Lever],
) -> None:
    """Keep what was judged, whole or not at all."""
    content = {
        "of": fingerprint(network, adversary, fields),
        "judged": [[list(choice), list(found), final] for choice, (found, final) in judged.items()],
    }
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")
