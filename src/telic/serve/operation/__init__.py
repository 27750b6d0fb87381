"""How the service is run: its settings, and what it says of itself."""
