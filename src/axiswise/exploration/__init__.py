"""Populations as a page shows them in which their decoders run: numbers and layers, without PyTorch."""
