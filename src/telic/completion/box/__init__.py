"""The search box: what it suggests at each keystroke, and what it keeps of a user."""
