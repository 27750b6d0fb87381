"""Every simulator has a data card, and the page of cards is what its script writes."""

import ast
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CARDS = sorted((ROOT / "docs" / "measured").glob("data-card*.md"))
NOT_SIMULATORS = {"dwell_controls"}  # compares logs of simulated typists with their twins


def drawing_functions(file):
    """Public functions of a module that draw by a seed."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            arguments = (*node.args.args, *node.args.kwonlyargs)
            if "seed" in {each.arg for each in arguments}:
                yield node.name


def test_every_simulator_has_a_card():
    cards = "".join(card.read_text(encoding="utf-8") for card in CARDS)
    files = sorted((ROOT / "src" / "telic" / "simulate").glob("*.py"))
    drawing = {file.stem: [*drawing_functions(file)] for file in files}
    missing = {
        module
        for module, functions in drawing.items()
        if functions and module not in NOT_SIMULATORS
        if not re.search(rf"`(telic\.simulate\.)?({'|'.join([module, *functions])})\b", cards)
    }
    assert len(drawing) > 15
    assert not missing, f"write cards in docs/measured for {sorted(missing)}"


def test_the_words_of_the_page_of_cards_are_the_scripts():
    text = runpy.run_path(str(ROOT / "scripts" / "data_cards.py"))["TEXT"]
    page = (ROOT / "docs" / "measured" / "data-cards.md").read_text(encoding="utf-8")
    words = [re.escape(part) for part in re.split(r"\{[^}]*\}", text)]
    assert re.fullmatch(".*?".join(words), page, re.S)
