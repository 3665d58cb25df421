"""Measurements: run one with `python -m bench.page` or `python -m bench.start`."""
