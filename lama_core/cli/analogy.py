"""`analogy`: solve analogies, score pairs, answer questions, probe models."""

from lama_core.cli import commands, output, queries, runs
from lama_core.probes.analogy.multiple_choice import (
    QuestionAnswer,
    QuestionsAnswer,
    Share,
    analogy_questions,
)


def print_questions(answer: QuestionsAnswer) -> None:
    """Print the share of right answers, by group if there are several, and each question."""
    shares = {
        **{model.name + model.computed: model.shares for model in answer.models},
        "the choice with the most frequent words": answer.frequent,
    }
    output.print_table(
        ("answered by", "questions", "right", "right (%)", "95 % interval"),
        [
            *((name, *_share_cells(by_group[None])) for name, by_group in shares.items()),
            ("a random choice", len(answer.questions), "", output.percent(answer.random), ""),
        ],
        title=f"{answer.dataset.name}, template {answer.request.template}, ranked by the "
        f"{answer.request.normalise} of the log-probabilities",
    )
    if len(answer.groups) > 1:
        output.print_line()
        output.print_table(
            ("group", "questions", *(f"{name}: right (%)" for name in shares)),
            [
                (
                    group or "none",
                    answer.frequent[group].n,
                    *(output.percent(by_group[group].share) for by_group in shares.values()),
                )
                for group in answer.groups
            ],
        )
    output.print_line()
    output.print_table(
        ("question", "stem", "right choice", *(model.name for model in answer.models)),
        [
            (
                number,
                ":".join(question.stem),
                ":".join(question.choices[question.answer]),
                *(_chosen_cell(model.answers[number - 1]) for model in answer.models),
            )
            for number, question in enumerate(answer.questions, start=1)
        ],
    )


def _share_cells(share: Share) -> tuple[object, ...]:
    interval = share.interval
    between = f"{output.percent(interval.low)} to {output.percent(interval.high)}"
    return share.n, share.n_right, output.percent(share.share), between


def _chosen_cell(answer: QuestionAnswer) -> str:
    """Return a model's choice, with a tick if it is right, else the rank of the right choice."""
    chosen = ":".join(answer.chosen.pair)
    return f"{chosen} ✓" if answer.is_right else f"{chosen} (right one: rank {answer.rank})"


questions = commands.make(
    analogy_questions,
    print_questions,
    "analogy questions --dataset sat --model minilm-mlm",
)
analogy = commands.make_group("analogy")
for command in (queries.solve, queries.score, questions, runs.analogy_probe):
    analogy.command(command)
