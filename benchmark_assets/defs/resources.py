"""What the assets are given: the project, opened.

Belongs here: the one resource. Does not belong here: its use.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmark_assets.adapters.sources import Progress, quiet
from benchmark_assets.pipeline.ingest import Inventory, take_inventory
from benchmark_assets.pipeline.workspace import Workspace


@dataclass
class Bench:
    """The project as the assets see it.

    Attributes:
        workspace: Settings and store.
        inventory: The sources as `bench run` has just seen them, so that no file is read
            twice; None makes every run look for itself.
        progress: Told how far a step is.
        problems: Told what went wrong without stopping a step.
    """

    workspace: Workspace
    inventory: Inventory | None = None
    progress: Progress = quiet
    problems: Callable[[str], None] = field(default=lambda text: None)

    def sources(self) -> Inventory:
        """The sources as they are."""
        if self.inventory is not None:
            return self.inventory
        return take_inventory(self.workspace, progress=self.progress)
