"""Records and stored arrays in, figures, tables and one HTML page out; no model, no dataset, no torch."""

from axiswise.report.writing import contact_sheet, scatter_sheet, write_report

__all__ = ["contact_sheet", "scatter_sheet", "write_report"]
