"""Members, grids, and what training reports to its caller."""

import copy
import gc
import json
import weakref
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch

from axiswise import data, grid, load, models, objectives, optimizers, train
from axiswise.distributions import Gaussian
from axiswise.errors import AxiswiseError, TrainingIncomplete
from axiswise.objectives import Draw, Trainable
from axiswise.population import Member, _cohort_training
from axiswise.population._cohort import cohorts
from axiswise.population._cohort_loop import cohort_loop
from axiswise.population._device import device_named
from axiswise.population._trained import settings_of_member
from axiswise.population.member import Choices
from axiswise.schedules import Cosine

LINEAR = models.linear(3, 2)
BETA = objectives.BetaVAE()


def test_a_grid_is_the_product_of_its_choices():
    members = grid(model=LINEAR, objective=[BETA, objectives.BetaVAE(4)], steps=[1, 2], seed=range(3), batch=None)
    assert len(members) == 12
    assert len({member.address for member in members}) == 12
    assert [member.seed for member in members[:4]] == [0, 1, 2, 0]
    assert list(Choices.__annotations__) == [field.name for field in fields(Member)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"seed": [0, 0, 1]}, r"`seed` of the grid has 0 more than once: members that are equal are trained once"),
        ({"objective": [BETA, objectives.BetaVAE(1.0)]}, r"`objective` of the grid has BetaVAE\(beta=1.0\) more than"),
    ],
)
def test_equal_values_of_a_choice_are_told(choices, message):
    with pytest.warns(UserWarning, match=message):
        grid(**{"model": LINEAR, "objective": BETA, "steps": 1, **choices})


def test_what_is_named_last_varies_fastest():
    first = grid(seed=range(2), model=LINEAR, objective=BETA, steps=[1, 2])
    last = grid(model=LINEAR, objective=BETA, steps=[1, 2], seed=range(2))
    assert [(member.seed, member.steps) for member in first] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert [(member.seed, member.steps) for member in last] == [(0, 1), (1, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"model": LINEAR, "objective": BETA, "steps": 1, "seed": []}, "The grid is empty: `seed` has no values"),
        ({"model": LINEAR, "objective": BETA}, "A grid needs `steps`. Got model, objective"),
        ({"model": LINEAR, "objective": BETA, "steps": 1, "seeds": 3}, r"A grid takes the arguments .* Got 'seeds'"),
        ({"model": LINEAR, "objective": BETA, "steps": -1}, "`steps` of a member must be .* at least 0. Got -1"),
        ({"model": LINEAR, "objective": BETA, "steps": 1, "batch": 0}, "`batch` .* at least 1 or None. Got 0"),
        ({"model": LINEAR, "objective": (BETA, BETA), "steps": 1}, "`objective` .* Got a tuple; use a list"),
        ({"model": LINEAR, "objective": BETA, "steps": 1, "seed": -1}, "`seed` .* at least 0. Got -1"),
    ],
)
def test_bad_grids(choices, message):
    with pytest.raises(AxiswiseError, match=message):
        grid(**choices)


@pytest.mark.usefixtures("as_installed")
def test_numbers_of_numpy_are_those_of_python():
    """A member has one address, and rows can be stored, whichever of them it was made with."""
    plain = {"batch": 8, "steps": 5, "history": 2}
    wanted = grid(
        model=models.mlp(3, 2, encoder=(4,)),
        objective=objectives.BetaVAE(4),
        seed=range(3),
        **plain,
        optimizer=optimizers.Adam(lr=0.5),
    )
    found = grid(
        model=models.mlp(np.int64(3), np.int32(2), encoder=(np.int64(4),)),
        objective=objectives.BetaVAE(np.int64(4)),
        seed=np.arange(3),
        **{name: np.int64(value) for name, value in plain.items()},
        optimizer=optimizers.Adam(lr=np.float32(0.5)),
    )
    assert [member.address for member in found] == [member.address for member in wanted]
    assert found == wanted
    assert json.dumps(settings_of_member(found[0])) == json.dumps(settings_of_member(wanted[0]))
    with pytest.raises(AxiswiseError, match=r"`steps` of a member must be a whole .* Got 5\.0\."):
        Member(LINEAR, BETA, steps=np.float64(5))  # pyright: ignore[reportArgumentType]


