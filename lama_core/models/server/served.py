"""The common attributes of models behind a server."""

from lama_core.candidates.spelling import OpenVocabulary
from lama_core.models.protocols import Kind
from lama_core.models.server.completions import Completions


class ServedModel:
    """A model behind a server; safe to use from several threads.

    identity: a digest of the URL, the model's name and the server's record of it, because remote
    weights can't be hashed.
    """

    kind: Kind = "causal"
    max_tokens = 1 << 20  # unknown: the server refuses a text that is too long
    n_bytes = 0
    precision = "auto"  # the server chooses
    device = "server"

    def __init__(self, name: str, server: Completions, *, identity: str) -> None:
        self.name = name
        self.identity = identity
        self.vocabulary = OpenVocabulary()
        self._server = server
