"""Questions about facts, and prompts made of these questions.

A fact's question is the dataset's, if it has one (PopQA); else the relation's
(`assets/prompts/questions.tsv`), unless the fact has its own template; else a request to complete
the fact's cloze sentence. Examples ("shots") are the questions and answers of other facts of the
relation, drawn with a seed.

Departure: The prompt of PopQA
"""

import csv
import random
from collections.abc import Sequence
from functools import cache
from typing import Literal

from lama_core.datasets import Dataset
from lama_core.errors import UserError
from lama_core.models.protocols import Chat, Message
from lama_core.paths import ASSETS
from lama_core.scoring.blanks import fill
from lama_core.scoring.queries import subject_key
from lama_core.types import Fact, Query, Relation

# How a question is put to a model: through its chat template, as `Question: ... Answer:`, or as is.
PromptFormat = Literal["chat", "question and answer", "plain"]
BRIEFLY = "Answer with a word or a name only."
COMPLETE = "Complete the sentence with one word or name: "
BLANK = "___"
QUESTIONS_FILE = ASSETS / "prompts" / "questions.tsv"
NO_QUESTION = "no question"
MAX_TOKENS = 32  # of an answer


@cache
def questions() -> dict[str, str]:
    """Return relation -> question with `[X]`, for the relations in `questions.tsv`."""
    with QUESTIONS_FILE.open(encoding="utf-8", newline="") as stream:
        return {row["relation"]: row["question"] for row in csv.DictReader(stream, delimiter="\t")}


def question_of(relation: Relation, fact: Fact) -> str:
    """Return the question that asks for a fact's object; empty if there is none."""
    if fact.question:
        return fact.question
    if relation.name in questions() and not fact.templates:
        return questions()[relation.name].replace("[X]", fact.subject)
    if template := "".join(map(fact.template, relation.templates[:1])):
        return completion(fill(template, fact.subject))
    return COMPLETE + fact.sentences[0].replace("[MASK]", BLANK) if fact.sentences else ""


def completion(query: Query) -> str:
    """Return the question that asks to complete a sentence with a blank."""
    return COMPLETE + query.text(BLANK)


def shuffle_facts(dataset: Dataset, relation: Relation, seed: int) -> tuple[Fact, ...]:
    """Return a relation's facts in the order in which `draw_examples` takes them."""
    facts = list(dataset.facts_of(relation.name))
    random.Random(f"{seed}:{relation.name}").shuffle(facts)
    return tuple(facts)


def draw_examples(shuffled: Sequence[Fact], fact: Fact, shots: int) -> tuple[Fact, ...]:
    """Draw examples for a fact's question from other facts of its relation.

    Skips facts with the subject or object of `fact`, and takes the first facts with different
    subjects. Most facts of a relation get the same examples.

    Args:
        shuffled: The relation's facts, as `shuffle_facts` returns them.
        fact: The fact.
        shots: Number of examples.

    Raises:
        UserError: If the relation has too few other facts.
    """
    if not shots:
        return ()
    chosen: dict[str, Fact] = {}
    for one in shuffled:
        key = subject_key(one)
        if key != subject_key(fact) and one.object != fact.object and key not in chosen:
            chosen[key] = one
            if len(chosen) == shots:
                return tuple(chosen.values())
    raise UserError(
        f"{fact.relation} has too few facts for {shots} examples: ask for fewer with --shots."
    )


def make_prompt(
    question: str,
    examples: Sequence[tuple[str, str]],
    how: PromptFormat,
    *,
    briefly: bool = True,
) -> str | Chat:
    """Put a question and its examples into a prompt.

    Args:
        question: The question.
        examples: Other questions and their answers, which precede the question.
        how: `chat` makes messages; `question and answer` a text that ends with `Answer:`; `plain`
            is the question itself, without examples.
        briefly: In a chat, ask for a word or a name only.
    """
    if how == "plain":
        return question
    if how == "chat":
        end = f" {BRIEFLY}" if briefly else ""
        messages = [
            message
            for asked, answer in examples
            for message in (Message("user", asked + end), Message("assistant", answer))
        ]
        return Chat((*messages, Message("user", question + end)))
    shown = "".join(f"Question: {asked}\nAnswer: {answer}\n\n" for asked, answer in examples)
    return f"{shown}Question: {question}\nAnswer:"
