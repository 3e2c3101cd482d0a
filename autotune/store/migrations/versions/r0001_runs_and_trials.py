"""Runs and their trials, as stores had them before there were migrations."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", sa.String(64), nullable=False, index=True),
        sa.Column("device", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("problem", sa.JSON, nullable=False),
        sa.Column("profile", sa.JSON),
    )
    op.create_table(
        "trials",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), nullable=False, index=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("requested", sa.JSON, nullable=False),
        sa.Column("effective", sa.JSON, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("measured", sa.JSON, nullable=False),
        sa.Column("bytes_written", sa.Integer, nullable=False),
        sa.UniqueConstraint("run_id", "number"),
    )
