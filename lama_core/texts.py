"""When two texts are equal, and when one contains the other: the one rule for all comparisons.

Two texts are equal if they have the same key. There are three keys, each coarser than the last:

    written_key   the same characters: composed or decomposed accents (canonical equivalence), any
                  invisible characters, any spaces; case counts
    word_key      the same word: also another case, other quotation marks, hyphens and digits,
                  full-width letters, ligatures, Arabic and Hebrew with and without vowel points
    answer_key    the same answer: also without punctuation and articles, but with the signs that
                  are part of a number or a name (3.14, -5, 10:30, 1/2, C++, C#, B♭)

Facts, and answers to choose from, are compared as written; single words as words; free text as
answers. `contains_answer` finds an answer in whole words of a text.

Of Unicode's compatibility mappings only those are used that keep the meaning: x² isn't x2, and ½
isn't 12. The Turkish İ is an i, the dotless ı isn't.
"""

import re
from functools import lru_cache
from unicodedata import category, decimal, decomposition, name, normalize

# Unicode's Default_Ignorable_Code_Point, without tags (England's flag isn't Scotland's), and
# control characters that aren't spaces.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0100-\U000e01ef]+"
)
# What few texts write: Arabic's vowel points and the stroke that stretches a word, Hebrew's points,
# and the dot that lower-casing keeps above the i of İ.
_POINTS = re.compile(
    "[\u0640\u064b-\u0652\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]+|(?<=i)\u0307"
)
_SAME = {
    **dict.fromkeys("‘’‚‛′ʹʻʼʽ", "'"),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‐‑–−", "-"),
    "⁄": "/",
    "٫": ".",
    "٬": ",",
    "♯": "#",
}
# Compatibility mappings that change the meaning: x², ½, ①, ㎡.
_OTHER_MEANING = ("<super>", "<fraction>", "<circle>", "<square>")
# Scripts whose words aren't separated by spaces (Hangul: particles are written with the word), as
# their characters' Unicode names begin.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_NUMERALS = frozenset("0123456789〇零一二三四五六七八九十百千万萬亿億")  # a number: 十三, 5百
ARTICLES = ("a", "an", "the")
_THOUSANDS = re.compile(
    r"(?<!\w)(?<![^\W\d]-)(?<!\d[.,:/^'])\d{1,3}([, '])\d{3}(?:\1\d{3})*(?!\d)", re.ASCII
)
# A part of a text that no space or punctuation divides, in shapes (`_Shapes`): a number or word
# with the signs that belong to it. A hyphen after a letter or digit isn't a minus: 1914-1918.
_PART = re.compile(
    r"(?<![0a])a-(?![0a-])|"  # the grade A-
    r"(?:(?<![0a+#])-\$?(?=\.?0))?(?:(?<![0a.])\.(?=0))?"
    r"[0a](?:[0a]|(?<=0)[.,:/^](?=0)|(?:\+{1,2}|#)(?![a+#]))*"
)
# Between two parts without a space: AT·T, and 1914~1918, which is not 19141918.
_SOFT, _NUMBERS = "·", "~"
_UNDIVIDED = str.maketrans("", "", f" {_SOFT}{_NUMBERS}")


class _Letters(dict[int, str]):
    """Code point -> the letters that it is compared as; found when first used."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        kind, *parts = decomposition(letter).split() or [""]
        is_sign = kind in _OTHER_MEANING or (category(letter) == "So" and len(parts) > 1)  # ½, №
        if category(letter) == "Nd":
            found = str(decimal(letter))
        elif kind.startswith("<") and not is_sign and parts[0] != "0020":
            found = "".join(chr(int(part, 16)) for part in parts).translate(self)
        else:
            found = _SAME.get(letter, letter)
        self[code] = found
        return found


class _Shapes(dict[int, str]):
    """Code point -> its shape; found when first used.

    `0` is a digit, `a` a letter or mark, `#` also a flat, `$` a currency, a space or one of
    `-.,:/^+` itself, and `_` anything else.
    """

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        if "0" <= letter <= "9":
            found = "0"
        elif letter.isalnum() or category(letter).startswith("M"):
            found = "a"
        elif category(letter) == "Sc":
            found = "$"
        else:
            found = "#" if letter == "♭" else letter if letter in " -.,:/^+#" else "_"
        self[code] = found
        return found


_LETTERS, _SHAPES = _Letters(), _Shapes()


def written_key(text: str) -> str:
    """Return the text's characters, composed, without invisible ones, with single spaces."""
    return normalize("NFC", " ".join(_INVISIBLE.sub("", text).split()))


