"""Small changes of a dataset that make VAEs entangle it: choose whom to foster, learn the change, judge it."""

from axiswise.attack.arms import arms, learning_for, to_choose_from
from axiswise.attack.attack import Attack, attack
from axiswise.attack.bilevel import Learning
from axiswise.attack.choose import Choice, Ranked, Ranking, choose, table
from axiswise.attack.judge import Arms, Verdict, judge, judgement, verdicts
from axiswise.attack.learn import Learned, check_attack, learn
from axiswise.attack.manipulation import Manipulation, Renderer, load_change, manipulation, save_change

__all__ = [
    "Arms",
    "Attack",
    "Choice",
    "Learned",
    "Learning",
    "Manipulation",
    "Ranked",
    "Ranking",
    "Renderer",
    "Verdict",
    "arms",
    "attack",
    "check_attack",
    "choose",
    "judge",
    "judgement",
    "learn",
    "learning_for",
    "load_change",
    "manipulation",
    "save_change",
    "table",
    "to_choose_from",
    "verdicts",
]
