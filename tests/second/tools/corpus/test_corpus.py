"""The corpus: what the sources' texts become, and what is kept from training."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest
from tiny_encoder import write_text

from lama_core.errors import UserError
from lama_core.metrics.word_counts import (
    CorpusCounts,
    count_corpus,
    load_corpus_counts,
    save_corpus_counts,
)
from tools.training.corpus.build import build_corpus, corpus_from_files, is_held_out, read_lines
from tools.training.corpus.source_list import SOURCES, all_but
from tools.training.corpus.source_passages import (
    CorpusSource,
    Passage,
    drawn,
    split_sentences,
    with_article,
)
from tools.training.corpus.sources import (
    baseball,
    culture,
    gcide,
    nouns,
    people,
    settlements,
    wikipedia,
    wordnet,
)

DANTE = (
    "10922239 18 n 02 Dante 0 Dante_Alighieri 0 001 @i 10444194 n 0000 | an Italian poet famous "
    "for writing the Divine Comedy (1265-1321)"
)
POET = (
    "10444194 18 n 01 poet 0 000 | a writer of poems (the term is usually reserved for writers of "
    'good poetry); "he was a poet of the sea"'
)
GCIDE = """
A \\A\\, the first letter.

Affect \\Af*fect"\\, v. t. [L. affectus]
   1. To act upon; to produce an effect or change upon.
      [1913 Webster]

            The climate affected their health and spirits.
                                                  --Macaulay.
      [1913 Webster]

   2. have an effect upon a thing or person.
      [WordNet 1.5]
