"""Makes format("spillway") known: Spark looks for a DefaultSource in packages named pyspark_*."""

from spillway.hosts.spark.source import Spillway as DefaultSource

__all__ = ["DefaultSource"]
