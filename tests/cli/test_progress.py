"""Bars of steps, which tests run off a terminal."""

import io
import threading

import pytest
from rich.console import Console

from telic.cli.progress import steps
from telic.errors import InputError


def shown_by():
    return [thread for thread in threading.enumerate() if "Refresh" in type(thread).__name__]


def reading():
    with steps("reading", 2) as begin:
        begin("the first half")
        assert shown_by()
        raise InputError("no such half")


def test_a_bar_that_an_error_ends_leaves_neither_a_line_nor_a_thread(capfd):
    with pytest.raises(InputError):
        reading()
    for thread in shown_by():
        thread.join(10)
    assert not shown_by()
    assert capfd.readouterr() == ("", "")


def test_a_step_may_be_called_anything_in_a_terminal():
    out = io.StringIO()
    with steps("what", 2, Console(file=out, force_terminal=True, width=80)) as begin:
        begin("[/b] adds")
        begin("[red] :a: adds")
        shown_by()[0].live.refresh()
    assert "[red] :a: adds" in out.getvalue()
