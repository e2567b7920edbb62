"""The errors for arguments of the wrong type.

The test run checks every signature and would answer first, so these calls are made in a process without that check, as
callers have it.
"""

import json
import subprocess
import sys

import pytest

IMPORTS = """
import json
from torch import nn
from axiswise.distributions import Gaussian
from axiswise.models import conv64, linear, mlp
from axiswise.optimizers import AdaGrad, Adam
from axiswise.schedules import Cosine, Linear
from axiswise.objectives import DIPVAE, BetaVAE, DeterministicELBO
from axiswise.statistics import compare_paired
from axiswise.stopping import Plateau
"""

EXPECTED = {
    "Gaussian(0)": "`scale` of a Gaussian likelihood must be a positive number. Got 0.",
    "BetaVAE('4')": "`beta` of BetaVAE must be a finite number of at least 0.0. Got '4'.",
    "BetaVAE(None)": "`beta` of BetaVAE must be a finite number of at least 0.0. Got None.",
    "DIPVAE(variant='III')": '`variant` of DIPVAE must be "I" or "II". Got \'III\'.',
    "DeterministicELBO(hessian=None)": '`hessian` of DeterministicELBO must be "gauss-newton" or "full". Got None.',
    "Plateau('loss', 1.5)": "`patience` of Plateau must be a whole number of at least 1. Got 1.5.",
    "Plateau('loss', True)": "`patience` of Plateau must be a whole number of at least 1. Got True.",
    "Adam(lr='fast')": "`lr` of Adam must be a finite number of at least 0.0. Got 'fast'.",
    "Adam(beta2=[0.9])": "`beta2` of Adam must be a finite number of at least 0.0 and below 1.0. Got [0.9]. For "
    "several, give `grid` a list of Adams, one for each beta2.",
    "AdaGrad(eps=None)": "`eps` of AdaGrad must be a finite number of at least 0.0. Got None.",
    "Linear(0, 1, steps=2.5)": "`steps` of Linear must be a whole number of at least 1. Got 2.5.",
    "Cosine(0, 1, steps='10')": "`steps` of Cosine must be a whole number of at least 1. Got '10'.",
    "linear(3, 2.0)": "`latents` must be a whole number of at least 1. Got 2.0.",
    "linear(2.5, 2)": "`inputs` must be a whole number of at least 1 or a sequence of whole numbers. Got 2.5.",
    "linear('3', 2)": "`inputs` must be a whole number of at least 1 or a sequence of whole numbers. Got '3'.",
    "mlp(3, 2, encoder=(5, '4'))": "`encoder[1]` must be a whole number of at least 1. Got '4'.",
    "mlp(3, 2, activation=None)": "`activation` must be a function, text or a sequence of values. Got None.",
    "conv64(channels=1.0)": "`channels` must be a whole number of at least 1. Got 1.0.",
    "compare_paired([1.0, 2.0], {0: 1.0})": "`a` must be values by seed, which say what is paired. Got list; take them "
    "from `grouped`, or use `compare` for groups that are not matched.",
    "compare_paired({0: 1.0}, (1.0,))": "`b` must be values by seed, which say what is paired. Got tuple; take them "
    "from `grouped`, or use `compare` for groups that are not matched.",
    # And what is right, though the signature is stricter: whole numbers for floats, lists for tuples.
    "Gaussian(1)": None,
    "BetaVAE(Linear(0, 4, steps=10))": None,
    "mlp([1, 8, 8], 2, encoder=[5], decoder=[5])": None,
}

PROGRAM = f"""{IMPORTS}
def outcome(call):
    try:
        eval(call)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None
print(json.dumps({{call: outcome(call) for call in {list(EXPECTED)!r}}}))
"""


@pytest.fixture(scope="module")
def outcomes():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.parametrize("call", EXPECTED)
def test_says_what_was_expected_and_got(outcomes, call):
    expected = EXPECTED[call]
    assert outcomes[call] == (expected and ["AxiswiseError", expected])
