"""`analogy`: solve analogies, score pairs, answer questions, probe models."""

from lama_core.cli import commands, queries, runs

analogy = commands.make_group("analogy")
for command in (queries.solve, queries.score, queries.questions, runs.analogy_probe):
    analogy.command(command)
