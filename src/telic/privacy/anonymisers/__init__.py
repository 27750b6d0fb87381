"""Changes of a network before it is published, one file each; release_steps.py applies them."""
