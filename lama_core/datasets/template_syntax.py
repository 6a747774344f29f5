"""The syntax of templates: one [X] for the subject and one [Y] for the blank."""


def template_fault(template: str) -> str | None:
    """Return why `template` is unusable, as a clause; None if it is usable."""
    signs = (("[X]", "subject"), ("[Y]", "object"))
    for sign, role in signs:
        if sign not in template:
            return f"the template {template!r} has no {sign}: add it in place of the {role}"
    for sign, _ in signs:
        if (n := template.count(sign)) > 1:
            return f"the template {template!r} has {n} {sign}: keep one"
    return None
