"""What a search finds, whichever index answers it."""

from __future__ import annotations

import pytest

from agentbus.errors import InvalidArgument, NotFound
from tests.integration.search.conftest import Engine

TEXTS = {
    "ticket": "see POL-358, it's TODO: (soon)",
    "path": "edit src/agentbus/file_name.py line 12",
    "camel": "class HTTPServerFactory extends BaseThing",
    "number": "fixes #123 and v1.2.3",
    "mail": "mail Ann <ann.lee@example.org>",
    "cjk": "昨日、京都民芸館へ行った。",
    "hangul": "한국어를 배웁니다",
    "accents": "Résumé für Ångström, Øresund",
    "emoji": "shipped 🎉👍🏽 today",
    "option": "git commit --no-verify -m x",
    "plain": "the quick brown fox",
    "thai": "ภาษาไทยง่าย",
    "hindi": "हिन्दी भाषा",
    "mixed": "Python3入門 für alle",
}

FINDS = [
    ("POL-358", {"ticket"}),
    ("pol 358", {"ticket"}),
    ("it's", {"ticket"}),
    ("it\u2019s", {"ticket"}),
    ("TODO:", {"ticket"}),
    ("(soon)", {"ticket"}),
    ("src/agentbus/file_name.py", {"path"}),
    ("file_name.py", {"path"}),
    ("file_name", {"path"}),
    ("name.py", {"path"}),
    ("py", {"path"}),
    ("HTTPServerFactory", {"camel"}),
    ("httpserverfactory", {"camel"}),
    ("http", {"camel"}),
    ("server", {"camel"}),
    ("server_factory", {"camel"}),
    ("thing", {"camel"}),
    ("base*", {"camel"}),
    ("#123", {"number"}),
    ("123", {"number"}),
    ("2.3", {"number"}),
    ("v1.2.3", {"number"}),
    ("ann.lee@example.org", {"mail"}),
    ("example.org", {"mail"}),
    ("京都", {"cjk"}),
    ("都民", {"cjk"}),
    ("京都民芸館", {"cjk"}),
    ("芸館へ", {"cjk"}),
    ("行った", {"cjk"}),
    ("館", {"cjk"}),
    ("京芸", set()),
    ("한국어", {"hangul"}),
    ("국어", {"hangul"}),
    ("ไทย", {"thai"}),
    ("हिन्दी", {"hindi"}),
    ("हिन्द", set()),
    ("resume", {"accents"}),
    ("résumé", {"accents"}),
    ("RÉSUMÉ", {"accents"}),
    ("angstrom oresund", {"accents"}),
    ("🎉", {"emoji"}),
    ("👍", {"emoji"}),
    ("🎉👍🏽", {"emoji"}),
    ("😀", set()),
    ("--no-verify", {"option"}),
    ("commit -fox --no-verify", {"option"}),
    ("Python3入門", {"mixed"}),
    ("入門", {"mixed"}),
    ("quick fox", {"plain"}),
    ("fox quick", {"plain"}),
    ('"quick fox"', set()),
    ('"quick brown fox"', {"plain"}),
    ('"quick bro"*', {"plain"}),
    ("qui* bro*", {"plain"}),
    ("quick*fox", set()),
    ('quick "', {"plain"}),
    ("q", set()),
    ("q*", {"plain"}),
    ("für -python3", {"accents"}),
    ("fur -入門", {"accents"}),
    ("(", set()),
    ("---", set()),
    ('"', set()),
    ('""', set()),
    ("fox (", {"plain"}),
    ("OR", set()),
    ("fox AND quick", set()),
    ("NOT", set()),
    ("marks:x", set()),
    ("words : fox", set()),
    ("NEAR(quick fox)", set()),
    ("@f:{x}", set()),
    ("\0", set()),
    ("brown\0fox", {"plain"}),
]


@pytest.fixture
def texts(engine: Engine) -> Engine:
    ids = engine.bus.send_many(list(TEXTS.values()))
    engine.names = dict(zip(ids, TEXTS, strict=True))  # type: ignore[attr-defined]
    return engine


def test_what_people_type_finds_what_they_mean(texts: Engine) -> None:
    texts.search()
    wrong = {}
    for query, expected in FINDS:
        found = {texts.names[each] for each in texts.find(query).ids}  # type: ignore[attr-defined]
        if found != expected:
            wrong[query] = found
    assert not wrong


def test_negations_alone_are_everything_else(texts: Engine) -> None:
    everything = set(texts.search().ids)
    fox = set(texts.find("fox").ids)
    assert len(everything) == len(TEXTS)
    assert fox
    assert set(texts.find("-fox").ids) == everything - fox
    assert set(texts.find('-fox -"quick brown" -').ids) == everything - fox
    assert set(texts.find("-(").ids) == everything
    assert set(texts.find("*").ids) == everything
    assert set(texts.find("  ").ids) == everything


