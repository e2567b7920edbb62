"""Additions to images that stay within their range."""

from axiswise.shapes import Float, Tensor


def add_reflected(x: Float[Tensor, "*any"], added: Float[Tensor, "*any"], *, images: bool) -> Float[Tensor, "*any"]:
    """Adds to observations; images are reflected back into 0…1, as by ρ in `manipulated`.

    Example:
        >>> import torch
        >>> add_reflected(torch.tensor([0.0, 0.5, 1.0]), torch.tensor([-0.1, 0.1, 0.2]), images=True)
        tensor([0.1000, 0.6000, 0.8000])
    """
    total = x + added
    return total - 2.0 * (total - 1.0).relu() + 2.0 * (-total).relu() if images else total
