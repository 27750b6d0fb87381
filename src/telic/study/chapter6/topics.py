"""Tables 6.3 to 6.6: the clusters that were found, by their diagnoses."""

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from telic.specialty.discovery.gibbs_lda import GibbsLDA
from telic.specialty.discovery.result import discovery_from, lifts
from telic.study.chapter6.hospital import hospital


def urologists_topic(
    *, scale: float, seed: int, n_topics: int, threads: int = 1
) -> dict[str, list[str]]:
    """Table 6.3: the topic nearest to the urologists, with either kind of document."""
    log, _ = hospital(scale, seed)
    found = {}
    urologists = log.taxonomy == "Urology"
    for name, documents in (
        ("user documents", log.user_diagnosis().sign()),
        ("patient documents", log.patient_diagnosis()),
    ):
        model = GibbsLDA(n_topics=n_topics, random_state=seed, n_jobs=threads).fit(documents)
        topics = model.transform(documents)
        share = topics if name == "user documents" else log.user_patient() @ topics
        share = normalize(share, norm="l1")
        excess = share[urologists].mean(axis=0) - share.mean(axis=0)
        top = np.argsort(-model.components_[int(excess.argmax())])[:10]
        found[name] = [log.label(str(log.codes[d])) for d in top]
    return found


def unlisted(*, scale: float, seed: int, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Tables 6.4 to 6.6: the clusters without a listed code, with their diagnoses by lift."""
    log, _ = hospital(scale, seed)
    counts = log.user_diagnosis()
    overall = np.asarray(counts.sum(axis=0)).ravel()
    rows = []
    for one in discovery_from(found, log).specialties:
        if one.listed_code is None:
            own = np.asarray(counts[one.users].sum(axis=0)).ravel()
            patients = log.diagnosed_patients(one.users)
            top = [log.label(str(log.codes[d])) for d, _ in lifts(own, overall, patients)[:10]]
            rows.append(
                {
                    "users": len(one.users),
                    "top": top,
                    "stability": one.stability,
                    "stability_sizes": one.stability_sizes,
                    "stability_months": one.stability_months,
                }
            )
    return rows


def class_sizes(*, scale: float, seed: int) -> list[int]:
    """Figure 6.1: users per taxonomy code, the 100 most frequent codes."""
    log, _ = hospital(scale, seed)
    return list(log.class_sizes().values())[:100]
