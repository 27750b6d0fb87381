"""Which release to publish: a search for the one that meets the limits and loses least."""
