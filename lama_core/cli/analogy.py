"""`analogy`: solve analogies, score pairs, answer questions, probe models."""

from lama_core.cli import commands, output, queries, runs
from lama_core.cli.output import percent
from lama_core.probes.analogy.multiple_choice import QuestionsAnswer, analogy_questions


def print_questions(answer: QuestionsAnswer) -> None:
    """Print the share of right answers, by group if there are several, and each question."""
    shares = {
        **{model.name + model.computed: model.shares for model in answer.models},
        "the choice with the most frequent words": answer.frequent,
    }
    output.print_table(
        ("answered by", "questions", "right", "right (%)", "95 % interval"),
        [
            *(
                (
                    name,
                    share.n,
                    share.n_right,
                    percent(share.share),
                    f"{percent(share.interval.low)} to {percent(share.interval.high)}",
                )
                for name, share in ((name, found[None]) for name, found in shares.items())
            ),
            ("a random choice", len(answer.questions), "", percent(answer.random), ""),
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
                    *(percent(by_group[group].share) for by_group in shares.values()),
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
                *(
                    f"{':'.join(chosen.chosen.pair)} "
                    + ("✓" if chosen.is_right else f"(right one: rank {chosen.rank})")
                    for chosen in (model.answers[number - 1] for model in answer.models)
                ),
            )
            for number, question in enumerate(answer.questions, start=1)
        ],
    )


questions = commands.make(
    analogy_questions,
    print_questions,
    "analogy questions --dataset sat --model minilm-mlm",
)
analogy = commands.make_group("analogy")
for command in (queries.solve, queries.score, questions, runs.analogy_probe):
    analogy.command(command)
