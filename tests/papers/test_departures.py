"""What claims say of their departures from the papers, against what their studies train."""

from functools import cache

import pytest

from axiswise.models import Custom
from axiswise.schedules import Cosine
from axiswise_papers._claim import OURS
from axiswise_papers.ledger import CLAIMS, STUDIES
from axiswise_papers.rolinek2019.studies import synth_nonlinear

PARTS = {f"{claim.id}, {part.study}": part for claim in CLAIMS for part in claim.trained}
PAPERS = [name for name, part in PARTS.items() if OURS not in part.departures]
SCALED = ("steps", "β", "rate", "batch", "seeds")


@cache
def study(name, scale):
    return STUDIES[name](scale)


def runs_of(part, scale, where=""):
    """The runs that a claim needs, of those that a departure is about."""
    groups = [where] if where else part.runs
    return [run for run in study(part.study, scale) if not groups or run.name.partition("/")[0] in groups]


def members_of(part, scale, where=""):
    return [member for run in runs_of(part, scale, where) for member in run.members if member.steps]


def listed(values):
    *most, last = values
    return f"{', '.join(most)} and {last}" if most else last


def trained(part, scale, setting, where=""):
    """A setting of the members that a study trains, in words."""
    members = members_of(part, scale, where)
    if setting == "seeds":
        return f"{max(len({member.seed for member in run.members}) for run in runs_of(part, scale, where))}"
    if setting == "β":
        found = {member.objective.beta for member in members if hasattr(member.objective, "beta")}
        return listed([f"{beta:g}" for beta in sorted(found)]) if found else ""
    if setting == "rate":
        return listed(sorted({_rate(member.optimizer.lr) for member in members}))
    found = {getattr(member, setting) for member in members}
    return "all" if found == {None} else listed([f"{value:,}" for value in sorted(found)])


def _rate(lr):
    return f"{lr.start:g}, cosine to {lr.end:g}" if isinstance(lr, Cosine) else f"{lr:g}"


def groups_of(part):
    """What departures may be about: all runs, or those whose names share a beginning, as far as the paper has them."""
    both = ({run.name.partition("/")[0] for run in runs_of(part, scale)} for scale in ("default", "paper"))
    return sorted(set.intersection(*both))


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("setting", SCALED)
def test_every_difference_to_the_papers_scale_is_stated(name, setting):
    part = PARTS[name]
    for group in groups_of(part):
        ours, theirs = (trained(part, scale, setting, group) for scale in ("default", "paper"))
        stated = [each for each in part.departures if each.setting == setting and each.where in ("", group)]
        if ours != theirs:
            assert stated, f"{group}: {setting} {ours} instead of {theirs}"
        for each in stated:
            assert each.lasting == (ours == theirs)


@pytest.mark.parametrize("name", PAPERS)
def test_what_is_stated_is_what_is_trained(name):
    part = PARTS[name]
    for each in part.departures:
        if each.setting in SCALED and not each.here.startswith("a "):
            ours = trained(part, "default", each.setting, each.where)
            assert each.here.partition(" of 256")[0] == ours, each
            if each.paper[0].isdigit() and not each.lasting:
                assert each.paper.partition(" if ")[0] == trained(part, "paper", each.setting, each.where), each


@pytest.mark.parametrize("name", PARTS)
def test_only_training_that_is_shorter_is_called_so(name):
    part = PARTS[name]
    ours, theirs = ([member.steps for member in members_of(part, scale)] for scale in ("default", "paper"))
    if OURS in part.departures:  # there is nothing that it could be shorter than
        assert not part.shorter_at("default")
    else:
        assert part.shorter_at("default") == (max(ours) < max(theirs))
        assert not part.shorter_at("paper")


def test_networks_transitions_and_data_are_the_stated_ones():
    for name, part in PARTS.items():
        stated = {each.setting: each for each in part.departures}
        members = members_of(part, "default")
        if not name.startswith("zietlow") or OURS in part.departures or "small_attack" in part.study:
            continue
        assert stated["network"].here == "kernels of 4 in all layers"
        assert {member.model.network.late_kernel for member in members} == {4}
        pairs = {
            arm
            for run in runs_of(part, "default")
            if getattr(run.members[0].objective, "needs", None)
            for arm in [run.name.partition("/")[0]]
            if run.members[0].objective.needs.pairs
        }
        words = {"slow-vae": "SlowVAE", "pcl": "PCL"}
        if pairs and not part.runs:
            assert (
                stated["transitions"].here
                == f"Laplace of rate 1, for {' and '.join(words[arm] for arm in words if arm in pairs)}"
            )
        assert ("data" in stated) == ("sprites" not in part.study and part.study != "zietlow2021.table_1")


def test_likelihoods_are_the_stated_ones():
    kinds = {"Bernoulli": "Bernoulli", "Gaussian of variance 1": "Gaussian"}
    checked = 0
    for part in PARTS.values():
        for each in part.departures:
            if each.setting == "likelihood":
                found = {member.model.likelihood for member in members_of(part, "default")}
                assert {type(one).__name__ for one in found} == {kinds[each.here]}
                assert all(getattr(one, "scale", 1.0) == 1.0 for one in found)
                checked += 1
    assert checked == 6


def test_the_bent_square_and_the_small_discs_are_the_stated_ones():
    for part in PARTS.values():
        for each in part.departures:
            if each.here == "bent by standard normal weights":
                assert {run.dataset for run in runs_of(part, "default", each.where)} == {synth_nonlinear}
            if each.here == "two layers of 64 hyperbolic tangents":
                (network,) = {member.model.network for member in members_of(part, "default")}
                assert (network.encoder, network.decoder, set(network.activations)) == ((64, 64), (64, 64), {"Tanh"})
            if each.setting == "network":
                assert not any(isinstance(member.model.network, Custom) for member in members_of(part, "default"))