def test_texts_of_references_and_metadata_are_found(engine: Engine) -> None:
    first = engine.bus.send(
        "look", references=[{"kind": "url", "value": "https://example.org/a/b.html"}]
    )
    second = engine.bus.send("look", metadata={"branch": "fix/login", "n": 5})
    assert engine.search("example.org/a/b.html").ids == [first]
    assert engine.search("fix/login").ids == [second]


def test_a_query_of_more_than_4_kib_is_refused(engine: Engine) -> None:
    assert isinstance(engine.refusal("é" * 2049), InvalidArgument)
    assert engine.search("é" * 2048).ids == []


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"{n:x}" for n in range(1000)),
        " ".join(f"-{n:x}" for n in range(850)),
        '"' + "a " * 2040 + '"',
        "a " * 2000 + "b*",
        "-" * 4096,
        '"' * 4096,
        "*" * 4096,
        "京" * 1365,
        "😀" * 1024,
        "a" * 4096,
        "a" * 4095 + "*",
    ],
    ids=lambda query: query[:10],
)
def test_a_query_may_be_as_long_and_strange_as_it_is_allowed(engine: Engine, query: str) -> None:
    engine.bus.send("a b c")
    engine.search(query)


# ---- filters


def test_filters_narrow_by_channel_kind_and_sender(engine: Engine) -> None:
    bus = engine.bus
    bus.channel("general/tmi")
    a = bus.send("apple", "general", "Sam")
    b = bus.send("apple", "general/tmi", "Ann")
    c = bus.send("apple", "memory", "Ann")
    assert engine.search("apple").ids == [c, b, a]
    assert engine.find("apple", channels=["general"]).ids == [a]
    assert engine.find("apple", channels=["general", "memory"]).ids == [c, a]
    assert engine.find("apple", kind="memory").ids == [c]
    assert engine.find("apple", kind="ordinary").ids == [b, a]
    assert engine.find(kind="ordinary", channels=["memory"]).ids == []
    assert engine.find("apple", sender="ann").ids == [c, b]
    assert engine.find(sender="Ann", channels=["general/tmi"]).ids == [b]
    assert engine.find("-apple", sender="Ann").ids == []
    assert engine.find(sender="An").ids == []


def test_sender_is_a_display_name_or_an_agent(engine: Engine) -> None:
    bus = engine.bus
    bus.world.register("other", agent="Sam")
    second = bus.send("two", agent="Sam")
    (message,) = engine.search("two").messages
    assert (message["sender"], message["agent"]) == ("Sam2", "Sam")
    assert engine.find(sender="Sam2").ids == [second]
    assert engine.find(sender="Sam").ids == [second]


def test_times_are_included_at_both_ends(engine: Engine) -> None:
    ids = [engine.bus.send(f"n{n}") for n in range(5)]
    times = [engine.bus.sent_at(each) for each in ids]
    assert engine.search(since=times[1], until=times[3]).ids == [ids[3], ids[2], ids[1]]
    assert engine.find(since=times[4]).ids == [ids[4]]
    assert engine.find(until=times[0]).ids == [ids[0]]
    assert engine.find("n2", until=times[1]).ids == []
    assert engine.find(since="2001-01-01", until="2001-01-02T03:04:05+02:00").ids == []
    assert engine.find(since="2001-01-01").ids == ids[::-1]


def test_threads_and_replies_are_found(engine: Engine) -> None:
    root = engine.bus.send("root")
    first = engine.bus.send("first", reply_to=root)
    second = engine.bus.send("second", reply_to=first)
    engine.bus.send("other")
    assert engine.search(thread=root).ids == [second, first, root]
    assert engine.find(reply_to=root).ids == [first]
    assert engine.find("second", thread=root).ids == [second]
    assert engine.find(thread="nobody").ids == []


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("since", "yesterday"),
        ("until", "2026-13-01"),
        ("order", "oldest"),
        ("limit", 0),
        ("limit", 1001),
        ("cursor", "nonsense"),
        ("cursor", ""),
        ("cursor", "é"),
    ],
)
def test_a_wrong_argument_is_named(engine: Engine, argument: str, value: object) -> None:
    refusal = engine.refusal(**{argument: value})
    assert isinstance(refusal, InvalidArgument)
    assert argument in refusal.message


def test_an_unknown_channel_is_not_found(engine: Engine) -> None:
    refusal = engine.refusal(channels=["general", "nowhere"])
    assert isinstance(refusal, NotFound)
    assert "nowhere" in refusal.message


# ---- order and pages


def test_the_best_match_comes_first_where_asked_for(engine: Engine) -> None:
    bus = engine.bus
    long = bus.send("apple " + "filler words of no interest " * 20)
    best = bus.send("apple apple pie")
    middle = bus.send("an apple among several other things")
    bus.send("pear")
    assert engine.search("apple").ids == [middle, best, long]
    assert engine.find("apple", order="relevance").ids == [best, middle, long]
    assert engine.find(order="relevance").ids == engine.find().ids


