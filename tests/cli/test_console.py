"""What commands print for people: tables and facts."""

import io
import json

import pytest
from rich.console import Console

from telic.cli.console import print_card, print_facts, print_json, show
from telic.report.table import Table


def test_a_table_has_its_title_texts_to_the_left_numbers_to_the_right_and_its_note(capsys):
    table = Table("Boxes [all]", {"box": "", "size": ".1f"}, [["tea", 2.0], ["a", 123.0]])
    show(Table(table.title, table.columns, table.rows, note="Of [today]."))
    title, *grid, note = capsys.readouterr().out.splitlines()
    assert title.strip() == "Boxes [all]"
    assert note == "Of [today]."
    assert [line for line in grid if "│" in line] == ["│ tea │   2.0 │", "│ a   │ 123.0 │"]
    assert [cell.strip() for cell in grid[1].split("┃")[1:-1]] == ["box", "size"]
    show(table)
    assert "today" not in capsys.readouterr().out
    show(Table("Boxes", table.columns, []))
    assert "│ none │" in capsys.readouterr().out


def test_json_has_no_numbers_that_json_has_not(capsys):
    print_json({"auc": float("nan"), "rows": [(1, float("inf"))], "name": "NaN"})
    said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert said == {"auc": None, "rows": [[1, None]], "name": "NaN"}


def test_brackets_and_colons_of_a_cell_are_text(capsys):
    said = ["Tumour [benign]", "[/i] of :key: 2"]
    show(Table("Diagnoses", {"of [red]": "", "more": ""}, [said]))
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("of [red]", *said))


def test_colons_around_a_word_are_text(capsys):
    show(Table("Of :a:", {"x": ""}, [["y"]], note="Of [2001:db8:a::1]."))
    print_card({"code :b:": "C:100:2"}, as_json=False)
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("Of :a:", "[2001:db8:a::1]", "code :b:: C:100:2"))


def test_a_narrow_table_cuts_no_name(capsys):
    names = ["follow-" * 20 + end for end in ("mention", "retweet")]
    show(Table("Kinds", {"kind": "", "risk": ".1%"}, [[name, 0.5] for name in names]))
    lines = capsys.readouterr().out.splitlines()
    kinds = "".join(line.split("│")[1].strip() for line in lines if line.startswith("│"))
    assert kinds == "".join(names)


FACTS = {
    "name": "tea [box]",
    "sizes": [1.5, 2.5],
    "files": ["a.csv", "b.csv"],
    "ranges": [{"characters": "1", "reranks": False}],
    "card": {"for": "people", "of": {"users": 3}},
    "none": [],
}


def test_facts_are_lines_and_what_has_parts_has_one_for_each():
    out = io.StringIO()
    print_facts(FACTS, to=Console(file=out))
    assert out.getvalue().splitlines() == [
        "  name: tea [box]",
        "  sizes: 1.5, 2.5",
        "  files:",
        "    a.csv",
        "    b.csv",
        "  ranges:",
        "    characters 1, reranks False",
        "  card:",
        "    for: people",
        "    of:",
        "      users: 3",
        "  none: ",
    ]


@pytest.mark.parametrize("as_json", [True, False])
def test_a_card_is_json_or_facts(as_json, capsys):
    print_card({"for": "São Paulo"}, as_json)
    said = capsys.readouterr().out
    assert (
        said
        == (json.dumps({"for": "São Paulo"}, ensure_ascii=False) if as_json else "for: São Paulo")
        + "\n"
    )
