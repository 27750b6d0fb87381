from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from tests.held import hold, page

from telic.data.data_sets import LabelledSet
from telic.errors import InputError
from telic.study import top_of_list
from telic.study.steps import Steps


def made_up(name, data=None):
    """Rare positives of two kinds: one stands out, the other does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    classes = np.where(rng.random(1200) < 0.25, 2, 1)
    X[classes == 2, 0] += 2
    return LabelledSet(sparse.csr_matrix(X), np.where(classes == 2, 1.0, -1.0), classes)


def test_the_page_compares_every_method_with_logistic_regression(monkeypatch):
    monkeypatch.setattr(top_of_list, "labelled_set", made_up)
    monkeypatch.setattr(top_of_list, "CASES", {"two": ("made-up", None), "class 2": ("it", 2)})
    report = top_of_list.study(Steps(), rows=1200, resamples=20)
    said = [line for line in page(report) if line[0] in ("#", "##", "**", "", "*")]
    hold(Path(__file__).parent / "pages" / "top-of-list.jsonl", said)
    verdict, gains, values, sets = (table.records() for table in report.tables)
    assert len(values) == 2 * 5
    assert [row["sets"] for row in verdict] == [2] * 4
    assert len(gains) == 2 * 4
    assert [row["average precision"][0] for row in gains] == sorted(
        row["average precision"][0] for row in gains
    )
    by_method = {row["method"]: row for row in values[:5]}
    for row in gains[:4]:
        rival = by_method["logistic regression"]
        if row["set"] == "two":
            own = by_method[row["method"]]
            for name in top_of_list.COMPARED:
                assert row[name][0] == pytest.approx(own[name] - rival[name])
    assert all(row["average precision"] > 0.6 for row in values)  # by chance .25
    assert values[:5] == [row | {"set": "two"} for row in values[5:]]  # the same rows are positive
    assert [row["rows"] for row in sets] == [400, 400]


def test_the_verdict_counts_what_is_sure():
    spans = [[0.1, 0.05, 0.2], [-0.1, -0.2, -0.05], [0.1, -0.1, 0.2], [0.2, 0.1, 0.3]]
    gains = [dict.fromkeys([f"{name}, gain" for name in top_of_list.COMPARED], s) for s in spans]
    lines = [{"method": "ridge", **gain} for gain in gains]
    (row,) = top_of_list.verdict_table([{"method": "logistic regression"}, *lines]).records()
    assert list(row.values()) == ["ridge", 4, 2, 1, 2, 1]


def test_a_missing_set_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(top_of_list, "measured", lambda *_, **__: pytest.fail("the work began"))
    with pytest.raises(InputError, match=r"mammography\.npz not found"):
        top_of_list.study(Steps(), data=tmp_path)


def test_a_third_without_a_positive_is_refused_before_any_fit(monkeypatch):
    monkeypatch.setattr(top_of_list, "labelled_set", made_up)
    monkeypatch.setattr(top_of_list, "CASES", {"rare": ("made-up", 3)})  # a class that none is of
    with pytest.raises(InputError, match=r"rare: a third of 300 rows holds no positive\. Raise"):
        top_of_list.measured(case="rare", data=None, rows=300, resamples=20, seed=0)
