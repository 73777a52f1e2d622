"""Words to index terms: stop words dropped, words stemmed, compounds also taken apart.

Nothing that becomes a term depends on what stands beyond white space, so what became of each piece between white space
is remembered: most pieces of a forum's text are met again and again, and cost one look-up in a dictionary.

Source: M. F. Porter, Snowball (snowballstem.org), through PyStemmer.

**Stop words.** Only articles, pronouns, auxiliaries, conjunctions and the commonest prepositions are listed. Kept on
purpose: question words (``how`` and ``why`` ask different things, and a rare-word weighting gives them little weight
anyway), negations (``not``, ``without``) and words of place and order (``off``, ``after``). A word that is above all a
conjunction is listed although it can ask (French ``que``, Russian ``что``). Larger public lists also name words such as
``computer``, ``help`` and ``open``, which in a forum are the topic.

All entries are case folded, without apostrophes (contractions are taken apart first). Of running text in English they
are a third or more, whatever it is about; of text in another language, next to none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain
from threading import Lock
from typing import Final

import Stemmer

from askalike.text.characters import normalised, without_accents
from askalike.text.markup import readable
from askalike.text.settings import NO_LANGUAGE, TextSettings, stemmer_name
from askalike.text.tokens import is_compound, parts, surfaces, word_of, words
from askalike.types import Markup

_FUNCTION_WORDS: Final[Mapping[str, str]] = {
    "czech": """já mě mně mi můj moje moje ty tě tobě ti tvůj on jeho ho jemu mu ona její ji ono my nás nám vy vás vám
oni jejich se si ten ta to ti ty toho tom tím i a o u v ve z ze s se na do od po za pro při k ke nebo ale že aby jestli
když jsem jsi je jsme jste jsou byl byla bylo byli být bude mám má mají může už tak také tu tam velmi""",
    "danish": """en et den det de dem jeg mig min mit mine du dig din dit dine han ham hans hun hende hendes vi os vores
i jer man sig sin sit sine denne dette disse er var være været har havde have kan kunne skal skulle bliver blev og eller
men at om som så da på af til for med fra ved også meget der""",
    "dutch": """de het een ik me mij mijn je jij jou jouw u uw hij hem zijn zij ze haar wij we ons onze jullie hun hen
dit dat deze die er ben bent is was waren wordt worden heb hebt heeft hebben had hadden kan kunnen zal zou zullen moet
moeten en of maar als dan om te van in op aan met voor bij uit ook nog al wel zo heel t s""",
    "english": """a an the i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
himself she her hers herself it its itself they them their theirs themselves this that these those there here am is are
was were be been being have has had having do does did doing done will would shall should can could may might must and
or but if so as than then of to in on at by for from with about into onto some any such just also too very really im ive
id youre its thats theres eg ie etc s""",
    "finnish": """minä minun minua minulla minulle sinä sinun sinua hän hänen me meidän te teidän he heidän se sen sitä
siinä siitä tämä tämän tätä tässä ne nämä olen olet on olemme olette ovat oli olivat ollut olla voi voin voiko ja tai
mutta että jos kun niin kuin myös vain jo""",
    "french": """le la les un une des du de l d j m t s c n qu je me moi tu te toi il elle on nous vous ils elles se lui
leur leurs mon ma mes ton ta tes son sa ses notre nos votre vos ce cet cette ces cela ça ceci en y au aux à et ou mais
si que qui dont suis es est sommes êtes sont était étaient être ai as a avons avez ont avait avaient avoir eu fait faire
peut peux dans sur par pour avec comme donc aussi très bien plus tout tous toute""",
    "german": """der die das den dem des ein eine einen einem einer eines ich mich mir mein meine meinen meinem meiner
meines du dich dir dein deine deinen deinem deiner er ihn ihm sein seine seinen seinem seiner sie ihr ihre ihren ihrem
ihrer es wir uns unser unsere unseren unserem euch euer eure man sich dies diese dieser dieses diesen diesem bin bist
ist sind seid war waren habe hast hat haben hatte hatten werde wird werden wurde wurden kann kannst können könnte soll
sollte muss müssen und oder aber dass daß wenn als auch so noch nur schon sehr da dann hier dort zu zum zur in im an am
auf von vom bei beim mit für aus um ja mal""",
    "hungarian": """a az egy én engem nekem te téged neked ő őt neki mi minket nekünk ti ők ez ezt ezek azt azok és vagy
