"""Building the starter facts and analogies that come with the project.

`python -m tools.starter` rebuilds `assets/datasets/starter` and
`assets/datasets/starter-analogies`, byte for byte, from the hand-written lists in this folder,
WordNet 3.0 and the packages named in its modules.
"""
