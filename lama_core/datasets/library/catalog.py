"""The published sources, as data: address, licence, size, citation, checksum.

Addresses are the authors' own. A size or checksum is None where none is published; the checksum of
the first complete fetch is then kept and later fetches must match it (see `transfer.py`). That
holds for LPAQA, ParaRel and the Google analogies, too: their authors published no release, so the
address gives what stands there on the day of the first fetch, and a change is refused afterwards.
"""

from dataclasses import dataclass

from lama_core.datasets.base import Content
from lama_core.errors import UserError, did_you_mean

_GB = 1 << 30


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to fetch. size: bytes, approximate unless a checksum stands beside it.

    max_bytes: a larger answer is refused. by_hand: what to do with a file that was got another way.
    """

    url: str
    name: str
    size: int | None = None
    sha256: str | None = None
    sha1: str | None = None
    max_bytes: int = _GB
    by_hand: str = "use `data import`"


@dataclass(frozen=True, slots=True)
class Source:
    """A published source.

    max_unpacked_bytes: what its archives may unpack to.
    needs: the source whose templates it uses, which is fetched first; it can also be computed from
        that one, without its own file.
    """

    name: str
    title: str
    kind: Content
    licence: str
    citation: str
    homepage: str
    files: tuple[SourceFile, ...] = ()
    max_unpacked_bytes: int = 2 * _GB
    needs: str | None = None
    note: str = ""

    @property
    def size(self) -> int | None:
        """Bytes to fetch, or None where a file's size isn't known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


LAMA_VOCABULARY = "common_vocab_cased.txt"

