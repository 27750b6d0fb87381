"""One word per idea in public signatures, and every public name on an API page."""

import importlib
import inspect
import pkgutil
from pathlib import Path

from sklearn.base import BaseEstimator

import telic

API = (Path(__file__).parents[1] / "docs" / "api.rst").read_text(encoding="utf-8")
INSIDE = {"cli", "study"}  # commands, and what they alone show
WORDS = {  # scikit-learn's word, which its estimators keep: the word of everything else
    "random_state": "seed",
    "n_jobs": "threads",
    "max_iter": "max_passes",
    "solver": "method",
}
OTHER_WORDS = {  # for ideas that have a word already
    "random_seed": "seed",
    "num_threads": "threads",
    "n_threads": "threads",
    "iterations": "max_passes",
    "n_iter": "max_passes",
    "epochs": "max_passes",
    "batch": "batch_size",
    "learning_rate": "step_size",
    "eta": "step_size",
    "tolerance": "tol",
    "verbose": "progress",
}


def public_packages():
    """Every package whose names are public."""
    for found in pkgutil.walk_packages(telic.__path__, "telic."):
        if found.name.split(".")[1] not in INSIDE and found.ispkg:
            package = importlib.import_module(found.name)
            if getattr(package, "__all__", None):
                yield package


def public_callables():
    """(name, function or class, whether scikit-learn's conventions hold) of what is exported."""
    for package in public_packages():
        for name in package.__all__:
            found = getattr(package, name)
            if not callable(found):
                continue
            estimator = inspect.isclass(found) and issubclass(found, BaseEstimator)
            yield f"{package.__name__}.{name}", found, estimator
            if inspect.isclass(found):
                for method, function in vars(found).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{package.__name__}.{name}.{method}", function, estimator


def parameters(function):
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # an exception's class, a protocol
        return set()


def test_one_word_per_idea():
    wrong = []
    for name, function, estimator in public_callables():
        given = parameters(function)
        if not estimator:
            wrong += [f"{name}: {word}, not {WORDS[word]}" for word in given & set(WORDS)]
        else:
            theirs = {ours: word for word, ours in WORDS.items()}
            wrong += [f"{name}: {word}, not {theirs[word]}" for word in given & set(theirs)]
        wrong += [f"{name}: {word}, not {OTHER_WORDS[word]}" for word in given & set(OTHER_WORDS)]
    assert not wrong, "\n".join(sorted(wrong))


def test_every_public_name_is_on_an_api_page():
    packages = {package.__name__ for package in public_packages()}
    missing = [name for name in sorted(packages) if f".. automodule:: {name}\n" not in API]
    assert not missing