de hogy ha is van vannak volt voltak lesz lenni meg el már még csak úgy így itt ott nagyon""",
    "italian": """il lo la i gli le l un uno una un di del dello della dei degli delle dell a al allo alla ai agli alle
all da dal dalla dai dall in nel nella nei nell su sul sulla sui sull con per tra fra d c io mi me mio mia miei mie tu
ti te tuo tua lui lei si ne ci vi noi voi loro suo sua suoi sue questo questa questi queste quello quella e ed o ma se
che sono sei è siamo siete era erano stato stata essere ho hai ha abbiamo avete hanno aveva avere posso può anche più
molto già""",
    "norwegian": """en ei et den det de dem jeg meg min mi mitt mine du deg din ditt dine han ham hans hun henne hennes
vi oss vår vårt våre dere seg sin sitt sine denne dette disse er var være vært har hadde ha kan kunne skal skulle blir
ble og eller men at om som så da i på av til for med fra ved også veldig der""",
    "polish": """ja mnie mi mną mój moja moje ty ciebie ci twój on jego go jemu mu ona jej ją ono my nas nam wy was wam
oni one ich im się ten ta to te tego tej tym i a o u w we z ze na do od po za dla przy przez oraz lub albo ale że żeby
jeśli jestem jesteś jest są był była było były być będzie mam ma mają może można już tak też także tu tam bardzo""",
    "portuguese": """o a os as um uma uns umas de do da dos das em no na nos nas num numa ao aos à às por pelo pela para
com eu me mim meu minha meus minhas tu te teu tua você vocês ele ela eles elas se lhe seu sua seus suas nós nosso nossa
este esta isto esse essa isso aquele aquela e ou mas que é sou são era eram foi ser sido está estou estão estava tem
tenho têm tinha há ter posso pode podem muito mais também já""",
    "russian": """я меня мне мной мой моя моё мое мои ты тебя тебе твой он его ему им она ее её ей оно мы нас нам наш
наша вы вас вам ваш они их это этот эта эти этого то тот та те и а но или что чтобы если же ли бы в во на с со к ко у о
об от до из за по для при быть был была было были есть буду будет так уже еще ещё тоже там тут вот очень""",
    "spanish": """el la los las un una unos unas lo al del de yo me mi mis mí tú te tu tus él ella ello ellos ellas se
le les su sus nos nosotros nuestro nuestra os este esta esto estos estas ese esa eso esos esas y e o u pero si que en a
por para con es soy son era eran fue ser sido estoy está están estaba he ha han había haber hay puedo puede pueden tengo
tiene muy más también ya así""",
    "swedish": """en ett den det de dem jag mig min mitt mina du dig din ditt dina han honom hans hon henne hennes vi
oss vår vårt våra ni er sin sitt sina man sig denna detta dessa är var vara varit har hade ha kan kunde ska skulle blir
blev och eller men att om som så då i på av till för med från vid även också mycket""",
    "turkish": """bir bu şu o ben beni bana benim sen seni sana senin onu ona onun biz bizi bize bizim siz sizi sizin
