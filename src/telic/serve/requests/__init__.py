"""The addresses of the service, and who of its processes answers."""
