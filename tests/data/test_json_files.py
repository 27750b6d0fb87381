import pytest

from telic.data.json_files import read_json
from telic.errors import InputError


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n "b" 2}', r"w.json: line 2, column 6: is no JSON \(Expecting ':' delimiter\)"),
        (b"", "line 1, column 1: is no JSON .*"),
        (b"\xff", "w.json: is no JSON, as it is no text in UTF-8"),
        (b"[" * 100_000, "w.json: is nested too deeply"),
        (b"[]", "w.json: holds another kind of JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_what_was_expected(tmp_path, content, message):
    (tmp_path / "w.json").write_bytes(content)
    with pytest.raises(InputError, match=f"{message}, expected an object."):
        read_json(tmp_path / "w.json", dict, "an object")


def test_a_file_that_is_not_there_is_no_library_s_message(tmp_path):
    with pytest.raises(InputError, match=r"w\.json: no such file\. Check the path"):
        read_json(tmp_path / "w.json", dict, "an object")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\), expected"):
        read_json(tmp_path, dict, "an object")
