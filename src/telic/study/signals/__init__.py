"""What sessions, time and people are worth, on real query logs and on simulated ones."""
