"""How data and settings differ from a paper's, in words."""


def joined(*words: str) -> str:
    """Join the distinct, non-empty words: `20 of 41 relations; other candidates`."""
    return "; ".join(dict.fromkeys(filter(None, words)))


def differing(
    *,
    data: str = "",
    relations: tuple[int, int] | None = None,
    facts: tuple[int, int] | None = None,
    limit: int | None = None,
    model: str = "",
) -> str:
    """Describe the differences from the paper, "" if there are none.

    Args:
        data: Description of other data ("starter facts"); "" for the paper's.
        relations: Number of relations here and in the paper.
        facts: Number of facts here and in the paper.
        limit: Maximum number of facts per relation.
        model: The paper's model, if another one is used.
    """
    counts = [
        f"{counted[0]:,} of {counted[1]:,} {name}"
        for counted, name in ((relations, "relations"), (facts, "facts"))
        if not data and counted and counted[0] != counted[1]
    ]
    limited = "" if limit is None else f"at most {limit:,} a relation"
    return joined(data, *counts, limited, model and f"not {model}")