onlar onları ve veya ya ama fakat ki de da ile için gibi mi mı mu mü dir dır çok daha en var idi olan olarak bunu
buna""",
}
STOP_WORDS: Final[dict[str, frozenset[str]]] = {
    language: frozenset(word.casefold() for word in listed.split()) for language, listed in _FUNCTION_WORDS.items()
}
"""Snowball language → its function words. A language that is not here has no list, and none of its words is dropped."""
STOP_WORDS.update(dutch_porter=STOP_WORDS["dutch"], porter=STOP_WORDS["english"])


LEAST_SHARE: Final = 0.12
"""Below it a text does not read like the language: English forums measure from 0.34 (their titles alone from 0.22),
forums in nine other languages at most 0.07 (0.09); see LOG.md."""

_LEAST_WORDS: Final = 50
_MOST_COUNTED: Final = 20_000


def reads_like(texts: Iterable[str], language: str) -> bool | None:
    """Return whether some texts read like a language, by the share of its function words among theirs.

    At most about 20,000 words are read. None where the language has no list, or there are fewer than 50 words: too few
    to tell by.

    >>> reads_like(["The router is in the cellar and nobody hears it"] * 5, "english")
    True
    >>> reads_like(["Der Router steht im Keller und niemand hört ihn"] * 6, "english")
    False
    >>> reads_like(["Der Router steht im Keller"], "english")  # too few words
    """
    listed, read, listed_words = STOP_WORDS.get(language), 0, 0
    if listed is None:
        return None
    for text in texts:
        text_words = words(text)
        read += len(text_words)
        listed_words += sum(word in listed for word in text_words)
        if read >= _MOST_COUNTED:
            break
    return listed_words / read >= LEAST_SHARE if read >= _LEAST_WORDS else None


LONGEST_TERM = 64
"""Characters of a term; of a longer one the first 64 are kept, so two addresses may share a term."""

IDLE_WORDS: Final = frozenset(["how", "why", "when", "where", "what", "which", "who", "only", "every", "now"])
"""English words that are in any question: where a title has others, these neither match nor lack."""

_INITIALISMS: Final = frozenset(
    ["aws", "cms", "dns", "gps", "hls", "https", "nfs", "ntfs", "sms", "tls", "vps", "xps", "plus", "thus"]
)
"""Their last letter is no plural."""
_PLURAL_OF_INITIALISM: Final = re.compile("(?!.*ss)[b-df-hj-np-tv-xz]{2,}[aeiou]?s")
"""Snowball keeps the last letter of "nfts", "vms" and "cpus": it takes them for words without a vowel."""
_SHORT_WITH_Y: Final = re.compile("[aeiou][b-df-hj-np-tv-xz]y")
"""Snowball makes "apy" "api"."""

_TURKISH_CONSONANTS = "[bcçdfgğhjklmnprsştvyz]{1,3}"
_LEFT_OUT_ACCENTS: Final[Mapping[str, tuple[tuple[re.Pattern[str], str], ...]]] = {
    language: tuple((re.compile(f"{plain}$"), accented) for plain, accented in endings.items())
    for language, endings in {
        "french": {"ite": "ité", "ites": "ités", "^deja": "déjà"},
        "hungarian": {"o": "ó"},
        "italian": {"(al|il|ar|os|iv|ac|ic|oc|an|un)ita": r"\1ità"},
        "polish": {"owac": "ować"},
        "portuguese": {"cao": "ção", "coes": "ções", "sao": "são", "soes": "sões", "^nao": "não"},
        "romanian": {"ura": "ură", "eaza": "ează", "ati(e|a|i)": r"ați\1"},
        "turkish": {  # vowels agree: no i follows a or ı, no u precedes e
            f"([aı]{_TURKISH_CONSONANTS})i(.*)": r"\1ı\2",
            f"([aı]{_TURKISH_CONSONANTS})i({_TURKISH_CONSONANTS})?": r"\1ı\2",
            f"u({_TURKISH_CONSONANTS}e.*)": r"ü\1",
        },
    }.items()
}
"""Language → endings as people type them without accents, and with the accents by which Snowball knows them."""

_OF_ENGLISH = ("english", "porter")
_SIGN = r"[!=<>&|+*/%^~:?.@#$\\-]"
_SIGNS = re.compile(f"{_SIGN}*(?:[=<>&|+^%]|::){_SIGN}*")
_CONTRACTION = re.compile(r"'(?:s|m|d|re|ve|ll)$")
_PIECE = re.compile(r"\S+")
_HAS_DIGIT = re.compile(r"\d")
_BEFORE, _AFTER = "(\"'[*", ".,;:!?)\"']*"  # around a plain word, these are never part of a token
_LONGEST_REMEMBERED = 64
_MOST_SIGNS = 4
_MOST_PIECES = 1 << 17  # on 50,000 questions, a quarter as many take 1.7 times as long, twice as many no less
_MOST_WORDS = 1 << 14
_MOST_STEMS = 1 << 16


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question's index terms, in order and with repetitions; title and body apart."""

    title: list[str]
    body: list[str]


class _Memory(dict[str, tuple[str, ...]]):
    """piece → its terms, worked out when first asked for.

    When full it is set aside and begun anew, and what is asked for again is taken over: what is in use stays, at most
    twice ``most`` pieces are held, and a look-up that finds its piece costs what a dictionary's does.
    """

    def __init__(self, work_out: Callable[[str], tuple[str, ...]], most: int) -> None:
        super().__init__()
        self._work_out = work_out
        self._most = most
        self._older: dict[str, tuple[str, ...]] = {}

    def __missing__(self, piece: str) -> tuple[str, ...]:
        terms = self._older.get(piece)
        if terms is None:
            terms = self._work_out(piece)
            if len(piece) > _LONGEST_REMEMBERED:
                return terms
        if len(self) >= self._most:
            self._older = dict(self)
            self.clear()
        self[piece] = terms
        return terms


