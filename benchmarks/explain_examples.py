"""Explains three models that were not written for axiswise, and writes a page for each.

- ``pytorch``: the variational autoencoder as PyTorch's own examples have it: 784–400–20, a sum of cross-entropies.
- ``pythae``: the default VAE of the library pythae, with 16 latents and half a squared error. ``pip install pythae``.
- ``convolutional``: latents that are feature maps of 2 × 4 × 4, with batch norm and dropout, left in training mode.

All see MNIST: they are trained on its training part and explained on its test part, with the digit as the factor.

Command: ``python benchmarks/explain_examples.py --out results/explain``. Expected: a page of HTML for each, and their
findings on the screen. Cost: a few minutes for each on one core. ``--weights FOLDER`` keeps the trained weights there
and takes them from there the next time; ``--only NAME`` does one of them.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_model, save_model
from torch import nn
from torch.nn import functional

import axiswise as aw
from axiswise.distributions import Bernoulli, Gaussian, Likelihood

BATCH = 128
PIXEL_SCALE = 0.2  # of the convolutional model's Gaussian pixels


class Example(NamedTuple):
    """A model, how its loss is computed, how it is read, and what its decoder's output means."""

    title: str
    model: nn.Module
    loss: Callable[[torch.Tensor], torch.Tensor]
    encode: Callable[[torch.Tensor], Any]
    decode: Callable[[torch.Tensor], Any]
    likelihood: Likelihood
    epochs: int


def reparameterise(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """A sample of each posterior."""
    return mean + (0.5 * log_variance).exp() * torch.randn_like(mean)


def divergence(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """The sum of KL(q(z | x) ‖ N(0, I)) over a batch."""
    return -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())


class DenseVAE(nn.Module):
    """Fully connected, 784–400–20, as in PyTorch's examples."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
        self.fc3, self.fc4 = nn.Linear(20, 400), nn.Linear(400, 784)

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and log-variance."""
        hidden = functional.relu(self.fc1(x))
        return self.fc21(hidden), self.fc22(hidden)

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        """Probabilities of white pixels."""
        return torch.sigmoid(self.fc4(functional.relu(self.fc3(z))))


def pytorch() -> Example:
    """The fully connected model."""
    model = DenseVAE()

    def loss(x: torch.Tensor) -> torch.Tensor:
        flat = x.flatten(1)
        mean, log_variance = model.encode(flat)
        decoded = model.decode(reparameterise(mean, log_variance))
        return functional.binary_cross_entropy(decoded, flat, reduction="sum") + divergence(mean, log_variance)

    def encode(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return model.encode(x.flatten(1))

    return Example("The VAE of PyTorch's examples, on MNIST", model, loss, encode, model.decode, Bernoulli(), 15)


def pythae() -> Example:
    """The default VAE of pythae."""
    from pythae.models import VAE, VAEConfig  # pyright: ignore[reportMissingImports] (not a dependency)

    model = VAE(VAEConfig(input_dim=(1, 28, 28), latent_dim=16))

    def loss(x: torch.Tensor) -> torch.Tensor:
        return len(x) * model({"data": x}).loss

    return Example("pythae's default VAE, on MNIST", model, loss, model.encoder, model.decoder, Gaussian(), 15)


class ConvolutionalVAE(nn.Module):
    """Convolutions only: the latents are maps."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Dropout2d(0.1)),
            nn.Conv2d(32, 4, 3, 2, 1),
        )
        self.decoder = nn.Sequential(
            *(nn.ConvTranspose2d(2, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU()),
            nn.ConvTranspose2d(16, 1, 4, 2, 1),
        )

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and log-variance, (n, 2, 4, 4) each."""
        mean, log_variance = self.encoder(x).chunk(2, 1)
        return mean, log_variance


def convolutional() -> Example:
    """The model with feature maps for latents."""
    model = ConvolutionalVAE()

    def loss(x: torch.Tensor) -> torch.Tensor:
        mean, log_variance = model.encode(x)
        error = (model.decoder(reparameterise(mean, log_variance)) - x).square().sum()
        return 0.5 * error / PIXEL_SCALE**2 + divergence(mean, log_variance)

    likelihood = Gaussian(PIXEL_SCALE)
    title = "A convolutional VAE with feature maps for latents, on MNIST"
    return Example(title, model, loss, model.encode, model.decoder, likelihood, 4)


EXAMPLES = {"pytorch": pytorch, "pythae": pythae, "convolutional": convolutional}


def train(example: Example, images: torch.Tensor) -> None:
    """Adam, for as many epochs as the example asks for."""
    optimizer = torch.optim.Adam(example.model.parameters(), lr=1e-3)
    example.model.train()
    for epoch in range(example.epochs):
        total, began = 0.0, time.perf_counter()
        for rows in torch.randperm(len(images)).split(BATCH):
            loss = example.loss(images[rows])
            optimizer.zero_grad()
            (loss / len(rows)).backward()
            optimizer.step()
            total += loss.item()
        seconds = time.perf_counter() - began
        print(f"  epoch {epoch + 1}: {total / len(images):.2f} nats, {seconds:.0f} s", flush=True)


def main() -> None:
    """Trains, explains, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/explain"))
    parser.add_argument("--weights", type=Path, help="keep trained weights in this folder, and take them from there")
    parser.add_argument("--only", choices=list(EXAMPLES))
    parser.add_argument("--train-only", action="store_true")
    options = parser.parse_args()
    for name in [options.only] if options.only else list(EXAMPLES):
        torch.manual_seed(0)
        try:
            example = EXAMPLES[name]()
        except ImportError as error:
            print(f"{name}: skipped, since it is not installed ({error}). Install it: pip install {name}", flush=True)
            continue
        stored = options.weights / f"{name}.safetensors" if options.weights else None
        print(f"{name}: {example.title}", flush=True)
        if stored and stored.exists():
            load_model(example.model, stored)
        else:
            images = aw.data.mnist("train")
            train(example, images.x(torch.arange(len(images))))
            if stored:
                stored.parent.mkdir(parents=True, exist_ok=True)
                save_model(example.model, str(stored))
        if options.train_only:
            continue
        test = aw.data.mnist("test")
        index = torch.arange(len(test))
        began = time.perf_counter()
        explanation = aw.explain(
            example.encode,
            example.decode,
            test.x(index),
            factors=test.factors(index),
            factor_names=["digit"],
            likelihood=example.likelihood,
            title=example.title,
        )
        page = aw.report.page(explanation, options.out / f"{name}.html")
        print(explanation)
        seconds, size = time.perf_counter() - began, page.stat().st_size
        print(f"{name}: {page}, {size / 1e6:.2f} MB, {seconds:.0f} s\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
