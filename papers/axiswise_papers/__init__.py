"""Five papers on disentanglement in variational autoencoders, reproduced with axiswise.

Each paper has a folder with its studies, claims, figures, printed numbers and exact checks. No paper imports another,
and all of them use only public names of axiswise. `ledger` collects their studies and claims; the commands
`axiswise verify` and `axiswise gallery` run, judge and show them.
"""

__version__ = "0.2.0.dev0"
