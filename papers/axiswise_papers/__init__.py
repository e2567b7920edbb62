"""Five papers on disentanglement in variational autoencoders, reproduced with axiswise.

A folder for each paper holds its studies, claims, figures, printed numbers and exact checks. No paper imports another,
and all of them use public names of axiswise alone. `ledger` brings their studies and claims together; the commands
`axiswise verify` and `axiswise gallery` run, judge and show them.
"""

__version__ = "0.2.0.dev0"