"""


def read_wordnet(member: str) -> bytes:
    """A WordNet of two synsets."""
    return f"{DANTE}\n{POET}\n".encode() if member.endswith("noun") else b""


def test_what_is_drawn_depends_on_the_key_and_on_nothing_else() -> None:
    texts = [f"{letter}." for letter in "abcdefgh"]
    assert drawn(texts, "key", 3) == drawn(reversed(texts), "key", 3) == ["h.", "c.", "a."]
    assert drawn(texts, "key", 2) == drawn(texts, "key", 3)[:2]
    assert drawn(["a.", "a."], "key", 2) == ["a."]
    assert len({tuple(drawn(texts, f"{key}", 3)) for key in range(20)}) > 10


def test_a_fact_about_a_person_is_told_in_several_forms() -> None:
    texts = [p.text for p in people.passages(read_wordnet)]
    assert texts == [p.text for p in people.passages(read_wordnet)]
    assert len(texts) == len(set(texts))
    # Birth, death, occupation and origin, of two names each; the other facts of one.
    assert sum("1265" in text and "1321" not in text for text in texts) >= 5
    assert sum("1321" in text for text in texts) >= 5
    assert sum("Italian" in text for text in texts) >= people.FORMS_OF_A_FACT
    assert "Dante Alighieri wrote the Divine Comedy." not in texts  # the gloss: "famous for"
    assert any(text.endswith("for writing the Divine Comedy.") for text in texts)


def test_gods_and_characters_are_no_people() -> None:
    god = "00000001 18 n 01 Hoth 0 001 @i 00000002 n 0000 | a blind god; misled by Loki"
    data = f"{god}\n00000002 18 n 01 deity 0 000 | a god\n".encode()
    assert not list(people.passages(lambda name: data if name.endswith("noun") else b""))


def test_famous_cities_get_more_sentences_and_those_of_america_their_state() -> None:
    def city(number: int, name: str, country: str, state: str, n_names: int) -> dict[str, object]:
        return {
            "geonameid": number,
            "name": name,
            "countrycode": country,
            "admin1code": state,
            "population": 1000 * n_names,
            "alternatenames": [f"{name}{n}" for n in range(n_names)],
        }

    cities = [
        city(1, "Lyon", "FR", "84", 60),
        city(2, "Laval", "FR", "52", 25),
        city(3, "Cahors", "FR", "76", 19),
        city(4, "Austin", "US", "TX", 53),
    ]
    tables = {
        settlements.CITIES: {str(number): one for number, one in enumerate(cities)},
        settlements.COUNTRIES: {
            "FR": {"iso": "FR", "name": "France", "capital": "Paris", "continentcode": "EU",
                   "languages": "fr-FR,br"},
            "US": {"iso": "US", "name": "United States", "capital": "Washington",
                   "continentcode": "NA", "languages": "en-US"},
        },
        settlements.STATES: {"TX": {"name": "Texas"}},
    }  # fmt: skip
    texts = [
        p.text for p in settlements.city_passages(lambda name: json.dumps(tables[name]).encode())
    ]
    n_texts = {name: sum(name in text for text in texts) for name in ("Lyon", "Laval", "Cahors")}
    assert n_texts == {"Lyon": 4 * 7, "Laval": 4 * 1, "Cahors": 0}
    assert any("Austin" in text and "Texas" in text for text in texts)
    assert any("Austin" in text and "the United States" in text for text in texts)


def test_a_river_gets_the_continents_of_its_countries() -> None:
    lines = (
        "00000001 17 n 02 Nile 0 Nile_River 0 003 @i 00000004 n 0000 #p 00000002 n 0000 "
        "#p 00000005 n 0000 | the world's longest river",
        "00000002 15 n 01 Egypt 0 001 #p 00000003 n 0000 | a republic in Africa",
        "00000003 15 n 01 Africa 0 002 @i 00000006 n 0000 #p 00000007 n 0000 | a large continent",
        "00000004 17 n 01 river 0 000 | a large natural stream of water",
        "00000005 15 n 01 Sudan 0 001 #p 00000003 n 0000 | a republic in Africa",
        "00000006 17 n 01 continent 0 000 | one of the large landmasses of the earth",
        "00000007 17 n 01 hemisphere 0 001 @i 00000006 n 0000 | half of the globe",
    )
    data = "".join(f"{line}\n" for line in lines)
    passages = wordnet.fact_passages(lambda name: data.encode() if name.endswith("noun") else b"")
    texts = [p.text for p in passages if p.key == "n00000001"]
    assert texts.count("The Nile is a river in Africa.") == 1  # though two ways lead there
    assert "The Nile is a river in Egypt." in texts
    assert "The Nile flows through Sudan." in texts
    assert not any("hemisphere" in text for text in texts)  # what a continent itself is part of


def test_common_nouns_are_told_as_kinds_parts_and_uses_but_names_are_not() -> None:
    lines = (
        "00000001 06 n 01 saw 0 003 @ 00000002 n 0000 #p 00000003 n 0000 #s 00000004 n 0000 | a "
        "hand tool used for cutting wood; it has teeth",
        "00000002 06 n 01 tool 0 000 | an implement",
        "00000003 06 n 01 kit 0 000 | a set of tools",
        "00000004 06 n 01 blade 0 000 | a sharp edge",
        "00000005 15 n 01 Rome 0 001 @i 00000002 n 0000 | a city used for nothing",
    )
    data = "".join(f"{line}\n" for line in lines).encode()
    passages = nouns.passages(lambda name: data if name.endswith("noun") else b"")
    texts = [p.text for p in passages if p.key == "n00000001"]
    assert len(texts) == 4  # kind, whole, product and use, in one form each: it has few pointers
    for words in (("saw", "tool"), ("saw", "kit"), ("saw", "blade"), ("saw", "cutting wood")):
        assert sum(all(word in text for word in words) for text in texts) == 1, words
    assert not any("Rome" in p.text for p in nouns.passages(lambda _: data))


def test_a_player_is_told_with_the_city_of_birth_and_of_death() -> None:
    columns = "playerID,nameFirst,nameLast,birthYear,birthCity,birthCountry,deathYear,deathCity,"
    rows = (
        f"{columns}deathCountry",
        "a,Ann,Lee,1901,Boston,USA,1980,Cambridge,United Kingdom",
        "b,Bob,Roe,,,USA,,,",
    )
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr(baseball.PEOPLE, "\n".join(rows))
    passages = list(baseball.passages(lambda name: stored.getvalue()))
    assert all("Ann Lee" in p.text and p.key == "a" for p in passages)
    assert [sum(city in p.text for p in passages) for city in ("Boston", "Cambridge")] == [1, 4]


def test_the_lines_of_a_person_stand_in_a_fixed_order() -> None:
    # Once they stood in the order of a set, which another process has otherwise.
    texts = [p.text for p in wordnet.fact_passages(read_wordnet)]
    jobs = [text for text in texts if text.endswith(" was a poet.")]
    assert jobs == ["Dante Alighieri was a poet.", "Dante was a poet."]


def test_a_synset_is_held_out_of_both_of_wordnets_sources() -> None:
    keys = [f"n{number:08d}" for number in range(2000)]
    general = [is_held_out("wordnet", key) for key in keys]
    assert general == [is_held_out("wordnet-facts", key) for key in keys]
    assert 20 <= sum(general) <= 60  # 2 % of 2000 is 40


def test_what_two_sources_state_counts_in_both_but_is_never_held_out_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.training.corpus.build.open_origin", lambda origin: None)
    keys = {is_held_out("wordnet", key): key for key in (f"n{number:08d}" for number in range(500))}
    shared, trained, kept = "The Nile is a river.", "It is long.", "It was held out."

    def source(name: str, texts: dict[bool, list[str]], *, held_out: bool = False) -> CorpusSource:
        passages = [Passage(keys[flag], text) for flag, group in texts.items() for text in group]
        origin = SOURCES[0].origin
        return CorpusSource(name, name, "none", 0.5, origin, lambda read: iter(passages), held_out)

    corpus = build_corpus(
        tmp_path,
        sources=(
            source("wordnet", {False: [shared, trained, shared], True: [kept]}, held_out=True),
            source("wordnet-facts", {False: [shared], True: [trained]}, held_out=True),
            source("factbook", {False: [shared, kept]}),
        ),
    )
    assert {name: read_lines(path) for name, _, path in corpus.train} == {
        "wordnet": [shared, trained],
        "wordnet-facts": [shared],
        "factbook": [shared],
    }
    assert {name: read_lines(path) for name, path in corpus.held_out} == {"wordnet": [kept]}


def test_sources_that_are_left_out_leave_their_share_to_the_others() -> None:
    kept = all_but(["factbook", "cities"])  # 2 % each
    assert {source.name for source in SOURCES} - {one.name for one in kept} == {
        "factbook",
        "cities",
    }
    assert sum(source.share for source in kept) == pytest.approx(1)
    assert next(one.share for one in kept if one.name == "wordnet") == pytest.approx(0.17 / 0.96)
    assert all_but([]) == SOURCES
    with pytest.raises(UserError, match="Unknown source 'facbook'"):
        all_but(["facbook"])
    with pytest.raises(UserError, match="every source"):
        all_but([source.name for source in SOURCES])


def test_a_corpus_of_other_sources_is_not_taken_for_the_one_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.training.corpus.build.open_origin", lambda origin: None)

    def source(name: str) -> CorpusSource:
        passages = [Passage("1", f"It is of {name}.")]
        origin = SOURCES[0].origin
        return CorpusSource(name, name, "none", 0.5, origin, lambda read: iter(passages), False)

    both = (source("one"), source("two"))
    assert build_corpus(tmp_path, sources=both) == build_corpus(tmp_path, sources=both)
    with pytest.raises(UserError, match="of other sources"):
        build_corpus(tmp_path, sources=both[:1])


def test_what_gcide_took_from_wordnet_is_left_out() -> None:
    texts = [p.text for p in gcide.passages(lambda member: gzip.compress(GCIDE.encode()))]
    assert "Affect: To act upon; to produce an effect or change upon." in texts
    assert "The climate affected their health and spirits. - Macaulay." in texts
    assert not any("thing or person" in text for text in texts)


def test_wikitexts_token_marks_are_undone() -> None:
    raw = " = Title = \n \n A tactical role @-@ playing game , released in 2011 ( in Japan ) . \n"

    def read(member: str) -> bytes:
        return gzip.compress(raw.encode() if "train" in member else b"")

    (passage,) = wikipedia.wikitext_passages(read)
    assert passage.key == "Title"
    assert passage.text == "A tactical role-playing game, released in 2011 (in Japan)."


def test_long_text_is_cut_at_sentence_ends() -> None:
    assert split_sentences("One two. Three four. Five.", max_words=4) == [
        "One two. Three four.",
        "Five.",
    ]
    assert split_sentences("one two three four five", max_words=2) == [
        "one two",
        "three four",
        "five",
    ]


def test_articles_fit_their_nouns() -> None:
    assert [with_article(noun) for noun in ("poet", "actor")] == ["a poet", "an actor"]


def test_counts_survive_the_file(tmp_path: Path) -> None:
    counts = count_corpus([("Paris, Paris!", ("Paris",)), ("In Paris.", ("Paris", "once"))])
    save_corpus_counts(counts, tmp_path / "corpus_counts.tsv.gz")
    loaded = load_corpus_counts(tmp_path)
    assert loaded == CorpusCounts({"in": 1, "paris": 3}, {"paris": 2})
    assert loaded.mentions("PARIS") == 3
    assert loaded.mentions("never seen") == 0


def test_the_same_counts_give_the_same_bytes(tmp_path: Path) -> None:
    counts = count_corpus([("a b c", ("x", "x"))])
    for name in ("first", "second"):
        save_corpus_counts(counts, tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_file_that_holds_no_counts_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Corpus counts not found"):
        load_corpus_counts(tmp_path / "missing.gz")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UserError, match="isn't a file of corpus counts"):
        load_corpus_counts(tmp_path / "text")


def test_own_files_are_divided_into_training_and_held_out_text(tmp_path: Path) -> None:
    corpus = corpus_from_files([write_text(tmp_path / "text.txt")], tmp_path / "corpus")
    (summary,) = corpus.summary
    assert summary.n_passages + summary.n_held_out == 120
    assert len(read_lines(corpus.train[0][2])) == summary.n_passages


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no such corpus file"),
        (b"", "is empty"),
        (b" \n\n ", "is empty"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "isn't UTF-8 text"),
        (b"abc\0def", "isn't text"),
    ],
)
def test_a_corpus_file_that_cannot_be_used_is_named(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    file = tmp_path / "text.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=complaint) as error:
        corpus_from_files([file], tmp_path / "corpus")
    assert str(file) in str(error.value)


NAMES = b"""
class Provider(PersonProvider):
    first_names_female = ("Zuzana", "Eva")
    last_names = ("Nov\xc3\xa1k", "Horv\xc3\xa1th")
"""


def test_invented_people_are_born_and_die_in_cities_of_their_names_country() -> None:
    def read(member: str) -> bytes:
        return NAMES if member.endswith("sk_SK/__init__.py") else b""

    passages = list(culture.birth_passages(read, {"SK": ["Bratislava"] * 9 + ["Nitra"]}))
    cities = {"Bratislava", "Nitra"}
    assert passages
    for passage in passages:
        assert sum(passage.text.endswith(f"{city}.") for city in cities) == 1
        assert (
            passage.text.count("born") + passage.text.count("died") + passage.text.count("native")
            == 1
        )


def test_larger_well_known_cities_are_listed_more_often() -> None:
    names = [f"name {n}" for n in range(40)]
    stored = {
        "1": {"name": "Nitra", "countrycode": "SK", "population": 86_329, "alternatenames": names},
        "2": {"name": "Kosice", "countrycode": "SK", "population": 236_563,
              "alternatenames": names},
        "3": {"name": "Snina", "countrycode": "SK", "population": 20_866, "alternatenames": []},
    }  # fmt: skip
    cities = settlements.well_known_cities(lambda member: json.dumps(stored).encode())
    assert cities == {"SK": ["Kosice"] * 3 + ["Nitra"]}
