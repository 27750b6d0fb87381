import pytest
from rich.progress import Progress


@pytest.fixture(autouse=True)
def _every_step_of_a_bar_is_told(monkeypatch):
    """A bar of so many steps that ends after fewer has shown its users a wrong share."""
    update = Progress.update

    def checked(self, task, *, completed=None, **changes):
        if completed is not None:
            assert self.tasks[task].completed == completed - 1, self.tasks[task].description
        return update(self, task, completed=completed, **changes)

    monkeypatch.setattr(Progress, "update", checked)
