"""Learn what people intend from the traces they leave, use it well, and do not leak it."""

__version__ = "0.1.0"
