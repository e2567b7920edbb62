import pytest
import torch
from torch import nn

from axiswise import data, models, objectives
from axiswise.attack import Choice
from axiswise.distributions import Bernoulli
from axiswise.optimizers import Adam
from axiswise.population import Population, grid, train


@pytest.fixture(scope="session")
def sprites() -> data.FactorDataset:
    return data.small_sprites((6, 5, 2))


@pytest.fixture(scope="session")
def population(sprites) -> Population:
    """Four small VAEs of three latents, trained long enough to code something."""
    model = models.mlp(
        (1, 16, 16), 3, encoder=(16,), decoder=(16,), activation=(nn.Tanh, nn.Tanh), likelihood=Bernoulli()
    )
    members = grid(
        model=model, objective=objectives.BetaVAE(0.1), optimizer=Adam(lr=1e-2), batch=16, steps=300, seed=range(4)
    )
    return train(members, sprites, dtype=torch.float64)


@pytest.fixture
def choice() -> Choice:
    """Two members of either kind: the tests do not depend on their scores."""
    return Choice(disentangled=(0, 3), entangled=(2, 1), ranking=(), set_aside=(), by="mig")
