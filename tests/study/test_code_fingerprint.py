"""A fingerprint follows code and settings, and nothing else."""

import importlib
import subprocess
import sys

import pytest

from telic.study import code_fingerprint as room
from telic.study.code_fingerprint import fingerprint


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of three modules: first imports second; third stands apart."""
    folder = tmp_path / "sample_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "second.py").write_text("RATE = 1\n")
    (folder / "third.py").write_text("OTHER = 1\n")
    (folder / "first.py").write_text(
        '"""Doc."""\nfrom sample_package import second\n\n\n'
        'class Model:\n    """Doc."""\n\n    def fit(self):\n        return second.RATE\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith("sample_package")]:
        del sys.modules[name]


def of(folder, **options):
    room._modules.cache_clear()  # a run does not change its own code
    room._parsed.cache_clear()
    importlib.invalidate_caches()
    return fingerprint(importlib.import_module("sample_package.first").Model, **options)


def rewrite(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_code_that_is_led_to_counts_and_prose_does_not(package):
    first = of(package)
    rewrite(package / "first.py", '    """Doc."""', '    """Other words."""\n    # and a comment')
    rewrite(package / "third.py", "1", "2")
    assert of(package) == first
    rewrite(package / "second.py", "RATE = 1", "RATE = 2")
    second = of(package)
    assert second != first
    rewrite(package / "first.py", "return second.RATE", "return -second.RATE")
    assert of(package) not in (first, second)


def test_modules_that_import_each_other_are_read_once(package):
    (package / "second.py").write_text("from sample_package import first\nRATE = 1\n")
    assert of(package) == of(package)


def test_settings_and_functions_count(package):
    assert of(package, settings={"a": 1, "b": 2}) == of(package, settings={"b": 2, "a": 1})
    assert of(package, settings={"a": 1}) != of(package, settings={"a": 2})

    def one():
        return 1

    def two():
        return 2

    assert fingerprint(one) != fingerprint(two)


def test_a_script_that_runs_counts_with_what_it_imports(package):
    script = package.parent / "script.py"
    script.write_text(
        "from telic.study.code_fingerprint import fingerprint\n"
        "from sample_package import second\n"
        "class Model:\n    RATE = second.RATE\n"
        "print(fingerprint(Model, package='sample_package'))\n"
    )

    def printed():
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        return done.stdout

    first = printed()
    assert printed() == first
    rewrite(package / "second.py", "RATE = 1", "RATE = 2")
    second = printed()
    rewrite(script, "    RATE = second.RATE", "    RATE = -second.RATE")
    assert len({first, second, printed()}) == 3
