"""Every job with the drop-in."""

from spillway_lab.benchmarks.jobs import rows, windows

JOBS = (*windows.JOBS, *rows.JOBS)
