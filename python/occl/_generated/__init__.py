"""What `make reference` writes: see docs/reference/generate.py."""
