import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent.parent / "scripts").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_script_imports_is_there(path):
    assert "main" in runpy.run_path(str(path), run_name="imported")


@pytest.mark.parametrize("home", ["/proc/none", ""], ids=["no home", "a home"])
def test_packages_are_installed_whatever_the_home_folder_is(home, tmp_path, monkeypatch):
    for name in ("XDG_CACHE_HOME", "UV_CACHE_DIR", "UV_NO_CACHE"):
        monkeypatch.setenv(name, "")  # so that it is restored, whatever it is set to below
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", home or str(tmp_path))
    uv = Path(sys.executable).parent / "uv"
    if not uv.exists() or not Path("/proc/self").is_dir():
        pytest.skip("needs uv in the environment, and Linux's /proc, where nobody can write")
    set_up = runpy.run_path(str(SCRIPTS[0].with_name("setup_env.py")), run_name="imported")
    set_up["leave_out_unwritable_cache"](str(uv))
    assert ("UV_NO_CACHE" in os.environ) == bool(home)
    # uv opens its cache before it looks at anything else.
    subprocess.run([uv, "pip", "list", "--python", sys.executable], check=True, capture_output=True)


def test_set_up_removes_nothing_but_an_environment(tmp_path):
    (tmp_path / "thesis.tex").touch()
    script = SCRIPTS[0].with_name("setup_env.py")
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no virtual environment" in done.stderr
    assert (tmp_path / "thesis.tex").exists()