def word_key(text: str) -> str:
    """Return the text for comparisons of words, which ignore case."""
    key = written_key(text)
    if key.isascii():
        return key.casefold()
    plain = _POINTS.sub("", normalize("NFD", key).translate(_LETTERS).casefold())
    return " ".join(normalize("NFC", plain).split())


def answer_key(text: str) -> str:
    """Return the text for comparisons of answers: its words, one space between two.

    Punctuation is removed as for SQuAD (Rajpurkar et al. 2016), but not between digits; so are
    articles, unless one is the last word: "vitamin A". A text without letters and digits is a word.
    """
    return " ".join(_words(text)).replace(_SOFT, "").replace(_NUMBERS, " ") or word_key(text)


def contains_answer(text: str, answer: str) -> bool:
    """Return whether an answer is in a text, in whole words.

    Punctuation within a word may be missing in the other text, or be a space: "US" is in "the U.S.
    Army", "New York" in "New-York". Next to a letter of a script without spaces a word can begin or
    end anywhere. An answer without letters and digits is in each text with the same characters.
    """
    words = _words(answer)
    if not words:
        return word_key(answer) != "" and word_key(answer) in word_key(text)
    divided = _divided(text)
    if words[0].translate(_UNDIVIDED) not in divided.translate(_UNDIVIDED):
        return False  # compiling an expression takes longer
    return any(
        not _in_one_word(divided[found.start() - 1 : found.start()], found[1][0])
        and not _in_one_word(found[1][-1], divided[found.end(1) : found.end(1) + 1])
        for found in _pattern(words).finditer(divided)
    )


@lru_cache(maxsize=256)
def _divided(text: str) -> str:
    """Return a text's parts with a space, `_SOFT` or `_NUMBERS` between two."""
    key = _THOUSANDS.sub(lambda found: found[0].replace(found[1], ""), word_key(text))
    shapes = key.translate(_SHAPES)
    divided, end = "", 0
    for found in _PART.finditer(shapes):
        part = "".join(key[at] for at in range(*found.span()) if shapes[at] != "$")
        if divided:
            numbers = divided[-1].isdecimal() and found[0].lstrip("-.$")[0] == "0"
            between = _NUMBERS if numbers else _SOFT
            divided += " " if " " in shapes[end : found.start()] else between
        divided, end = divided + part, found.end()
    return divided


@lru_cache(maxsize=256)
def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text without articles, except a last one; parts are divided."""
    words = _divided(text).split()
    return (*(word for word in words[:-1] if word not in ARTICLES), *words[-1:])


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return an expression that finds words in a divided text, at overlapping places, too."""
    found = []
    for word in words:
        letters = f"{_SOFT}?".join(map(re.escape, word))
        letters = letters.replace(f"{_SOFT}?{_SOFT}{_SOFT}?", f"[ {_SOFT}]?")
        numbers = f"{_SOFT}?{re.escape(_NUMBERS)}{_SOFT}?"
        found.append(letters.replace(numbers, f"[ {_NUMBERS}]"))
    between = f"[ {_SOFT}{_NUMBERS}](?:(?:{'|'.join(ARTICLES)}) )*"
    return re.compile(f"(?=({between.join(found)}))")


def _in_one_word(before: str, after: str) -> bool:
    """Return whether two neighbouring characters belong to one word; "" is the text's end."""
    if not before or not after or {before, after} & {" ", _SOFT, _NUMBERS}:
        return False
    if category(after).startswith("M") or (before in _NUMERALS and after in _NUMERALS):
        return True
    return not any(name(one, "").startswith(_UNSPACED) for one in (before, after))
