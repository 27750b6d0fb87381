"""`python -m telic` is `telic`: the program, however it is ended."""

import os
import signal
import sys
import threading
import time
from functools import partial
from io import TextIOWrapper
from types import FrameType

GRACE = 10.0
"""Seconds for cleaning up after SIGTERM, before the process ends at once."""


def main() -> None:
    """Run the command line; Ctrl-C and SIGTERM end it quietly, and nothing half-written is left."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed, as by `telic … >&-`
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):  # whose encoding may lack a dash or an accent
            stream.reconfigure(errors="backslashreplace")
    try:
        if os.name == "posix":
            _unwind_on_sigterm()
        from telic.cli import main as run  # takes a moment, in which Ctrl-C may come

        run()
    except KeyboardInterrupt:
        sys.exit(130)


def _unwind_on_sigterm() -> None:
    """Raise SystemExit where SIGTERM comes; end at once if the main thread does not end in time."""
    code = 128 + signal.SIGTERM

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one does not stop the cleaning
        sys.exit(code)

    def watch() -> None:
        while True:
            told = os.read(bytes_of_signals, 1)
            # A service that has a handler of its own takes its time.
            if told[0] == signal.SIGTERM and signal.getsignal(told[0]) in (end, signal.SIG_IGN):
                time.sleep(GRACE)
                os._exit(code)

    # The handler waits for a compiled function to return; the pipe is written to at once.
    bytes_of_signals, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=partial(signal.set_wakeup_fd, -1))
    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGTERM, end)


if __name__ == "__main__":
    main()