_TURKISH_SMALL: Final = {ord("I"): "ı", ord("İ"): "i"}
_KOREAN_PARTICLE: Final = re.compile(
    "^([가-힣]{2,}?)(?:에서|에게|한테|으로|부터|까지|처럼|보다|은|는|이|가|을|를|에|로|와|과|도|만|의)$"
)


class Analyzer:
    """Turns text into index terms, the same way for questions and queries. Safe to share between threads.

    A word kept whole by ``tokens`` is not stemmed, and gives itself and its parts, so that ``resolv.conf`` finds
    ``/etc/resolv.conf``. Terms have no accents, so that ``cancion`` finds ``canción``; Korean words have no particles;
    in Turkish, ``I`` is the capital of ``ı``. A word with a digit is not stemmed. In English, contractions lose their
    second half (``user's`` is ``user``, ``we'll`` is ``we``), other apostrophes go (``can't`` is ``cant``), and
    initialisms lose the s of their plural (``NFTs`` is ``nft``); in every other language an apostrophe parts words
    (``l'avion`` is ``l``, ``avion``). Languages without a list in ``STOP_WORDS`` drop no stop words. Terms have 1 to 64
    characters and no white space.

    In a forum of several languages this one reads the main one; ``of`` and ``for_query`` give what reads the others.

    Args:
        by: the stemmer of the language that its texts are written in, where it is another than that of the terms.

    ``idle_terms`` are those of ``IDLE_WORDS``, where texts are read as English.

    >>> Analyzer(TextSettings()).terms("Why is the drive mounted read-only in /boot/grub.cfg?")
    ['whi', 'drive', 'mount', 'read', 'onli', '/boot/grub.cfg', 'boot', 'grub.cfg', 'grub', 'cfg']
    """

    def __init__(self, settings: TextSettings, by: str = "") -> None:
        self.settings = settings
        written = by or settings.language
        names = {settings.language, written} if settings.stop_words else ()
        stops = frozenset[str]().union(*(STOP_WORDS.get(name, frozenset()) for name in names))
        self._stops = stops | {without_accents(word) for word in stops}
        self._is_turkish = "turkish" in (settings.language, written)
        self._is_english = written in _OF_ENGLISH
        is_stemmed = settings.stem and settings.language != NO_LANGUAGE
        self._stemmer = Stemmer.Stemmer(settings.language, 0) if is_stemmed else None
        self._has_english_stems = is_stemmed and settings.refined and settings.language in _OF_ENGLISH
        self._left_out_accents = _LEFT_OUT_ACCENTS.get(settings.language, ())
        self._lock = Lock()  # a Snowball stemmer has inner state
        self._memory = _Memory(self._terms_of_piece, _MOST_PIECES)
        self._of_word = _Memory(self._terms_of_word, _MOST_WORDS)
        self._others: dict[tuple[str, str], Analyzer] = {}
        self.idle_terms = frozenset(self.term_of_each(sorted(IDLE_WORDS)) if self._is_english else ()) - {""}

    def of(self, language: str) -> Analyzer:
        """Return what reads a text in a language, by its code: the forum's main one where that is none of its own.

        >>> several = Analyzer(TextSettings(languages=("en", "de")))
        >>> several.of("de").terms("Die Drucker druckten"), several.of("").terms("Printers printed")
        (['druck', 'druckt'], ['printer', 'print'])
        """
        return self.for_query(language, language)

    def for_query(self, language: str, by: str) -> Analyzer:
        """Return what gives the terms that questions in one language have of the words of a query in another.

        Words are brought to stems as in these questions. What the query's own language drops is dropped too: its
        function words are rare words elsewhere.

        >>> several = Analyzer(TextSettings(languages=("en", "de")))
        >>> several.for_query("en", by="de").terms("Die Docker mounten"), several.of("de").terms("Die Docker mounten")
        (['docker', 'mounten'], ['dock', 'mount'])
        """
        if not self.settings.languages:
            return self
        name, written = (
            stemmer_name(code) if code in self.settings.languages else self.settings.language for code in (language, by)
        )
        if name == written == self.settings.language:
            return self
        with self._lock:
            analyzer = self._others.get((name, written))
            if analyzer is None:
                read = replace(self.settings, language=name, languages=())
                analyzer = self._others[name, written] = Analyzer(read, written)
        return analyzer

    def readings(self, by: str) -> list[Analyzer]:
        """Return what gives all terms that the forum's questions may have of a query in a language, its own first."""
        own = self.of(by)
        return list(dict.fromkeys([own, *(self.for_query(language, by) for language in self.settings.languages)]))

    def prepare_query(self, by: str, title: str, body: str, markup: Markup) -> list[Prepared]:
        """Return what ``prepare`` gives of a query in a language, by each of the ``readings``."""
        return [reading.prepare(title, body, markup) for reading in self.readings(by)]

    def terms(self, text: str) -> list[str]:
        """Return the index terms of ``text``, in order and with repetitions."""
        pieces = (text.lower() if text.isascii() and not self._is_turkish else text).split()
        return list(chain.from_iterable(map(self._memory.__getitem__, pieces)))

    def term_of_each(self, words: Sequence[str]) -> list[str]:
        """Return the term of each word of small letters alone, "" for a stop word.

        It is that of ``terms``; nothing is remembered, since most of these may be no words at all.

        >>> Analyzer(TextSettings()).term_of_each(["mounting", "the", "mountign"])
        ['mount', '', 'mountign']
        """
        cut = [word[:LONGEST_TERM] for word in words]
        if self._stemmer is not None:
            cut = [stem or word for stem, word in zip(self._stems(cut), cut, strict=True)]
        return ["" if word in self._stops else without_accents(term) for word, term in zip(words, cut, strict=True)]

    def first_among(self, text: str, wanted: Set[str]) -> dict[str, str]:
        """Return those of the terms wanted that the text has → the word of its first place, in the order of these.

        >>> Analyzer(TextSettings()).first_among("Mounted disks: mounting disks", {"disk", "mount"})
        {'mount': 'Mounted', 'disk': 'disks'}
        """
        memory, first_words = self._memory, dict[str, str]()
        lacking = set(wanted)
        for piece in dict.fromkeys(text.split()):
            if not lacking.isdisjoint(memory[piece]):
                for start, end, term in self._places(piece):
                    if term in lacking:
                        lacking.remove(term)
                        first_words[term] = piece[start:end]
        return first_words

    def spans_among(self, text: str, wanted: Set[str]) -> list[tuple[int, int]]:
        """Return where ``text`` holds the words of terms that are wanted: (start, end) of each, ascending.

        >>> Analyzer(TextSettings()).spans_among("無線LANが切れる", {"線", "lan"})
        [(1, 2), (2, 5)]
        """
        memory, all_spans = self._memory, list[tuple[int, int]]()
        pieces = text.split()
        places = [place for place, piece in enumerate(pieces) if not wanted.isdisjoint(memory[piece])]
        starts: Iterable[int] = [len(" ".join(pieces[:place])) + (place > 0) for place in places]
        if places and " ".join(pieces) != text:  # not one space between two, and none around
            each = [piece.start() for piece in _PIECE.finditer(text)]
            starts = [each[place] for place in places]
        for at, piece in zip(starts, map(pieces.__getitem__, places), strict=True):
            spans = [(at + start, at + end) for start, end, term in self._places(piece) if term in wanted]
            all_spans += dict.fromkeys(spans)  # a compound is there once for each of its terms
        return all_spans

    def informative(self, terms: Sequence[str]) -> list[str]:
        """Return the terms without idle ones; all of them where there are no others.

        >>> analyzer = Analyzer(TextSettings())
        >>> analyzer.informative(analyzer.terms("Why now? The disk!")), analyzer.informative(["whi", "now"])
        (['disk'], ['whi', 'now'])
        """
        return [term for term in terms if term not in self.idle_terms] or list(terms)

    def prepare(self, title: str, body: str, markup: Markup) -> Prepared:
        """Return the index terms of a question; code blocks count if the settings say so, banners never."""
        return Prepared(self.terms(title), self.terms(readable(body, markup, with_code=self.settings.with_code)))

    def _places(self, piece: str) -> Iterator[tuple[int, int, str]]:
        """Yield start and end of a word in ``piece``, and a term of it.

        What the text had there: the piece without the signs around it where normalising moved its characters.
        """
        core = piece.lstrip(_BEFORE)
        begin = len(piece) - len(core)
        core = core.rstrip(_AFTER)
        if core.isascii() and core.isalnum():  # most pieces: the general way below gives the same
            for term in self._memory[core]:
                yield begin, begin + len(core), term
            return
        form = normalised(piece)
        stripped = piece.strip(_BEFORE + _AFTER) or piece
        whole = piece.find(stripped)
        position = 0
        for surface in self._surfaces(form):
            start = form.find(surface, position)
            position = start + len(surface)
            place = (start, position) if len(form) == len(piece) else (whole, whole + len(stripped))
            for term in self._of_word[self._word_of(surface)]:
                yield *place, term

    def _terms_of_piece(self, piece: str) -> tuple[str, ...]:
        core = piece.lstrip(_BEFORE).rstrip(_AFTER)
        if core.isascii() and core.isalnum():  # most pieces: the general way below gives the same
            return self._memory[core] if core != piece else tuple(self._stemmed(self._word_of(core)))
        words = map(self._word_of, self._surfaces(normalised(piece)))
        return tuple(chain.from_iterable(map(self._of_word.__getitem__, words)))

    def _surfaces(self, piece: str) -> list[str]:
        """Return the tokens of a piece; of one without letters and digits its operators, as people ask for them."""
        tokens = surfaces(piece)
        if tokens or not self.settings.refined:
            return tokens
        return [signs for signs in _SIGNS.findall(piece) if 2 <= len(signs) <= _MOST_SIGNS]

    def _word_of(self, surface: str) -> str:
        return word_of(surface.translate(_TURKISH_SMALL) if self._is_turkish else surface)

    def _terms_of_word(self, word: str) -> tuple[str, ...]:
        if not is_compound(word):
            return tuple(self._terms_of_simple(word))
        terms = [without_accents(word)[:LONGEST_TERM]]
        for part in parts(word):
            is_whole = is_compound(part)
            terms += [without_accents(part)[:LONGEST_TERM]] if is_whole else self._terms_of_simple(part)
        return tuple(dict.fromkeys(terms))

    def _terms_of_simple(self, word: str) -> list[str]:
        if "'" not in word:
            return self._stemmed(word)
        if self._is_english:
            return self._stemmed(_CONTRACTION.sub("", word).replace("'", ""))
        return list(chain.from_iterable(map(self._stemmed, filter(None, word.split("'")))))

    def _stemmed(self, word: str) -> list[str]:
        if not word or word in self._stops:
            return []
        word = _KOREAN_PARTICLE.sub(r"\1", word[:LONGEST_TERM])
        if self._stemmer is None or not (word.isalpha() or _HAS_DIGIT.search(word) is None):
            return [without_accents(word)]
        [stem] = self._stems([word])
        return [without_accents(stem[:LONGEST_TERM] or word)]

    def _stems(self, words: list[str]) -> list[str]:
        """Return the stem of each word; in English, plurals of initialisms have the stem of their singular.

        An ending without its accents is read with them: ``atualizacoes`` has the stem of ``atualizações``.
        """
        if self._has_english_stems:
            words = [word[:-1] if _is_plural_of_initialism(word) else word for word in words]
        for ending, accented in self._left_out_accents:
            words = [ending.sub(accented, word) for word in words]
        assert self._stemmer is not None
        with self._lock:
            stems: list[str] = self._stemmer.stemWords(words)
        if not self._has_english_stems:
            return stems
        return [word if _SHORT_WITH_Y.fullmatch(word) else stem for stem, word in zip(stems, words, strict=True)]


