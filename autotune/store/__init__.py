"""The store: every run and trial, in a database through SQLAlchemy (`sqlite` has what is one
database's own).

A trial is there whole or not at all, and before the next one starts. The `Store` itself is in
`autotune.store.database`, since importing SQLAlchemy takes longer than most commands do.
"""

from autotune.store.records import RunRecord, TrialRecord

__all__ = ["RunRecord", "TrialRecord"]
