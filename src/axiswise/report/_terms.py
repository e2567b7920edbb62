"""The words of a report, each defined once, before it is used."""

from collections.abc import Iterator, Sequence

from axiswise.report._folder import ACTIVE
from axiswise.report._sections import Section, label

MEASURES = {
    "mig": "Mutual information gap: how much more one latent tells of a factor than any other latent does, as a share "
    "of all there is to know of it; mean over factors. From 0 to 1; higher is better.",
    "dto": "Distance to orthogonality: how far the decoder's local principal directions are from the latent axes. 0 is "
    "aligned. Axes turned at random have 0.55 if two latents are active, 0.98 if three, 1.33 if four, 1.64 if five. A "
    "single axis is always aligned: its 0 says nothing.",
    ACTIVE: "How many latents are used: those whose posterior variance, a mean over the data, is below 0.8. The others "
    "are passive: their posterior is close to the prior whatever the input. Traversals and curves of the KL draw them "
    "in grey.",
    "polarization": "Share of training, counted from its end, that was all in the polarized regime: each latent is "
    "either precise or pure noise. (The KL is then within 3 % of what the means and log-variances of active latents "
    "give.)",
    "disentanglement": "The score of Rolinek et al. (2019): how much better one latent predicts a factor than any "
    "other does, by nearest neighbours; mean over factors. From 0 to 1; higher is better.",
    "loss": "What training minimises, in nats, the unit of −log of a probability: for a β-VAE reconstruction + β · KL.",
    "reconstruction": "−log p(x | z), in nats: how badly the decoder explains an observation by its code.",
    "kl": "Divergence of the posterior from the prior, the law that codes are drawn from before anything is known of "
    "the input; in nats, summed over latents: what the code tells of the input.",
}
SETTINGS = {
    "latents": "The coordinates of a code, which is what the encoder makes of an input. Each has a mean and a variance "
    "given the input: the posterior.",
    "beta": "A weight in the loss: in a β-VAE that of the KL.",
}
MEMBER = "One trained model: a choice of settings and a seed, the number from which its random numbers come."
INTERVAL = (
    "The 95 % Student t interval of the mean over members. Where the intervals of two settings are apart, their means "
    "differ by more than chance in the seeds explains; single members may still be alike."
)


def terms(compared: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """The terms that the sections use and their definitions, in the order in which a page is read."""
    settings = {name for section in compared for member in section.members for name in member.settings}
    measures = {name for section in compared for name in section.measures}
    yield "member", MEMBER
    yield from ((label(name), words) for name, words in SETTINGS.items() if name in settings)
    yield from ((label(name), words) for name, words in MEASURES.items() if name in measures)
    yield "±", INTERVAL
