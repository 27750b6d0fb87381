"""What an intruder does with a release: DeHIN, inference of attributes, two releases together."""
