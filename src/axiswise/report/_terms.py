"""The words of a report, each defined once, before it is used."""

from collections.abc import Iterator, Sequence

from axiswise.report._folder import ACTIVE
from axiswise.report._sections import Section, label

MEASURES = {
    "mig": "Mutual information gap: how much more one latent tells of a factor than any other latent does, as a share "
    "of all there is to know of it; mean over factors. From 0 to 1; higher is better.",
    "dto": "Distance to orthogonality: how far the decoder's local principal directions are from the latent axes. 0 is "
    "aligned. Axes turned at random have 0.55 if two latents are active, 0.98 if three. A single axis is always "
    "aligned: its 0 says nothing.",
    ACTIVE: "How many latents are used: those whose posterior variance, a mean over the data, is below 0.8. The others "
    "are passive: their posterior is close to the prior whatever the input, and pictures draw them in grey.",
    "polarization": "Share of training, up to its end, in the polarized regime: each latent is either precise or pure "
    "noise. (The KL is then within 3 % of what the means and log-variances of active latents give.)",
    "disentanglement": "The score of Rolinek et al. (2019): how much better one latent predicts a factor than any "
    "other does, by nearest neighbours; mean over factors. From 0 to 1; higher is better.",
    "loss": "What training minimises, in nats: for a β-VAE reconstruction + β · KL.",
    "reconstruction": "−log p(x | z), in nats: how badly the decoder explains an observation by its code.",
    "kl": "Divergence of the posterior from the prior, in nats, summed over latents: what the code tells of the input.",
}
SETTINGS = {
    "latents": "The coordinates of a code. Each has a mean and a variance given the input: the posterior.",
    "beta": "A weight in the loss: in a β-VAE that of the KL.",
}
MEMBER = "One trained model: a choice of settings and a seed, the number from which its random numbers come."
INTERVAL = (
    "The 95 % Student t interval of the mean over members. Two settings whose intervals are apart differ by more than "
    "seeds do."
)


def terms(compared: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """The terms that the sections use and their definitions, in the order in which a page is read."""
    settings = {name for section in compared for member in section.members for name in member.settings}
    measures = {name for section in compared for name in section.measures}
    yield "member", MEMBER
    yield from ((label(name), words) for name, words in SETTINGS.items() if name in settings)
    yield from ((label(name), words) for name, words in MEASURES.items() if name in measures)
    yield "±", INTERVAL
