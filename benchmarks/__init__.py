"""Benchmarks: ratios measured side by side in one run. `python -m benchmarks NAME` prints a table and writes JSON."""
