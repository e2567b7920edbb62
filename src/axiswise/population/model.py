"""One member of a population as a model that one can call."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from axiswise._arguments import Between, misfit
from axiswise.distributions import Likelihood, Parameters, Prior
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.models.vae import with_learned
from axiswise.numerics import normal, uniform
from axiswise.population._export import Format, export
from axiswise.population._trained import Trained, check_codes, check_observations, in_one_row, in_words, settings_of
from axiswise.population.member import Member
from axiswise.records._html import box, counted, element, field_table
from axiswise.shapes import Float, Num, Tensor

Values = Sequence[float] | Num[Tensor, " v"]


class Model(nn.Module):
    """A trained model: its own encoder and decoder, and what they mean together.

    It is an ordinary module, in evaluation mode and with its weights frozen; ``model.requires_grad_()`` thaws them.
    `encoder` and `decoder` are the networks themselves, as whoever wrote them knows them. `encode` and `decode` read
    their outputs as posterior and likelihood do.

    Arguments:
        trained: The member with its weights.

    Example:
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid, train
        >>> square = data.synth_linear(samples=1000)
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2, seed=range(4))
        >>> model, x = train(members, square)[1], square.x(torch.arange(10))
        >>> model.encode(x).mean.shape, model.reconstruct(x).shape, model.sample(5).shape
        (torch.Size([10, 2]), torch.Size([10, 3]), torch.Size([5, 3]))
        >>> model.traverse(x, latent=0, values=[-1.0, 0.0, 1.0]).shape, model.member.seed
        (torch.Size([10, 3, 3]), 1)
    """

    def __init__(self, trained: Trained) -> None:
        super().__init__()
        self.trained = trained
        self._parts = _parts(trained)
        for name, part in self._parts.items():
            if isinstance(part, nn.Module):  # `setattr` registers it; `add_module` refuses the names of properties
                setattr(self, f"learned_{name}" if name in ("prior", "likelihood") else name, part)
        if not trained.external:  # whose modules are somebody else's
            self.requires_grad_(False).eval()

    @property
    def member(self) -> Member:
        """The description that was trained."""
        return self.trained.member

    @property
    def history(self) -> dict[str, np.ndarray]:
        """The terms of the loss over training, by name, and "step"."""
        return self.trained.history

    @property
    def validation(self) -> dict[str, np.ndarray]:
        """The terms of the loss on the validation set, by name, and "step"; empty without such a set."""
        return self.trained.validation

    @property
    def status(self) -> str:
        """The status: "trained", or what went wrong."""
        return self.trained.status

    @property
    def encoder(self) -> Callable[..., Any]:
        """The encoder itself: a module, or the function that an external model was made from."""
        return self._parts["encoder"]

    @property
    def decoder(self) -> Callable[..., Any]:
        """The decoder itself.

        Raises:
            NotDefined: If there is none.
        """
        if "decoder" not in self._parts:
            raise NotDefined(
                f"Expected a model with a decoder. Got one of {type(self.member.objective).__name__}, which has none: "
                "only `encoder` and `encode` are there."
            )
        return self._parts["decoder"]

    @property
    def prior(self) -> Prior:
        """The prior, with what it learned."""
        return with_learned(self.member.model.prior, self._learned("prior"))

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, with what it learned."""
        return with_learned(self.member.model.likelihood, self._learned("likelihood"))

    def encode(self, x: Float[Tensor, "n ..."]) -> Parameters:
        """Parameters of q(z | x), a named tuple: ``model.encode(x).mean`` are the codes."""
        if self.trained.encode is not None:
            return self.trained.encode(x)
        check_observations(x, self.member.model.shape)
        return self.member.model.posterior.unpack(self.encoder(self._like_weights(x)))

    def decode(self, z: Float[Tensor, "n z"], *, raw: bool = False) -> Float[Tensor, "n ..."]:
        """E[x | z], or with ``raw=True`` the decoder's own output, such as logits."""
        decoder = self.decoder
        check_codes(z, self.member.model.latents)
        if self.trained.decode is not None:
            return self.trained.decode(z, raw=raw)
        output = decoder(self._like_weights(z))
        return output if raw else self.likelihood.mean(output)

    def reconstruct(self, x: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """E[x | z] at the mean of q(z | x)."""
        return self.decode(self.encode(x).mean)

    def forward(self, x: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """As `reconstruct`."""
        return self.reconstruct(x)

    def sample(self, count: int, *, seed: int = 0) -> Float[Tensor, "n ..."]:
        """E[x | z] at latents that are drawn from the prior.

        Arguments:
            count: How many.
            seed: Decides which.
        """
        if wrong := misfit(count, Annotated[int, Between(0)], "count"):
            raise AxiswiseError(f"{wrong}.")
        latents = self.member.model.latents
        if not latents:
            raise AxiswiseError(
                "An external model must have encoded something before it is sampled from: its number of latents is "
                "not known yet. Call `encode` first."
            )
        parameter = next(self.parameters(), torch.empty(0))
        seeds = torch.tensor([seed], device=parameter.device)
        noise, drawn = (
            draw(seeds, f"sample {draw.__name__}", seeds.new_zeros(1, 1), (count, latents), dtype=torch.float64)[0, 0]
            for draw in (normal, uniform)
        )
        return self.decode(self.prior.sample(noise.to(parameter), drawn.to(parameter)))

    def traverse(self, x: Float[Tensor, "n ..."], latent: int, values: Values) -> Float[Tensor, "n v ..."]:
        """E[x | z] where one latent of the code of x takes other values.

        Arguments:
            x: Observations.
            latent: Which latent, from 0.
            values: Its values.
        """
        if wrong := misfit(latent, int, "latent") or misfit(values, Values, "values"):
            raise AxiswiseError(f"{wrong}.")
        codes = self.encode(x).mean
        if not 0 <= latent < codes.shape[-1]:
            raise AxiswiseError(f"`latent` must be between 0 and {codes.shape[-1] - 1}. Got {latent}.")
        moved = codes[:, None].repeat(1, len(values), 1)
        moved[..., latent] = torch.as_tensor(values).to(codes)
        return self.decode(moved.flatten(0, 1)).unflatten(0, moved.shape[:2])

    def export(self, path: str | Path, *, to: Format = "state-dict") -> list[Path]:
        """Writes the model as files that need no axiswise, and a model card; the Hugging Face hub takes the folder.

        Arguments:
            path: A folder that is empty or not there yet.
            to: "state-dict" writes state dicts of encoder and decoder alone; "onnx" and "torch-export" add programs
                that compute the posterior's parameters and E[x | z].

        Raises:
            AxiswiseError: If the folder is not empty, the model is external, or a package is missing.

        Example:
            >>> import tempfile
            >>> from axiswise import data, models, objectives
            >>> from axiswise.population import grid, train
            >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1)
            >>> model = train(members, data.synth_linear(samples=100))[0]
            >>> [path.name for path in model.export(tempfile.mkdtemp())]
            ['encoder.safetensors', 'decoder.safetensors', 'README.md', 'config.json']
        """
        modules = {name: part for name, part in self._parts.items() if isinstance(part, nn.Module)}
        return export(self.trained, modules, Path(path), to)

    def extra_repr(self) -> str:
        """What the model is, for its printed form."""
        return f"{self.member.model.network.name}, {self.member.objective}, seed {self.member.seed}, {self.status}"

    def __repr__(self) -> str:
        return f"Model({self.extra_repr()})"

    def _repr_html_(self) -> str:
        settings, vae = in_words(in_one_row(settings_of(self.trained)), "training seconds"), self.member.model
        parts = {"posterior": vae.posterior, "prior": vae.prior, "likelihood": vae.likelihood}
        sizes = {name: _size(self._parts[name]) for name in ("encoder", "decoder") if name in self._parts}
        address = {"address": settings.pop("address")}
        fields = {name: value for name, value in (settings | parts | sizes | address).items() if value is not None}
        return box(element("p", element("strong", "Model")), field_table(fields))

    def _like_weights(self, tensor: Tensor) -> Tensor:
        return tensor.to(next(self.parameters()))

    def _learned(self, name: str) -> dict[str, Tensor]:
        return self._parts[name]() if name in self._parts else {}


def _size(network: Callable[..., Any]) -> str:
    """How large a network is; layers are the modules that have weights of their own."""
    if not isinstance(network, nn.Module):
        return "a function"
    layers = [module for module in network.modules() if any(True for _ in module.parameters(recurse=False))]
    weights = sum(weight.numel() for weight in network.parameters() if not is_lazy(weight))
    return f"{counted(len(layers), 'layer')}, {counted(weights, 'weight')}"


def _parts(trained: Trained) -> dict[str, Callable[..., Any]]:
    """The networks of a member by name, with its weights."""
    if trained.external:
        reader: Any = trained.member.model.network
        own = {"encoder": reader.reader.encoder, "decoder": reader.reader.decoder}
        return {name: part for name, part in own.items() if part is not None}
    modules = trained.member.objective.networks(trained.member.model).model
    tensors = {**trained.weights, **trained.buffers}
    for name, module in modules.items():
        own = {key.removeprefix(f"{name}."): tensors[key] for key in tensors if key.startswith(f"{name}.")}
        module.to(next(iter(own.values()))).load_state_dict(own)
    return dict(modules)
