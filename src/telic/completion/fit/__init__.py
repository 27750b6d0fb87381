"""From files and logs to a search box."""
