"""Speed, measured: both sides of every comparison in one run. `make bench` runs all; `python -m benchmarks --help`."""
