"""Units, residuals and shares of practices by plain loops."""

import numpy as np


def units(log):
    """Return {(user, patient): set of codes}."""
    found, start, seen = {}, log.diagnosis.indptr, log.diagnosis.indices.tolist()
    for user, encounter in zip(log.access_user, log.access_encounter, strict=True):
        codes = found.setdefault((int(user), int(log.encounter_patient[encounter])), set())
        codes.update(seen[start[encounter] : start[encounter + 1]])
    return found


def counts(log, fewest_users):
    """Return users × codes and the codes that at least `fewest_users` users saw."""
    table = np.zeros((len(log.users), len(log.codes)))
    for (user, _), codes in units(log).items():
        for code in codes:
            table[user, code] += 1
    kept = [d for d in range(len(log.codes)) if (table[:, d] > 0).sum() >= fewest_users]
    return table[:, kept], kept


def pearson_residuals(table):
    """Return residuals entry by entry."""
    total, bound = table.sum(), np.sqrt(len(table))
    found = np.zeros_like(table)
    for u in range(table.shape[0]):
        for d in range(table.shape[1]):
            expected = table[u].sum() * table[:, d].sum() / total
            if expected > 0:
                value = (table[u, d] - expected) / np.sqrt(expected)
                found[u, d] = min(max(value, -bound), bound)
    return found


def shares(row, profile, steps):
    """Return one user's shares of the profiles, by EM diagnosis by diagnosis."""
    row, profile = row.tolist(), profile.tolist()  # numbers of numpy take three times as long
    share = [1 / len(profile)] * len(profile)
    for _ in range(steps):
        gained = [0.0] * len(profile)
        for d in np.flatnonzero(row):
            mixed = sum(s * p[d] for s, p in zip(share, profile, strict=True))
            for k in range(len(profile)):
                gained[k] += row[d] * share[k] * profile[k][d] / mixed
        share = [one / sum(gained) for one in gained]
    return share


def profiles(table, member, profile, share, shrink):
    """Return profiles of the members' own part of each practice, the mix last."""
    mix = table.sum(axis=0) / table.sum()
    rows = []
    for k in range(len(profile) - 1):
        own = shrink * mix
        for u in np.flatnonzero(member == k):
            for d in np.flatnonzero(table[u]):
                mixed = sum(share[u][j] * profile[j][d] for j in range(len(profile)))
                own[d] += table[u, d] * share[u][k] * profile[k][d] / mixed
        rows.append(own / own.sum())
    return np.array([*rows, mix])
