"""Options that take LDA and PathSelClus as the dissertation has them."""

from dataclasses import replace

import numpy as np
import pytest

from telic.errors import InputError
from telic.simulate.hospital_families import simulate_family
from telic.specialty.discovery.by_seeds import REPRESENTATIVE, group_by_seeds, representatives
from telic.specialty.discovery.by_topics import group_by_topics
from telic.specialty.discovery.discover import discover

QUIET = {"restarts": 1, "seed": 0, "threads": 1, "progress": lambda step: None}


@pytest.fixture(scope="module")
def log():
    return simulate_family("problem lists", 0).log


def test_argmax_leaves_nobody_out_who_opened_a_record(log):
    def clusters(assign):
        options = {"n_topics": 6, "document": "patient", **QUIET}
        return group_by_topics(log, assign=assign, **options).cluster

    everybody, some = clusters("argmax"), clusters("concentrated")
    opened = np.bincount(log.access_user, minlength=len(log.users)) > 0
    np.testing.assert_array_equal(everybody >= 0, opened)
    assert (some < 0).any()
    assert (everybody[some >= 0] == some[some >= 0]).all()


def test_all_seeds_are_all_of_a_codes_users(log):
    codes = sorted(code for code, size in log.class_sizes().items() if size >= 10)
    counts = log.user_diagnosis()
    for share in (REPRESENTATIVE, 1.0):
        seeds = representatives(log.taxonomy, counts, codes, share=share)
        for k, code in enumerate(codes):
            users = log.taxonomy == code
            assert (seeds[users] >= 0).sum() == np.ceil(share * users.sum())
            assert (seeds[~users] != k).all()
    options = {"paths": ("U-P-D",), "view": "general", "free": 1, **QUIET}
    cluster = group_by_seeds(log, seeds="all", assign="argmax", **options).cluster
    assert (cluster >= 0).all()
    for k, code in enumerate(codes):  # a seed stays where it is
        assert (cluster[log.taxonomy == code] == k).mean() > 0.9


def test_where_an_option_means_nothing_it_is_refused(log):
    for options, message in (
        ({"seeds": "all"}, "of method 'pathselclus' alone; method 'residuals' has none"),
        ({"method": "lda", "free": 4}, "paths, free and seeds are of method 'pathselclus' alone"),
        ({"paths": ["U-P"]}, "paths, free and seeds are of method 'pathselclus' alone"),
        ({"method": "pathselclus", "paths": ["U-P", "U-P"]}, "expected each once"),
        ({"method": "pathselclus", "seeds": "some"}, "seeds is 'some', expected"),
        ({"assign": "argmax"}, "assign is 'argmax'"),
        ({"method": "lda", "assign": "best"}, "assign is 'best'"),
    ):
        with pytest.raises(InputError, match=message):
            discover(replace(log), **options)
