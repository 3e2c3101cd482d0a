"""Workloads: the phases that stand for how an array is used."""
