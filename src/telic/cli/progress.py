"""Progress on the terminal's error stream, so that `--json` keeps standard output to itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

console = Console(stderr=True, markup=False, emoji=False, highlight=False)


@contextmanager
def steps(
    title: str, total: int | None = None, console: Console = console
) -> Iterator[Callable[[str], None]]:
    """Show a bar that advances each time the function it gives is called with the next step."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(title, total=total)
        begun = False

        def begin(step: str) -> None:
            nonlocal begun
            progress.update(task, description=f"{title}: {step}", advance=1 if begun else 0)
            begun = True

        try:
            yield begin
        except BaseException:
            # The error's line stands alone; off a terminal rich would end the bar by an empty one.
            progress.live.transient = True
            progress.live.stop()  # a bar that is disabled would leave its thread running
            progress.disable = not console.is_interactive
            raise
        end = total or progress.tasks[task].completed + 1  # of a bar without an end, too
        progress.update(task, description=title, total=end, completed=end)
