"""When a member has been trained enough: rules that read its validation so far.

``train(members, dataset, validation=held_out, every=500, stop=Plateau("elbo", patience=5))`` stops each member by
itself. A rule is a frozen dataclass with one method, so that one of your own is as good as these.
"""

from axiswise.stopping.plateau import Plateau
from axiswise.stopping.rule import StoppingRule

__all__ = ["Plateau", "StoppingRule"]
