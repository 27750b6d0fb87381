"""`python -m telic` is `telic`."""

from telic.cli import main

main()