@pytest.mark.parametrize("order", ["newest", "relevance"])
def test_pages_together_are_the_whole(engine: Engine, order: str) -> None:
    ids = engine.bus.send_many([f"apple {'pie ' * (n % 7)}" for n in range(250)])
    whole = engine.search("apple", order=order, limit=1000).ids
    assert sorted(whole) == sorted(ids)
    pages = engine.pages("apple", order=order, limit=30)
    assert [len(page) for page in pages] == [30] * 8 + [10]
    assert [each for page in pages for each in page] == whole


def test_a_full_last_page_has_no_cursor(engine: Engine) -> None:
    engine.bus.send_many(["apple"] * 4)
    assert engine.pages("apple", limit=2) == [["m4", "m3"], ["m2", "m1"]]
    assert engine.search("pear").cursor is None


@pytest.mark.parametrize("order", ["newest", "relevance"])
def test_continuation_survives_what_comes_and_goes(engine: Engine, order: str) -> None:
    bus = engine.bus
    ids = bus.send_many([f"apple {'pie ' * (n % 5)}" for n in range(40)])
    whole = engine.search("apple", order=order).ids
    first = engine.find("apple", order=order, limit=10)
    later = bus.send_many(["apple apple"] * 30)
    gone = [first.ids[-1], first.ids[0], whole[15], whole[30]]
    bus.evict(*gone)
    rest = engine.search("apple", order=order, limit=100, cursor=first.cursor).ids
    assert rest == [each for each in whole[10:] if each not in gone]
    assert set(ids) >= set(rest)
    assert not set(later) & set(rest)


def test_a_cursor_belongs_to_its_search(engine: Engine) -> None:
    engine.bus.send_many(["apple"] * 5)
    cursor = engine.search("apple", limit=2).cursor
    for changed in ({"query": "pear"}, {"order": "relevance"}, {"sender": "Sam"}):
        arguments = {"query": "apple", "cursor": cursor, **changed}
        refusal = engine.refusal(**arguments)
        assert isinstance(refusal, InvalidArgument)
        assert "another search" in refusal.message
    assert engine.find("apple", limit=100, cursor=cursor).ids == ["m3", "m2", "m1"]


def test_bytes_end_a_page_and_one_message_always_comes(engine: Engine) -> None:
    ids = engine.bus.send_many(["apple " + "x" * 1000] * 5)[::-1]
    found = engine.search("apple", max_bytes=1)
    assert found.ids == ids[:1]
    assert found.cursor
    size = len(str(found.messages[0]["content"])) + 400
    assert engine.find("apple", max_bytes=2 * size + size // 2).ids == ids[:2]
    assert engine.pages("apple", max_bytes=1) == [[each] for each in ids]


# ---- what is current


def test_only_the_current_revision_of_a_memory_is_found(engine: Engine) -> None:
    memory = engine.bus.send("roses are red", "memory")
    assert engine.search("red").ids == [memory]
    revision = engine.bus.edit(memory, "roses are blue")
    assert engine.search("red").ids == []
    assert engine.find("roses").ids == [revision]
    assert engine.find("blue", kind="memory").ids == [revision]
    engine.bus.delete(revision)
    assert engine.search("roses").ids == []
    assert engine.find().ids == []


def test_what_retention_removed_is_not_found(engine: Engine) -> None:
    ids = engine.bus.send_many(["apple"] * 6)
    assert engine.search("apple").ids == ids[::-1]
    engine.bus.evict(*ids[:3])
    assert engine.search("apple").ids == ids[:2:-1]
    assert engine.find("-pear").ids == ids[:2:-1]


def test_more_that_is_gone_than_fits_a_page_is_passed_over(engine: Engine) -> None:
    first = engine.bus.send_many(["apple"] * 3)
    gone = engine.bus.send_many(["apple pie"] * 250)
    engine.search("apple")
    engine.bus.evict(*gone)
    for order in ("newest", "relevance"):
        assert engine.search("apple", order=order, limit=2).ids == first[:0:-1]


# ---- snippets


def test_snippets_show_the_place(engine: Engine) -> None:
    engine.bus.send("filler words\n" * 100 + "here is the Needle_Case you want" + " and more" * 100)
    engine.bus.send("文" * 300 + "京都民芸館" + "字" * 300)
    for query, shown in (
        ("needle_case", "Needle_Case"),
        ("needle", "Needle_Case"),
        ("need*", "Needle_Case"),
        ("京都民", "京都民芸館"),
    ):
        (snippet,) = engine.search(query).snippets
        assert shown in snippet
        assert len(snippet) <= 210
        assert "\n" not in snippet
        assert snippet.startswith("…")
        assert snippet.endswith("…")
    assert engine.find("-京都").snippets[0].startswith("filler words filler")
