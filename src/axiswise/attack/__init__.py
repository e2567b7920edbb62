"""Small changes of a dataset that make VAEs entangle it: choose members, learn the change, judge it."""

from axiswise.attack._bilevel import Learning
from axiswise.attack.arms import (
    DSPRITES,
    SHAPES3D,
    arms,
    learning_for,
    objectives_of,
    published_weights,
    to_choose_from,
)
from axiswise.attack.attack import Attack, attack
from axiswise.attack.choose import Choice, Ranked, choose, table
from axiswise.attack.judge import VARIANTS, judge, judgement, verdicts
from axiswise.attack.learn import Learned, learn
from axiswise.attack.manipulation import Manipulation, load_change, manipulation, save_change

__all__ = [
    "DSPRITES",
    "SHAPES3D",
    "VARIANTS",
    "Attack",
    "Choice",
    "Learned",
    "Learning",
    "Manipulation",
    "Ranked",
    "arms",
    "attack",
    "choose",
    "judge",
    "judgement",
    "learn",
    "learning_for",
    "load_change",
    "manipulation",
    "objectives_of",
    "published_weights",
    "save_change",
    "table",
    "to_choose_from",
    "verdicts",
]
