"""When Python's garbage collector looks for objects that hold each other: it stops the service."""

import gc

THRESHOLDS = 1_000, 10, 500
"""Of its three generations, as `gc.set_threshold` takes them.

Each answer leaves reference cycles, which a look at young objects finds. A look at all objects
takes a tenth of a second once thousands of compositions are open, and nobody is answered meanwhile:
with these thresholds it is 25 to 70 times rarer than by Python's own.
"""


def begin() -> None:
    """Take the thresholds above, and never look again at what is loaded by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def remove_replaced() -> None:
    """Look at all objects once: a replaced service is one large cycle, with its model."""
    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if frozen:
        gc.freeze()
