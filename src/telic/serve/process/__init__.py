"""The server, its worker processes, and a new model in place of the old one."""
