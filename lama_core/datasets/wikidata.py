"""Labels and identifiers in exports of Wikidata and of other RDF data."""

import re

# A literal's language or type: `"Oslo"@en`, `Oslo@en`, `"3"^^xsd:integer`, `"3"^^<address>`.
_TAGGED = re.compile(
    r"""(["']?)(.+)\1(?:@[a-z]{2,3}(?:-[A-Za-z0-9]{1,8})*|\^\^(?:<[^>]*>|\w+:\S+))""", re.DOTALL
)
# An address, a blank node, or an item, property or lexeme (with a form, sense or statement). Media
# have long numbers; a short one, such as M31, is a name.
_IDENTIFIER = re.compile(
    r"<?https?://.*|<?(?:www\.)?wikidata\.org/.*|_:\S+"
    r"|(?:[a-z]\w*:|entity/|(?:Item|Property|Lexeme):)?(?:[QPL][1-9]\d*|M[1-9]\d{5,})"
    r"(?:-[SF][1-9]\d*|[-$][0-9A-Fa-f]{8}-[\w-]+)?",
    re.DOTALL,
)


def label_of(text: str) -> str:
    """Return a name without its language or type; empty for an identifier."""
    tagged = _TAGGED.fullmatch(text)
    label = tagged[2].replace('\\"', '"').strip() if tagged else text
    return "" if _IDENTIFIER.fullmatch(label) else label
