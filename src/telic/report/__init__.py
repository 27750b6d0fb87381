"""Reports: title, text, tables and figures in one self-contained HTML file."""

from telic.report.html import Report

__all__ = ["Report"]
