"""Divergences between the aggregate posterior and the prior, and total correlation, estimated from samples."""
