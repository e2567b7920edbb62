"""The best encoder of a β-VAE whose linear decoder is not trained."""

import numpy as np

from axiswise._arguments import checked
from axiswise.analytic._checks import Scalar, positive, real
from axiswise.analytic.linear_gaussian import LinearVAE, linear_posterior
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Num


@checked
def fixed_decoder_optimum(decoder: Num[Array, "... x z"], beta: Scalar, noise: Scalar = 1.0) -> LinearVAE:
    r"""Returns the encoder that maximises the β-objective for a fixed decoder D.

    .. math:: W^\mu = (D^\top D + \beta\sigma^2 I)^{-1} D^\top, \qquad
        e^{b^\sigma_j} = \frac{\beta\sigma^2}{[D^\top D]_{jj} + \beta\sigma^2}, \qquad W^\sigma = 0, \quad b^\mu = 0.

    The optimum does not depend on the data's covariance if that has full rank. The mean is that of the posterior of the
    same decoder under noise βσ², and the diagonal replaces a precision matrix that need not be diagonal.

    The likelihood does not change, so the model inference error is smallest at β = 1, where the ELBO is largest. The
    *true* inference error is also smallest there if the decoder is the true mixing. For another decoder, such as
    ``D = 2 A``, it is smallest elsewhere.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, section IV-A, and lines 1, 3
        and 4 of eq 23.

    Arguments:
        decoder: The matrix D, any leading axes; its bias is 0.
        beta: Weight β of the divergence; broadcasts against the leading axes of the decoder.
        noise: The variance σ² of the likelihood, not its standard deviation.

    Example:
        >>> import torch
        >>> vae = fixed_decoder_optimum(torch.tensor([[2.0], [0.0]]), beta=4)
        >>> vae.encoder.tolist(), vae.variances.tolist()
        ([[0.25, 0.0]], [0.5])
    """
    weights = real("decoder", decoder)
    if weights.ndim < 2 or 0 in weights.shape[-2:]:
        raise AxiswiseError(
            f"`decoder` must have axes (…, x, z), none of them empty. Got shape {tuple(weights.shape)}."
        )
    sigma = positive("noise", noise, weights)
    softened = positive("beta", beta, weights) * sigma
    leading = np.broadcast_shapes(weights.shape[:-2], softened.shape)
    weights = weights.expand(*leading, *weights.shape[-2:])
    level = softened[..., None]
    variances = level / (weights.square().sum(-2) + level)
    return LinearVAE(weights, linear_posterior(weights, softened).weights, variances, sigma)
