"""Reports: title, text, tables and figures in one self-contained HTML file."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.report.html import Report
    from telic.report.table import Table
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Report", "Table"]
