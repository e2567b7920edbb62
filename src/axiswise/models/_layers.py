"""Modules of networks besides PyTorch's own."""

from collections.abc import Mapping

from torch import nn

from axiswise.shapes import Float, Tensor


class Values(nn.Module):
    """Parameters that no network computes: those that a prior or likelihood learns. A call returns them by name.

    Example:
        >>> import torch
        >>> Values({"log_scale": torch.zeros(())})()["log_scale"].shape
        torch.Size([])
    """

    def __init__(self, initial: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, value in initial.items():
            self.register_parameter(name, nn.Parameter(value.clone()))

    def forward(self) -> dict[str, Tensor]:
        """The parameters by name."""
        return dict(self.named_parameters())


class Reshape(nn.Module):
    """Reshapes each row; ``Reshape((-1,))`` flattens.

    Example:
        >>> import torch
        >>> Reshape((1, 2, 3))(torch.zeros(4, 6)).shape
        torch.Size([4, 1, 2, 3])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, rows: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """Reshapes everything after the first axis."""
        return rows.reshape(rows.shape[0], *self.shape)
