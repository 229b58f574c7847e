"""What a statistic is.

Belongs here: the type. Does not belong here: any formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Statistic:
    """One family of figures over a set of runs.

    Attributes:
        field: The field of `model.standings.Figures` it fills.
        compute: From prepared runs, one row a run, to that field's value. Must accept no rows.
    """

    field: str
    compute: Callable[[pd.DataFrame], Any]
