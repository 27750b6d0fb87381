"""One word per idea in public signatures, and every public name on an API page."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from sklearn.base import BaseEstimator
from tests.sources import sources

import telic

PAGES = (Path(__file__).parents[1] / "docs" / "reference" / "python").glob("*.rst")
API = "\n\n".join(page.read_text(encoding="utf-8") for page in sorted(PAGES))
MOST_PARAMETERS = 12
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
    "sweeps": "max_passes",
    "rng": "seed",
    "verbose": "progress",
    "on_step": "progress",
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


def test_progress_is_told_one_text_at_a_step():
    shape = "Callable[[str], None]"
    wrong = []
    for path, _, _, nodes in sources():
        for found in nodes:
            if isinstance(found, ast.arg) and found.arg == "progress" and found.annotation:
                given = ast.unparse(found.annotation).removesuffix(" | None")
            elif isinstance(found, ast.Assign) and ast.unparse(found.targets[0]) == "Progress":
                given = ast.unparse(found.value)
            else:
                continue
            if given not in (shape, "Progress"):
                wrong.append(f"{path.name}:{found.lineno}: {given}")
    assert not wrong


def test_a_class_name_means_one_thing():
    """Studies may call a thing what its chapter does."""
    twice = {"Problem"}  # what optim solves, and HTTP's word (RFC 9457) for an error's body
    places = {}
    for path, _, _, nodes in sources():
        if "study" not in path.parts:
            for found in nodes:
                if isinstance(found, ast.ClassDef):
                    places.setdefault(found.name, []).append(path.name)
    several = {name: where for name, where in places.items() if len(where) > 1}
    assert set(several) == twice, several


def test_numbered_equations_name_their_source():
    """`[Zhang2017]` stands at a file's first (2.3.6), and nothing is cited as "the text"."""
    wrong = []
    for path, text, *_ in sources():
        if INSIDE & set(path.parts):
            continue
        first = re.search(r"\([2-7]\.\d+\.\d+", text)
        if first and "[Zhang2017]" not in text[: first.start()]:
            wrong.append(path.name)
        wrong += re.findall(r"(?i)the (?:text|book|source) (?:prints|takes|uses)", text)
    assert not wrong


def test_every_public_name_is_on_an_api_page():
    missing = []
    for package in public_packages():
        _, listed, options = API.partition(f".. automodule:: {package.__name__}\n")
        options = options.partition("\n\n")[0]
        left_out = {name.strip() for name in options.partition("exclude-members:")[2].split(",")}
        if not listed or ":imported-members:" not in options or left_out & set(package.__all__):
            missing.append(package.__name__)
        # Sphinx shows what has a docstring.
        missing += [
            f"{package.__name__}.{name}"
            for name in package.__all__
            if callable(getattr(package, name)) and not inspect.getdoc(getattr(package, name))
        ]
    assert not missing


def test_only_public_functions_with_keywords_take_many_parameters():
    wrong = []
    for path, _, _, nodes in sources():
        if "cli" in path.parts:  # a command's options, each with its help
            continue
        for found in nodes:
            if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
                places = [*found.args.posonlyargs, *found.args.args]
                places = [one for one in places if one.arg not in ("self", "cls")]
                many = len(places) + len(found.args.kwonlyargs) > MOST_PARAMETERS
                described = found.name == "__init__" or (  # which the class describes
                    not found.name.startswith("_") and ast.get_docstring(found)
                )
                if many and not (described and len(places) <= 2):
                    wrong.append(f"{path.name}: {found.name}")
    assert not wrong
