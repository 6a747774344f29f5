"""The syntax of templates: one [X] for the subject and one [Y] for the blank."""


def template_fault(template: str) -> str | None:
    """Return why `template` is unusable, as a clause; None if it is usable."""
    n_subjects, n_objects = template.count("[X]"), template.count("[Y]")
    if n_subjects == 0:
        return f"the template {template!r} has no [X]: add it in place of the subject"
    if n_objects == 0:
        return f"the template {template!r} has no [Y]: add it in place of the object"
    if n_subjects > 1:
        return f"the template {template!r} has {n_subjects} [X]: keep one"
    if n_objects > 1:
        return f"the template {template!r} has {n_objects} [Y]: keep one"
    return None
