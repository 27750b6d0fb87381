"""A hospital's access log: its arrays, its files and contract, and other systems' exports."""
