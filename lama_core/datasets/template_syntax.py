"""What makes a template usable: one [X] for the subject and one [Y] for the blank."""


def template_fault(template: str) -> str | None:
    """Why `template` can't be used, as a clause; None when it can."""
    n_subjects, n_objects = template.count("[X]"), template.count("[Y]")
    if n_subjects == 0:
        return f"the template {template!r} has no [X]: add it where the subject stands"
    if n_objects == 0:
        return f"the template {template!r} has no [Y]: add it where the object stands"
    if n_subjects > 1:
        return f"the template {template!r} has {n_subjects} [X]: keep one"
    if n_objects > 1:
        return f"the template {template!r} has {n_objects} [Y]: keep one"
    return None
