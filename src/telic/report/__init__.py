"""Reports: title, text, tables and figures in one self-contained HTML file."""

from telic.report.html import Report
from telic.report.table import Table

__all__ = ["Report", "Table"]
