"""Sets of prompts: twins, faults, combinations."""

import pytest

from lama_core.datasets.prompt_sets import (
    PromptPool,
    check_templates,
    make_pool,
    normalise_template,
)
from lama_core.errors import UserError
from lama_core.types import Prompt


def _pool() -> PromptPool:
    return make_pool(
        "P36",
        {
            "manual": [Prompt("[X] has capital [Y] .")],
            "mined": [Prompt("[Y] in [X] ."), Prompt("[X] , [Y] .")],
            "mined-paraphrased": [Prompt("[Y] in [X]."), Prompt("[Y] inside [X].")],
            "manual-paraphrased": [Prompt("[X] has capital [Y]."), Prompt("[Y] heads [X].")],
        },
    )


def test_spaces_before_signs_make_no_other_prompt() -> None:
    assert normalise_template("[X]  is in [Y] .") == "[X] is in [Y]."
    assert normalise_template("[X] ( born [Y] ) .") == "[X] (born [Y])."


def test_two_prompts_that_are_the_same_after_normalising_are_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"'\[X\] in \[Y\] \.' and '\[X\] in \[Y\]\.'"):
        check_templates(["[X] in [Y] .", "[X] in [Y]."])


def test_a_prompt_of_two_sets_is_one_prompt_of_both() -> None:
    pool = _pool()
    assert pool.templates == (
        "[X] has capital [Y] .",
        "[Y] in [X] .",
        "[X] , [Y] .",
        "[Y] inside [X].",
        "[Y] heads [X].",
    )
    assert pool.entries[1].origins == {"mined", "mined-paraphrased"}


def test_combinations_are_those_of_the_paper() -> None:
    pool = _pool()
    found = {name: pool.members(name) for name in ("mine", "mine+man", "mine+para", "man+para")}
    assert found == {"mine": (1, 2), "mine+man": (0, 1, 2), "mine+para": (1, 3), "man+para": (0, 4)}


def test_twins_and_faults_in_a_file_are_left_out_and_named() -> None:
    pool = make_pool("P1", {"mined": [Prompt("[X] a [Y]"), Prompt("[X]  a [Y]"), Prompt("[X]")]})
    assert pool.templates == ("[X] a [Y]",)
    assert len(pool.notes) == 2
    assert "no [Y]" in pool.notes[1]