def test_bad_requests(square):
    with pytest.raises(AxiswiseError, match=r"Expected at least one member to train. Got none"):
        train([], square)
    with pytest.raises(
        AxiswiseError,
        match=r"takes observations of shape \(6,\). Got dataset 'synth_linear' of shape \(3,\).* models.mlp takes any",
    ):
        train(grid(model=models.mlp(6, 2), objective=BETA, steps=1), square)
    last = data.arrays(np.full((4, 8, 6, 3), 2.0))
    with pytest.raises(AxiswiseError, match=r"Got .* of shape \(8, 6, 3\). The channels come first: np.moveaxis"):
        train(grid(model=models.mlp((3, 8, 6), 2), objective=BETA, steps=1), last)
    large = data.arrays(np.full((4, 64, 64, 3), 2.0))
    with pytest.raises(
        AxiswiseError, match=r"Got .* of shape \(64, 64, 3\). The .* Build the model for 3 channels: chan"
    ):
        train(grid(model=models.conv64(latents=2), objective=BETA, steps=1), large)
    grey = data.arrays(np.zeros((4, 8, 6), np.uint8))
    with pytest.raises(AxiswiseError, match=r"Got .* of shape \(8, 6\). A grey image has a channel, too: x\[:, None\]"):
        train(grid(model=models.mlp((1, 8, 6), 2), objective=BETA, steps=1), grey)
    with pytest.raises(AxiswiseError, match=r"`device` must name a device of this machine .* Got 'abacus'"):
        train(grid(model=LINEAR, objective=BETA, steps=1), square, device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(AxiswiseError, match="Got 'cuda'"):
            device_named("cuda")


def test_history_is_recorded_at_the_interval_and_reported(square):
    entries = []
    member = Member(models.linear(3, 2), objectives.BetaVAE(0.5), steps=25, batch=8, history=10)
    trained = train([member], square, on_history=entries.append).trained[0]
    assert trained.history["step"].tolist() == [0, 10, 20, 24]
    assert [entry.step for entry in entries] == [0, 10, 20, 24]
    assert set(trained.history) == {
        *("step", "loss", "reconstruction", "kl", "kl_per_latent", "mean_square", "variance", "log_variance")
    }
    np.testing.assert_allclose(
        trained.history["loss"], trained.history["reconstruction"] + 0.5 * trained.history["kl"], rtol=1e-6
    )
    np.testing.assert_allclose(trained.history["kl"], trained.history["kl_per_latent"].sum(-1), rtol=1e-5)
    assert entries[0].member == member
    assert entries[0].terms["variance"] == trained.history["variance"][0].tolist()


def test_progress_counts_every_step_of_every_member(square):
    class Counter:
        total = done = 0
        ended = False

        def begin(self, title, total):
            self.total = total

        def advance(self, units):
            self.done += units

        def end(self):
            self.ended = True

    counter = Counter()
    train(grid(model=LINEAR, objective=BETA, steps=[7, 11], seed=range(3)), square, progress=counter)
    assert (counter.total, counter.done, counter.ended) == (54, 54, True)


def test_the_same_member_given_twice_is_trained_once(square):
    entries = []
    member = Member(LINEAR, BETA, steps=3, history=1)
    trained = train([member, member], square, on_history=entries.append)
    assert len(trained) == 2
    assert len(entries) == 3


def test_cohorts_mix_hyperparameters_but_not_programs():
    cpu = torch.device("cpu")
    mixed = [
        Member(LINEAR, objectives.BetaVAE(0.1), steps=5, seed=0, optimizer=optimizers.Adam(lr=1e-3)),
        Member(LINEAR, objectives.BetaVAE(4.0), steps=5, seed=1, optimizer=optimizers.Adam(lr=1e-2)),
    ]
    assert [len(cohort.members) for cohort in cohorts(mixed, cpu)] == [2]
    different = [
        mixed[0],
        Member(LINEAR, objectives.BetaVAE(0.1), steps=6),
        Member(LINEAR, objectives.BetaVAE(0.1), steps=5, batch=7),
        Member(LINEAR, objectives.BetaVAE(0.1), steps=5, optimizer=optimizers.AdaGrad()),
        Member(models.linear(3, 1), objectives.BetaVAE(0.1), steps=5),
    ]
    assert [len(cohort.members) for cohort in cohorts(different, cpu)] == [1] * 5
    many = grid(model=LINEAR, objective=BETA, steps=1, seed=range(130))
    assert [len(cohort.members) for cohort in cohorts(many, cpu)] == [64, 64, 2]
    conv = grid(model=models.conv64(), objective=BETA, steps=1, seed=range(2))
    assert [len(cohort.members) for cohort in cohorts(conv, cpu)] == [1, 1]


@pytest.mark.parametrize(
    ("model", "batch", "count", "device", "threads"),
    [
        (LINEAR, 64, 32, "cpu", 1),
        (models.mlp(3, 2, encoder=(128, 128), decoder=(128, 128)), 64, 4, "cpu", 1),
        (models.mlp(3, 2, encoder=(128, 128), decoder=(128, 128)), 64, 32, "cpu", 8),
        (models.mlp(1000, 2, encoder=(1000,), decoder=(1000,)), 64, 1, "cpu", 8),
        (models.conv64(), 1, 1, "cpu", 8),  # a weight of a convolution is used at every pixel
        (LINEAR, None, 32, "cpu", 8),  # a batch of all observations, however many
        (LINEAR, 64, 32, "cuda", 8),
    ],
)
def test_cohorts_with_light_steps_have_one_thread(model, batch, count, device, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    members = grid(model=model, objective=BETA, steps=1, batch=batch, seed=range(count))
    assert {cohort.threads for cohort in cohorts(members, torch.device(device))} == {threads}


def test_a_population_may_have_different_models():
    square = data.synth_linear(samples=100)
    members = grid(model=[models.linear(3, 2), models.mlp(3, 2)], objective=BETA, steps=2, seed=range(2))
    order = [members[0], members[2], members[1], members[3]]
    trained = train(order, square)
    x = square.x(torch.arange(5))
    codes = trained.encode(x).mean
    for position in range(4):
        model = trained[position]
        assert torch.allclose(model.encode(x).mean, codes[position], atol=1e-6)
        assert torch.allclose(model.decode(codes[position]), trained.decode(codes)[position], atol=1e-6)
    assert torch.allclose(trained.decode(codes[0])[0], trained.decode(codes)[0])
    with pytest.raises(AxiswiseError, match=r"`x` must have shape \(n, 3\). Got \(5, 2\)"):
        trained.encode(x[:, :2])
    wider = train(grid(model=[models.linear(3, 2), models.linear(3, 1)], objective=BETA, steps=0), square)
    with pytest.raises(AxiswiseError, match=r"Members must share posterior and number of latents"):
        wider.encode(x)


def test_training_leaves_torch_as_it_was(square):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    cudnn = torch.backends.cudnn

    def settings():
        return torch.get_num_threads(), cudnn.enabled, cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32

    before, during = settings(), []
    train(grid(model=LINEAR, objective=BETA, steps=3), square, on_history=lambda entry: during.append(settings()))
    assert torch.equal(torch.rand(3), expected)
    assert settings() == before
    # A light step has one thread; the libraries stay on, but exact and deterministic.
    assert during[0] == (1, before[1], True, False, False)


def test_a_trained_linear_vae_reaches_the_optimum_of_probabilistic_pca():
    """The closed form: variances of the posterior are (β/2)/λ for the squared-error loss, λ the data's eigenvalues."""
    square = data.synth_linear(2.0, samples=2000)
    eigenvalues = torch.linalg.eigvalsh(torch.cov(square.x(torch.arange(2000)).double().T)).flip(0)[:2]
    member = Member(
        models.linear(3, 2, likelihood=Gaussian(0.5**0.5)),
        objectives.BetaVAE(0.05),
        steps=3000,
        batch=256,
        optimizer=optimizers.Adam(lr=Cosine(0.05, 0.0, steps=3000)),
    )
    trained = train([member], square, dtype=torch.float64).trained[0]
    variance = torch.from_numpy(trained.history["variance"][-10:].mean(0)).sort().values
    assert torch.allclose(variance, 0.025 / eigenvalues, rtol=0.03)


@dataclass(frozen=True)
class Failing:
    """A β-VAE whose loss raises for one of its two forms, so that one of two cohorts fails."""

    fails: bool

    def networks(self, model):
        return Trainable(model.modules())

    def draws(self, batch, latents):
        return {"noise": Draw((batch, latents))}

    def loss(self, networks, batch, draws, step):
        if self.fails:
            raise KeyError("no such latent")
        return objectives.BetaVAE().loss(networks, batch, draws, step)


def test_a_cohort_that_fails_is_reported_and_the_others_are_trained(square, tmp_path):
    members = grid(model=models.linear(3, 2), objective=[Failing(True), Failing(False)], steps=3, seed=range(2))
    with pytest.raises(TrainingIncomplete, match=r"failed for 2 of 4 members: KeyError: 'no such latent'") as caught:
        train(members, square, out=tmp_path)
    (failure,) = caught.value.failures
    assert failure.members == tuple(member.address for member in members[:2])
    assert "no such latent" in failure.traceback
    assert caught.value.population.members == tuple(members[2:])
    assert sorted(path.stem for path in (tmp_path / "members").iterdir()) == sorted(m.address for m in members[2:])
    with pytest.raises(TrainingIncomplete, match="2 of 2") as caught:
        train(members[:2], square)
    assert caught.value.population is None
    assert "The others" not in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    sent = copy.copy(caught.value)  # rebuilt from its arguments, as another process would
    assert (str(sent), sent.failures) == (str(caught.value), caught.value.failures)


def test_a_cohort_that_failed_holds_no_memory(square, monkeypatch):
    held = []
    made = cohort_loop

    def remembered(*arguments):
        held.append(weakref.ref(loop := made(*arguments)))
        return loop

    monkeypatch.setattr(_cohort_training, "cohort_loop", remembered)
    members = grid(model=LINEAR, objective=[Failing(True), Failing(False)], steps=1)
    entries = []

    def first_is_gone(entry):
        gc.collect()
        entries.append(held[0]() is None)

    with pytest.raises(TrainingIncomplete):
        train(members, square, on_history=first_is_gone)
    assert entries == [True]


def test_what_a_callback_raises_ends_the_training_and_is_no_failure(square, tmp_path):
    def stop(entry):
        raise LookupError("enough")

    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=3, seed=range(2))
    with pytest.raises(LookupError, match="enough"):
        train(members, square, on_history=stop, out=tmp_path)
    assert len(list((tmp_path / "cohorts").iterdir())) == 1


def test_a_population_remembers_its_folder(square, tmp_path):
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(2))
    population = train(members, square, out=tmp_path)
    assert population.folder == load(tmp_path).to("cpu").folder == tmp_path
    assert train(members, square).folder is None


def test_modules_are_built_once_to_be_checked_and_once_to_be_trained(square, monkeypatch):
    built = []
    networks = objectives.FactorVAE.networks
    monkeypatch.setattr(objectives.FactorVAE, "networks", lambda self, model: built.append(1) or networks(self, model))
    members = grid(model=LINEAR, objective=objectives.FactorVAE(), steps=1, seed=range(16))
    train(members, square)
    assert len(built) == 2
