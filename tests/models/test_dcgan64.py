"""The DCGAN's network: what it computes, and that cohorts train its batch norm as a plain loop would."""

import torch
from torch import nn
from torch.nn import functional

from axiswise import data, objectives, optimizers, train
from axiswise.models import dcgan64
from axiswise.numerics import integers, normal, uniform
from axiswise.population import Member
from axiswise.population import _cohort as cohort

RATE, STEPS, BATCH = 1e-3, 3, 4


def test_dcgan64_computes_the_tables_network():
    encoder, decoder = (module.double() for module in dcgan64(1, 2).modules().values())
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(4, 1, 64, 64, dtype=torch.float64, generator=generator)
    z = torch.randn(4, 2, dtype=torch.float64, generator=generator)

    def normalised(hidden, norm):  # by the batch's own statistics, as in training
        mean = hidden.mean((0, 2, 3), keepdim=True)
        variance = hidden.var((0, 2, 3), correction=0, keepdim=True)
        return (hidden - mean) / (variance + norm.eps).sqrt()

    hidden = x
    for position in range(0, 12, 3):
        hidden = functional.conv2d(hidden, encoder[position].weight, stride=2, padding=1)
        hidden = functional.leaky_relu(normalised(hidden, encoder[position + 1]), 0.2)
    assert hidden.shape == (4, 256, 4, 4)
    heads = torch.einsum("nchw,ochw->no", hidden, encoder[12].weight) + encoder[12].bias
    torch.testing.assert_close(encoder(x), heads, rtol=1e-10, atol=1e-12)

    hidden = torch.einsum("nz,zohw->nohw", z, decoder[1].weight)
    for position in range(2, 14, 3):
        hidden = functional.relu(normalised(hidden, decoder[position]))
        layer = decoder[position + 2]
        hidden = functional.conv_transpose2d(hidden, layer.weight, layer.bias, stride=2, padding=1)
    torch.testing.assert_close(decoder(z), hidden, rtol=1e-10, atol=1e-12)


def plain_loop(member: Member, dataset: data.FactorDataset) -> tuple[nn.Module, nn.Module]:
    """The member trained by an ordinary loop over ordinary modules in training mode."""
    start = Member(member.model, member.objective, steps=0, seed=member.seed)
    model = train([start], dataset, dtype=torch.float64)[0].requires_grad_().train()
    encoder, decoder = model.encoder, model.decoder
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=RATE)
    for step in range(member.steps):
        x = dataset.x(integers(member.seed, "index", step, (BATCH,), len(dataset))).double()
        mean, log_variance = encoder(x).chunk(2, -1)
        noise = normal(member.seed, "noise", step, (BATCH, member.model.latents), dtype=torch.float64)
        logits = decoder(mean + (log_variance / 2).exp() * noise)
        kl = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(1).mean()
        error = functional.binary_cross_entropy_with_logits(logits, x, reduction="none").flatten(1).sum(1).mean()
        optimizer.zero_grad()
        (error + kl).backward()
        optimizer.step()
    return encoder, decoder


def test_cohorts_train_batch_norm_as_a_plain_loop_does(monkeypatch):
    """Stacked under vmap and alone, weights and running statistics are a plain loop's; evaluation uses the latter."""
    dataset = data.arrays(uniform(0, "images", 0, (24, 1, 64, 64), dtype=torch.float32))
    optimizer = optimizers.Adam(lr=RATE)
    members = [
        Member(dcgan64(1, 3), objectives.BetaVAE(), steps=STEPS, batch=BATCH, seed=seed, optimizer=optimizer)
        for seed in (0, 7)
    ]
    alone = train(members[:1], dataset, dtype=torch.float64)
    monkeypatch.setattr(cohort, "stacking_pays", lambda model, device: True)
    together = train(members, dataset, dtype=torch.float64)
    encoder, decoder = plain_loop(members[0], dataset)
    expected = {f"encoder.{name}": tensor for name, tensor in encoder.state_dict().items()}
    expected |= {f"decoder.{name}": tensor for name, tensor in decoder.state_dict().items()}
    for trained in (alone.trained[0], together.trained[0]):
        found = trained.weights | trained.buffers
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            assert (found[name] - tensor).abs().max() < 1e-10, name
        assert trained.buffers["encoder.1.num_batches_tracked"] == STEPS
    x = dataset.x(torch.arange(5)).double()
    mean = encoder.eval()(x).chunk(2, -1)[0]
    for population in (alone, together):
        assert (population.encode(x).mean[0] - mean).abs().max() < 1e-10
        # Running statistics do not depend on who else is in the batch.
        assert (population.encode(x[:1]).mean[0] - mean[:1]).abs().max() < 1e-10
        decoded = population.decode(mean)[0]
        assert (decoded - decoder.eval()(mean).sigmoid()).abs().max() < 1e-10
