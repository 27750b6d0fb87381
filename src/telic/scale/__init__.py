"""The same functions on data larger than memory, then on more than one machine.

A job is a pure function and the partitions that it is called with; `Local` runs it on this
machine's threads, `Dask` and `Ray` on clusters.
"""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.data.object_storage import fetched
    from telic.scale.dask_cluster import Dask
    from telic.scale.executor import Executor
    from telic.scale.job_report import JobReport, Results, TaskReport
    from telic.scale.local import Local
    from telic.scale.memory import parse_memory
    from telic.scale.partitions import RowRange, ranges, row_ranges
    from telic.scale.ray_cluster import Ray
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Dask",
    "Executor",
    "JobReport",
    "Local",
    "Ray",
    "Results",
    "RowRange",
    "TaskReport",
    "fetched",
    "parse_memory",
    "ranges",
    "row_ranges",
]
