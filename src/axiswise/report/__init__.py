"""Records and stored arrays in, figures, tables and one HTML page out; no model, no dataset, no torch."""

from axiswise.report._explanation import page
from axiswise.report._explorer import explorer
from axiswise.report._writing import contact_sheet, heat_map_sheet, scatter_sheet, write_report

__all__ = ["contact_sheet", "explorer", "heat_map_sheet", "page", "scatter_sheet", "write_report"]
