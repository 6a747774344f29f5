"""The model card in Markdown: training data, recipe and evaluation."""

from collections.abc import Mapping, Sequence

from lama_core.rounding import fixed, percent
from tools.training.corpus.build import TrainingCorpus
from tools.training.evaluate import HeldOut
from tools.training.facts import RelationScore
from tools.training.train import Settings

_STATED = {True: "co-occur in a training passage", False: "don't"}
# `trained_on` in the model catalogue names these sources.
STARTER = (
    "Some of the starter facts come from databases that are also sources of this text. A right "
    "answer to them shows what the model remembers of its training text. `results` prints their "
    "number, and P@1 on them and on the others; `results slices` has P@1 by origin, and by "
    "whether the pair and the wording were seen in training (`data find-cooccurring` searches the "
    "text for both)."
)


def make_card(
    *,
    name: str,
    base: str,
    settings: Settings,
    corpus: TrainingCorpus,
    held_out: Mapping[str, HeldOut],
    relations: Sequence[RelationScore],
    by_corpus: Sequence[tuple[bool, int, float]],
    answers: Mapping[str, Sequence[str]],
) -> str:
    """Return the text of the card; sections without results are omitted."""
    parts = [
        f"# {name}",
        f"A masked language model: the encoder {base} with a new masked-LM head, both trained "
        "with the masked-LM loss. It loads with `AutoModelForMaskedLM.from_pretrained`.",
        "## Recipe",
        _recipe(settings),
        "## Corpus",
        _table(
            ["source", "licence", "share", "passages", "words", "held out"],
            [
                [
                    s.title,
                    s.licence,
                    f"{percent(s.share)} %",
                    f"{s.n_passages:,}",
                    f"{s.n_words:,}",
                    f"{s.n_held_out:,}",
                ]
                for s in corpus.summary
            ],
        ),
        f"SHA-256 of the training text: `{corpus.digest}`.",
        STARTER,
    ]
    if held_out:
        parts += [
            "## Held-out text",
            "In each passage 15 % of the tokens (rounded, at least one), drawn uniformly, are "
            "replaced by [MASK]; loss is the mean cross-entropy in natural logarithms.",
            _table(
                ["text", "loss", "accuracy", "hidden tokens"],
                [
                    [text, fixed(s.loss, 3), fixed(s.accuracy, 3), f"{s.n_hidden:,}"]
                    for text, s in held_out.items()
                ],
            ),
        ]
    if relations:
        parts += [
            "## Facts",
            "P@k in percent with LAMA's templates on its T-REx facts; candidates are the common "
            "vocabulary in lower case, other valid objects are not removed.",
            _table(
                ["relation", "facts", "excluded", "P@1", "P@10"],
                [
                    [
                        s.relation,
                        f"{s.n_facts:,}",
                        f"{s.n_excluded:,}",
                        percent(s.p_at_1),
                        percent(s.p_at_10),
                    ]
                    for s in relations
                ],
            ),
        ]
        parts += [
            f"The subject and object of {n:,} of these facts {_STATED[stated]}; P@1 on them is "
            f"{percent(p_at_1)}."
            for stated, n, p_at_1 in by_corpus
        ]
    parts += [
        "## Answers",
        _table(["text", "best five"], [[text, ", ".join(best)] for text, best in answers.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _recipe(s: Settings) -> str:
    m = s.masking
    return (
        f"{s.steps:,} steps of about {s.tokens_per_batch:,} tokens, passages of at most "
        f"{s.max_length} tokens, seed {s.seed}, {s.precision}. AdamW (betas 0.9 and 0.98, weight "
        f"decay {s.weight_decay:g}, gradient norm at most {s.clip_norm:g}), peak learning rate "
        f"{s.learning_rate:g} for the encoder and {s.head_learning_rate:g} for the head, rising "
        f"over {s.warmup_steps:,} steps, falling linearly to 0 over the last {s.decay_steps:,}; "
        f"dropout {s.dropout:g}. In each passage {100 * m.rate:.0f} % of the tokens are masked "
        f"(rounded, at least one), in {100 * m.whole_word_share:.0f} % of the passages as whole "
        "words; function words, content words and names are drawn with weights "
        f"{m.weights[0]:g}, {m.weights[1]:g} and {m.weights[2]:g}."
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(str(c).replace('|', '/') for c in line)} |" for line in lines)