def _is_plural_of_initialism(word: str) -> bool:
    return word not in _INITIALISMS and _PLURAL_OF_INITIALISM.fullmatch(word) is not None


class WordStemmer:
    """Brings words to their stems. Safe to share between threads.

    These stay as they are written: a word that ``tokens`` keeps whole (a path, an address), one with a digit, one of
    more than 64 characters, and one of which nothing would be left.

    Args:
        language: a Snowball stemmer, one of ``settings.LANGUAGES``.

    >>> WordStemmer("english").stems(["routers", "user's", "/etc/hosts", "22.04s"])
    ['router', 'user', '/etc/hosts', '22.04s']
    """

    def __init__(self, language: str) -> None:
        self._stemmer = Stemmer.Stemmer(language, 0)
        self._lock = Lock()  # a Snowball stemmer has inner state
        self._stem = lru_cache(maxsize=_MOST_STEMS)(self._worked_out)

    def stems(self, words: Iterable[str]) -> list[str]:
        """Return the stem of each word, in order."""
        return [word if len(word) > LONGEST_TERM else self._stem(word) for word in words]

    def _worked_out(self, word: str) -> str:
        if not word.isalpha() and (is_compound(word) or _HAS_DIGIT.search(word)):
            return word
        with self._lock:
            stem: str = self._stemmer.stemWord(word)
        return stem or word


@cache
def stemmer_of(language: str) -> WordStemmer:
    """Return the stemmer of a language, the same one whenever it is asked for."""
    return WordStemmer(language)