SOURCES: tuple[Source, ...] = (
    Source(
        "lama",
        "LAMA: T-REx, Google-RE, ConceptNet and SQuAD, with the common vocabulary",
        "facts",
        "CC BY-NC 4.0",
        "Petroni et al. 2019, Language Models as Knowledge Bases?, EMNLP, "
        "https://aclanthology.org/D19-1250/",
        "https://github.com/facebookresearch/LAMA",
        (
            SourceFile("https://dl.fbaipublicfiles.com/LAMA/data.zip", "data.zip", 74_600_000),
            SourceFile(
                "https://dl.fbaipublicfiles.com/LAMA/common_vocab_cased.txt",
                LAMA_VOCABULARY,
                161_894,
                max_bytes=10_000_000,
            ),
        ),
    ),
    Source(
        "lama-uhn",
        "LAMA-UHN: LAMA without facts that names give away",
        "facts",
        "CC BY-NC 4.0 (as LAMA)",
        "Poerner et al. 2020, E-BERT: Efficient-Yet-Effective Entity Embeddings for BERT, "
        "Findings of EMNLP, https://aclanthology.org/2020.findings-emnlp.71/",
        "https://github.com/facebookresearch/LAMA/blob/main/scripts/create_lama_uhn.py",
        (
            SourceFile(
                "https://www.cis.uni-muenchen.de/~poerner/blobs/e-bert/LAMA_UHN.zip",
                "LAMA_UHN.zip",
            ),
        ),
        needs="lama",
        note="It uses LAMA's templates, so LAMA is fetched with it. With --compute it is computed "
        "from LAMA instead: the substring filter, and with --guesser MODEL the name filter too.",
    ),
    Source(
        "negated-lama",
        "Negated LAMA: LAMA with negated templates and sentences",
        "facts",
        "CC BY-NC 4.0",
        "Kassner and Schütze 2020, Negated and Misprimed Probes for Pretrained Language Models, "
        "ACL, https://aclanthology.org/2020.acl-main.698/",
        "https://github.com/facebookresearch/LAMA",
        (
            SourceFile(
                "https://dl.fbaipublicfiles.com/LAMA/negated_data.tar.gz",
                "negated_data.tar.gz",
                74_600_000,
            ),
        ),
    ),
    Source(
        "lpaqa",
        "LPAQA: mined and paraphrased prompts with weights, and training pairs",
        "prompts",
        "not stated in its repository",
        "Jiang et al. 2020, How Can We Know What Language Models Know?, TACL 8, "
        "https://aclanthology.org/2020.tacl-1.28/",
        "https://github.com/jzbjyb/LPAQA",
        (
            SourceFile(
                "https://github.com/jzbjyb/LPAQA/archive/HEAD.zip", "lpaqa.zip", max_bytes=_GB // 4
            ),
        ),
    ),
    Source(
        "pararel",
        "ParaRel: paraphrase patterns of 38 relations, and their facts",
        "facts",
        "MIT",
        "Elazar et al. 2021, Measuring and Improving Consistency in Pretrained Language Models, "
        "TACL 9, https://aclanthology.org/2021.tacl-1.60/",
        "https://github.com/yanaiela/pararel",
        (
            SourceFile(
                "https://github.com/yanaiela/pararel/archive/HEAD.zip",
                "pararel.zip",
                max_bytes=_GB // 4,
            ),
        ),
    ),
    Source(
        "bear",
        "BEAR: facts with an answer space for each relation",
        "facts",
        "not stated in its repository (CC BY-SA 4.0 as its authors' dataset card says)",
        "Wiland et al. 2024, BEAR: A Unified Framework for Evaluating Relational Knowledge in "
        "Causal and Masked Language Models, Findings of NAACL, https://arxiv.org/abs/2404.04113",
        "https://github.com/lm-pub-quiz/BEAR",
        (
            SourceFile(
                "https://github.com/lm-pub-quiz/BEAR/archive/"
                "725b4e3139d0a5fdf914b0419ba744273dddc689.zip",
                "bear.zip",
                max_bytes=_GB // 4,
            ),
            SourceFile(
                "https://raw.githubusercontent.com/lm-pub-quiz/BEAR/"
                "ace91fd2c568f0814f6264b7f84f1b2b2eb21cea/relation_info.json",
                "relation_info.json",
                3_211,
                max_bytes=1_000_000,
            ),
        ),
        note="Its archive holds the larger BEAR-big, too: unpack it and `data import` that folder.",
    ),
    Source(
        "bats",
        "BATS 3.0, the Bigger Analogy Test Set",
        "analogies",
        "CC BY 4.0 (as its authors' dataset card says)",
        "Gladkova et al. 2016, Analogy-based detection of morphological and semantic relations "
        "with word embeddings, NAACL Student Research Workshop, https://aclanthology.org/N16-2002/",
        "https://vecto.space/projects/BATS/",
        (
            SourceFile(
                "https://vecto-data.s3-us-west-1.amazonaws.com/BATS_3.0.zip",
                "BATS_3.0.zip",
                sha1="bf94d47884be9ea83af369beeea7499ed25dcf0d",
                max_bytes=20_000_000,
            ),
        ),
        max_unpacked_bytes=100_000_000,
    ),
    Source(
        "google-analogies",
        "The Google analogy test set",
        "analogies",
        "Apache-2.0 (as word2vec)",
        "Mikolov et al. 2013, Efficient Estimation of Word Representations in Vector Space, "
        "https://arxiv.org/abs/1301.3781",
        "https://github.com/tmikolov/word2vec",
        (
            SourceFile(
                "https://raw.githubusercontent.com/tmikolov/word2vec/master/questions-words.txt",
                "questions-words.txt",
                603_955,
                max_bytes=10_000_000,
            ),
        ),
        max_unpacked_bytes=10_000_000,
    ),
)


def source(name: str) -> Source:
    """The published source called `name`. Raises UserError, with the nearest name."""
    for candidate in SOURCES:
        if candidate.name == name:
            return candidate
    names = [candidate.name for candidate in SOURCES]
    hint = did_you_mean(name, names) or f"; known: {', '.join(names)}"
    raise UserError(f"there is no published source {name!r}{hint}")


def is_published(name: str) -> bool:
    """Whether `name` is one of the published sources."""
    return any(candidate.name == name for candidate in SOURCES)
