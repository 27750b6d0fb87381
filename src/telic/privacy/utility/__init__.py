"""What a release has lost for those who use it."""
