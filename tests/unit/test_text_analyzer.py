"""Terms are stems without stop words; compounds give themselves and their parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from askalike.text import analyzer as module
from askalike.text.analyzer import LONGEST_TERM, STOP_WORDS, Analyzer
from askalike.text.characters import without_accents
from askalike.text.settings import LANGUAGES, TextSettings


def _terms(text: str, **choices: str | bool) -> list[str]:
    return Analyzer(TextSettings.from_json(choices)).terms(text)


def test_stop_words_go_and_words_are_stemmed() -> None:
    assert _terms("The drives are mounting") == ["drive", "mount"]


def test_question_words_and_negations_are_kept() -> None:
    assert _terms("why is it not without", stem=False) == ["why", "not", "without"]


@pytest.mark.parametrize(
    "words", ["NFT NFTs nfts", "SPO SPOs", "VM VMs", "PDF PDFs", "CPU CPUs", "API APIs", "UTXO UTXOs"]
)
def test_plurals_of_initialisms_equal_their_singular(words: str) -> None:
    assert len(set(Analyzer(TextSettings()).terms(words))) == 1


def test_initialisms_equal_no_other_word() -> None:
    words = "API apy CSS CS DNS HTTP HTTPS plus bus class GPS"
    assert len(set(Analyzer(TextSettings()).terms(words))) == len(words.split())


def test_stemming_and_stop_words_can_be_left_out() -> None:
    assert _terms("The Drives", stem=False, stop_words=False) == ["the", "drives"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [("22.04", "22.04"), ("C++", "c++"), ("x11s", "x11s")],
)
def test_tokens_kept_whole_are_not_stemmed(text: str, whole: str) -> None:
    assert _terms(text)[0] == whole


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("resolv.conf", "/etc/resolv.conf"),
        ("example.org", "https://www.example.org/page"),
        ("http 404", "HTTP-404"),
        ("next", "the end.Next sentence"),
        ("5.15.0", "5.15.0-91-generic"),
        ("c++", "c++17"),
        ("1000", "1,000"),
        ("don't", "dont"),
        ("user", "the user’s"),
        ("WIFI", "wifi"),
    ],
)
def test_a_query_shares_all_its_terms_with(query: str, text: str) -> None:
    assert set(_terms(query)) <= set(_terms(text))


def test_english_contractions_leave_their_first_word() -> None:
    assert _terms("we'll she'll they're can't user's", stem=False) == ["cant", "user"]


def test_other_languages_part_words_at_apostrophes() -> None:
    assert _terms("l’avion d'été", language="french", stem=False) == ["avion", "ete"]


def test_a_long_word_is_cut() -> None:
    assert _terms("x1" * 100) == [("x1" * 100)[:LONGEST_TERM]]


def test_the_first_word_of_each_term_is_shown_as_the_text_writes_it() -> None:
    analyzer, text = Analyzer(TextSettings()), "Don’t  mount (/etc/FSTAB), Café\u200b or Core™, mounting!"
    assert list(analyzer.first_among(text, set(analyzer.terms(text))).items()) == [
        ("dont", "Don’t"),
        ("mount", "mount"),
        ("/etc/fstab", "/etc/FSTAB"),
        ("fstab", "/etc/FSTAB"),
        ("cafe", "Café\u200b"),
        ("coretm", "Core™"),
    ]
    assert analyzer.first_among(text, set()) == {}


def test_code_can_be_left_out() -> None:
    prepared = Analyzer(TextSettings(with_code=False)).prepare("", "<p>a drive</p><pre>sudo</pre>", "html")
    assert prepared.body == ["drive"]


def test_a_full_memory_changes_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"word{number % 7} (mounting), /etc/file{number % 5}" for number in range(40))
    expected = Analyzer(TextSettings()).terms(text)
    monkeypatch.setattr(module, "_MOST_PIECES", 3)
    monkeypatch.setattr(module, "_MOST_WORDS", 2)
    analyzer = Analyzer(TextSettings())
    assert analyzer.terms(text) == expected


def test_threads_share_an_analyzer() -> None:
    analyzer = Analyzer(TextSettings())
    texts = [" ".join(f"mounting{number + shift} running" for number in range(50)) for shift in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(analyzer.terms, texts)) == [Analyzer(TextSettings()).terms(text) for text in texts]


@pytest.mark.parametrize(
    ("language", "word", "stem"),
    [
        ("english", "connections", "connect"),
        ("german", "häuser", "haus"),
        ("spanish", "canciones", "cancion"),
        ("portuguese", "quilométricas", "quilometr"),
        ("russian", "вагонами", "вагон"),
        ("finnish", "edeltäjien", "edeltaj"),
    ],
)
def test_the_stem_of_a_known_word(language: str, word: str, stem: str) -> None:
    assert _terms(word, language=language) == [stem]


def test_stop_words_belong_to_a_language_and_are_dropped() -> None:
    for language, words in STOP_WORDS.items():
        assert language in LANGUAGES
        assert _terms(" ".join(sorted(words)), language=language) == []


def test_a_language_without_a_list_drops_nothing() -> None:
    assert "tamil" not in STOP_WORDS
    assert len(_terms("the is a", language="tamil")) == 3


def test_the_terms_of_many_words_are_those_of_each() -> None:
    words = ["mounting", "the", "visas", "zzyzx", "x" * 80, "söhne", "y"]
    for settings in (TextSettings(), TextSettings(language="german"), TextSettings(stem=False)):
        analyzer = Analyzer(settings)
        assert analyzer.term_of_each(words) == [next(iter(analyzer.terms(word)), "") for word in words]


@pytest.mark.parametrize(
    ("language", "spellings"),
    [
        ("turkish", ["ışık", "Işık", "IŞIK", "isik"]),
        ("turkish", ["istanbul", "İstanbul", "İSTANBUL"]),
        ("spanish", ["canción", "cancion", "CANCIÓN"]),
        ("french", ["réseau", "reseau"]),
        ("german", ["drucker löschen", "drucker loschen"]),
        ("english", ["café", "cafe", "CAFÉ"]),
        ("none", ["mật khẩu", "mat khau"]),
        ("none", ["サーバー", "サーバ"]),
        ("none", ["라우터", "라우터가", "라우터에서", "라우터를"]),
    ],
)
def test_spellings_of_a_word_have_one_term(language: str, spellings: list[str]) -> None:
    assert len({tuple(_terms(spelling, language=language)) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    ("word", "title"),
    [
        ("รหัสผ่าน", "เปลี่ยนรหัสผ่านอีเมลอย่างไร"),
        ("ពាក្យសម្ងាត់", "តើខ្ញុំអាចផ្លាស់ប្តូរពាក្យសម្ងាត់យ៉ាងដូចម្តេច"),
        ("ລະຫັດຜ່ານ", "ປ່ຽນລະຫັດຜ່ານແນວໃດ"),
        ("စကားဝှက်", "စကားဝှက်ဘယ်လိုပြောင်းမလဲ"),
    ],
)
def test_a_word_within_text_without_spaces_is_there(word: str, title: str) -> None:
    assert set(_terms(word, language="none")) <= set(_terms(title, language="none"))
    analyzer = Analyzer(TextSettings(language="none"))
    spans = analyzer.spans_among(title, set(analyzer.terms(word)))
    assert word in title
    assert {letter for start, end in spans for letter in title[start:end]} >= set(word)


def test_operators_that_stand_alone_are_words() -> None:
    assert _terms("What does `!==` do?") == ["what", "!=="]
    assert _terms("(== vs ===)") == ["==", "vs", "==="]
    assert _terms("wait ... -- ok ***** :-) = /") == ["wait", "ok"]


def test_short_korean_words_keep_what_looks_like_a_particle() -> None:
    assert _terms("사과 회의", language="none") == ["사과", "회의"]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("french", "déjà problème réinitialiser téléphone sécurité sécurités préféré"),
        ("german", "zurücksetzen Größe Möglichkeiten früher übertragen"),
        ("hungarian", "nyomtató hálózat képernyő jelszó billentyűzet frissítések útválasztó beállításai"),
        ("italian", "perché città qualità possibilità velocità"),
        ("polish", "zresetować połączenie dźwięk"),
        ("portuguese", "atualização atualizações configuração conexões senão não impressão"),
        ("romanian", "rețeaua tastatură actualizări funcționează aplicație informații mașină"),
        ("spanish", "contraseña canción configuración instalación rápidamente"),
        ("swedish", "återställa lösenord skärm"),
        ("turkish", "bağlantı dosyaları sürücüler hataları ayarları yazıcıyı güncelleme çalışmıyor"),
    ],
)
def test_words_have_the_same_terms_without_their_accents(language: str, words: str) -> None:
    analyzer = Analyzer(TextSettings(language=language))
    for word in words.split():
        plain = without_accents(word)
        assert analyzer.terms(word) == analyzer.terms(plain), word
        small = [word.lower(), plain.lower()]
        assert len(set(analyzer.term_of_each(small))) == 1, word
