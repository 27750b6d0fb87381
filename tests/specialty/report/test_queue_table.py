"""The columns of a queue are those that its alarms differ in, or need."""

import pytest

from telic.specialty.report.tables import queue_table


def alarm(status):
    return {
        "row": 7,
        "user": "u1",
        "declared": None,
        "practised": "Urology",
        "diagnoses": ["Gout", "Fall"],
        "status": status,
        "because": "Gout",
        "lift": 0.25,
    }


@pytest.mark.parametrize(
    ("statuses", "columns"),
    [
        (["open", "open"], ["lift"]),
        (["explained"], ["because"]),
        (["open", "explained"], ["status", "because", "lift"]),
        ([], []),
    ],
)
def test_a_queue_says_what_its_alarms_need(statuses, columns):
    table = queue_table("Queue", map(alarm, statuses))
    assert list(table.columns) == ["row", "user", "declared", "practised", "diagnoses", *columns]
    for row, status in zip(table.rows, statuses, strict=True):
        assert row[:5] == [7, "u1", "none", "Urology", "Gout; Fall"]
        assert row[5:] == [alarm(status)[name] for name in columns]
