"""Function words that carry no topic, per language, and whether a text reads like a language by their share.

Only articles, pronouns, auxiliaries, conjunctions and the commonest prepositions are listed. Kept on purpose: question
words (``how`` and ``why`` ask different things, and a rare-word weighting gives them little weight anyway), negations
(``not``, ``without``) and words of place and order (``off``, ``after``). A word that is above all a conjunction is
listed although it can ask (French ``que``, Russian ``что``). Larger public lists also name words such as
``computer``, ``help`` and ``open``, which in a forum are the topic.

All entries are case folded, without apostrophes (``analyzer`` takes contractions apart first).

Of running text in English they are a third or more, whatever it is about; of text in another language, next to none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from askalike.text.tokens import words

_ENGLISH = """a an the i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
himself she her hers herself it its itself they them their theirs themselves this that these those there here am is
are was were be been being have has had having do does did doing done will would shall should can could may might must
and or but if so as than then of to in on at by for from with about into onto some any such just also too very really
im ive id youre its thats theres eg ie etc s"""
_GERMAN = """der die das den dem des ein eine einen einem einer eines ich mich mir mein meine meinen meinem meiner
meines du dich dir dein deine deinen deinem deiner er ihn ihm sein seine seinen seinem seiner sie ihr ihre ihren ihrem
ihrer es wir uns unser unsere unseren unserem euch euer eure man sich dies diese dieser dieses diesen diesem bin bist
ist sind seid war waren habe hast hat haben hatte hatten werde wird werden wurde wurden kann kannst können könnte soll
sollte muss müssen und oder aber dass daß wenn als auch so noch nur schon sehr da dann hier dort zu zum zur in im an
am auf von vom bei beim mit für aus um ja mal"""
_FRENCH = """le la les un une des du de l d j m t s c n qu je me moi tu te toi il elle on nous vous ils elles se lui
leur leurs mon ma mes ton ta tes son sa ses notre nos votre vos ce cet cette ces cela ça ceci en y au aux à et ou mais
si que qui dont suis es est sommes êtes sont était étaient être ai as a avons avez ont avait avaient avoir eu fait
faire peut peux dans sur par pour avec comme donc aussi très bien plus tout tous toute"""
_SPANISH = """el la los las un una unos unas lo al del de yo me mi mis mí tú te tu tus él ella ello ellos ellas se le
les su sus nos nosotros nuestro nuestra os este esta esto estos estas ese esa eso esos esas y e o u pero si que en a
por para con es soy son era eran fue ser sido estoy está están estaba he ha han había haber hay puedo puede
pueden tengo tiene muy más también ya así"""
_PORTUGUESE = """o a os as um uma uns umas de do da dos das em no na nos nas num numa ao aos à às por pelo pela para
com eu me mim meu minha meus minhas tu te teu tua você vocês ele ela eles elas se lhe seu sua seus suas nós nosso
nossa este esta isto esse essa isso aquele aquela e ou mas que é sou são era eram foi ser sido está estou estão
estava tem tenho têm tinha há ter posso pode podem muito mais também já"""
_ITALIAN = """il lo la i gli le l un uno una un di del dello della dei degli delle dell a al allo alla ai agli alle
all da dal dalla dai dall in nel nella nei nell su sul sulla sui sull con per tra fra d c io mi me mio mia miei mie tu
ti te tuo tua lui lei si ne ci vi noi voi loro suo sua suoi sue questo questa questi queste quello quella e ed o ma se
che sono sei è siamo siete era erano stato stata essere ho hai ha abbiamo avete hanno aveva avere posso può anche
più molto già"""
_DUTCH = """de het een ik me mij mijn je jij jou jouw u uw hij hem zijn zij ze haar wij we ons onze jullie hun hen dit
dat deze die er ben bent is was waren wordt worden heb hebt heeft hebben had hadden kan kunnen zal zou zullen moet
moeten en of maar als dan om te van in op aan met voor bij uit ook nog al wel zo heel t s"""
_SWEDISH = """en ett den det de dem jag mig min mitt mina du dig din ditt dina han honom hans hon henne hennes vi oss
vår vårt våra ni er sin sitt sina man sig denna detta dessa är var vara varit har hade ha kan kunde ska skulle blir
blev och eller men att om som så då i på av till för med från vid även också mycket"""
_DANISH = """en et den det de dem jeg mig min mit mine du dig din dit dine han ham hans hun hende hendes vi os vores i
jer man sig sin sit sine denne dette disse er var være været har havde have kan kunne skal skulle bliver blev og eller
men at om som så da på af til for med fra ved også meget der"""
_NORWEGIAN = """en ei et den det de dem jeg meg min mi mitt mine du deg din ditt dine han ham hans hun henne hennes vi
oss vår vårt våre dere seg sin sitt sine denne dette disse er var være vært har hadde ha kan kunne skal skulle blir
ble og eller men at om som så da i på av til for med fra ved også veldig der"""
_FINNISH = """minä minun minua minulla minulle sinä sinun sinua hän hänen me meidän te teidän he heidän se sen sitä
siinä siitä tämä tämän tätä tässä ne nämä olen olet on olemme olette ovat oli olivat ollut olla voi voin voiko ja tai
mutta että jos kun niin kuin myös vain jo"""
_RUSSIAN = """я меня мне мной мой моя моё мое мои ты тебя тебе твой он его ему им она ее её ей оно мы нас нам наш наша
вы вас вам ваш они их это этот эта эти этого то тот та те и а но или что чтобы если же ли бы в во на с со к ко у о
об от до из за по для при быть был была было были есть буду будет так уже еще ещё тоже там тут вот очень"""
_POLISH = """ja mnie mi mną mój moja moje ty ciebie ci twój on jego go jemu mu ona jej ją ono my nas nam wy was wam
oni one ich im się ten ta to te tego tej tym i a o u w we z ze na do od po za dla przy przez oraz lub albo ale że żeby
jeśli jestem jesteś jest są był była było były być będzie mam ma mają może można już tak też także tu tam bardzo"""
_CZECH = """já mě mně mi můj moje moje ty tě tobě ti tvůj on jeho ho jemu mu ona její ji ono my nás nám vy vás vám oni
jejich se si ten ta to ti ty toho tom tím i a o u v ve z ze s se na do od po za pro při k ke nebo ale že aby jestli
když jsem jsi je jsme jste jsou byl byla bylo byli být bude mám má mají může už tak také tu tam velmi"""
_TURKISH = """bir bu şu o ben beni bana benim sen seni sana senin onu ona onun biz bizi bize bizim siz sizi sizin
onlar onları ve veya ya ama fakat ki de da ile için gibi mi mı mu mü dir dır çok daha en var idi olan olarak bunu
buna"""
_HUNGARIAN = """a az egy én engem nekem te téged neked ő őt neki mi minket nekünk ti ők ez ezt ezek azt azok és vagy
de hogy ha is van vannak volt voltak lesz lenni meg el már még csak úgy így itt ott nagyon"""

STOP_WORDS: Final[dict[str, frozenset[str]]] = {
    language: frozenset(word.casefold() for word in listed.split())
    for language, listed in {
        "czech": _CZECH,
        "danish": _DANISH,
        "dutch": _DUTCH,
        "dutch_porter": _DUTCH,
        "english": _ENGLISH,
        "finnish": _FINNISH,
        "french": _FRENCH,
        "german": _GERMAN,
        "hungarian": _HUNGARIAN,
        "italian": _ITALIAN,
        "norwegian": _NORWEGIAN,
        "polish": _POLISH,
        "porter": _ENGLISH,
        "portuguese": _PORTUGUESE,
        "russian": _RUSSIAN,
        "spanish": _SPANISH,
        "swedish": _SWEDISH,
        "turkish": _TURKISH,
    }.items()
}
"""Snowball language → its function words. A language that is not here has no list, and none of its words is dropped."""


LEAST_SHARE: Final = 0.12
"""Below it a text does not read like the language: English forums measure from 0.34 (their titles alone from 0.22),
forums in nine other languages at most 0.07 (0.09); see LOG.md."""

_LEAST_WORDS: Final = 50
_MOST_WORDS: Final = 20_000


def function_word_share(texts: Iterable[str], language: str) -> float | None:
    """Return the share of the words of some texts that are function words of a language, in [0, 1].

    At most about 20,000 words are read. None where the language has no list, or there are fewer than 50 words: too few
    to tell by.

    >>> function_word_share(["The router is in the cellar and nobody hears it"] * 5, "english")
    0.6
    >>> function_word_share(["Der Router steht im Keller"], "english")  # too few words
    """
    listed, read, found = STOP_WORDS.get(language), 0, 0
    if listed is None:
        return None
    for text in texts:
        held = words(text)
        read += len(held)
        found += sum(word in listed for word in held)
        if read >= _MOST_WORDS:
            break
    return found / read if read >= _LEAST_WORDS else None


def reads_like(texts: Iterable[str], language: str) -> bool | None:
    """Return whether some texts read like a language; None where nothing can be told.

    >>> reads_like(["Der Router steht im Keller und niemand hört ihn"] * 6, "english")
    False
    """
    share = function_word_share(texts, language)
    return None if share is None else share >= LEAST_SHARE
