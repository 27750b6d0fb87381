import pytest
from typer.testing import CliRunner

from telic.cli import app


@pytest.mark.parametrize("chapter", range(2, 8))
def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path, chapter):
    out = tmp_path / "no folder" / "report.html"
    result = CliRunner().invoke(app, ["study", f"chapter-{chapter}", "--out", str(out)])
    assert "its folder" in str(result.exception)
