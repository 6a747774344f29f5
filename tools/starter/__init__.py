"""The facts and analogies that come with the project: how they are built, and from what.

`python -m tools.starter` writes `assets/datasets/starter` and
`assets/datasets/starter-analogies` again, byte for byte, from the hand-written lists beside this
file, WordNet 3.0 and the packages named in its modules.
"""
