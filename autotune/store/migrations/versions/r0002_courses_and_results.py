"""What `run` said at its end, and what the phases of the compared trials showed second by second:
all that `report` shows and trials alone do not say."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column to each table, empty for what is there already."""
    op.add_column("runs", sa.Column("result", sa.JSON))
    op.add_column("trials", sa.Column("courses", sa.JSON))
