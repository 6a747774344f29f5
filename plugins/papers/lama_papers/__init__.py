"""The plug-in `papers`: the reproduction of papers' tables and figures."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="papers",
    about="Tables and figures of papers, made again and next to the published numbers.",
    functions={"reproduce": "lama_papers.reproduce:reproduce"},
    commands={"reproduce": "lama_papers.reproduce_command:reproduce"},
    papers={
        "petroni2019": "lama_papers.petroni2019:LAMA_PAPER",
        "jiang2020": "lama_papers.jiang2020:LPAQA_PAPER",
        "rezaee2022": "lama_papers.rezaee2022:ANALOGY_PAPER",
        "wiland2024": "lama_papers.wiland2024:BEAR_PAPER",
    },
    help={"reproduce": "Reproduce a paper's tables and figures."},
)
