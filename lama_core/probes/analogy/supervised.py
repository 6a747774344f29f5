"""The supervised probe: does a query pair with a candidate pair make a true analogy?

A multi-layer perceptron (one hidden layer, ReLU, Adam) reads the embeddings and is trained on
one half of a relation's pairs, tested on the other. Source: Rezaee and Camacho-Collados, sections
2.3 and 2.4, which leave the hidden size, the seeds and the training open: here scikit-learn's
`MLPClassifier` on standardised features, at most 100 epochs, once for each seed.

Departure: Supervised analogy probes
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HIDDEN = 100
EPOCHS = 100
N_SEEDS = 5


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows for a classifier. features: float32 [row, dim]. labels: bool [row], true analogies."""

    features: NDArray[np.float32]
    labels: NDArray[np.bool_]


def classify(
    train: Labelled, test: Labelled, *, seeds: Sequence[int], hidden: int = HIDDEN
) -> NDArray[np.bool_]:
    """Whether the classifier of each seed is right about each test row, bool [seed, row].

    The same rows and seeds answer the same.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    centre = train.features.mean(axis=0)
    width = train.features.std(axis=0)
    width = np.where(width < 1e-6, 1, width).astype(np.float32)
    read, asked = ((part.features - centre) / width for part in (train, test))
    right = np.empty((len(seeds), len(test.labels)), dtype=bool)
    for number, seed in enumerate(seeds):
        network = MLPClassifier((hidden,), max_iter=EPOCHS, random_state=seed, batch_size="auto")
        with warnings.catch_warnings():
            # Stopping at EPOCHS is the setting, not a fault.
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(read, train.labels)
        right[number] = network.predict(asked) == test.labels
    return right
