"""What single words tell: their language, whether they hold a sentence together, and a few attitudes.

A word is looked at once and remembered, so a text costs one lookup a word. Refusals need more than words: the texts
that have a word of one are searched with expressions in twenty languages.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

FUNCTION_WORDS = {
    "en": (
        "the of to and a in is that it for on with as was be by at this are or from not an but have which you he "
        "they his her its we their has had were been will would can could should if then than there when what who "
        "how all no so do does did into only other some any each i my me our your these those while where because "
        "before after also just now more must may next first here again still one two same new over about up out "
        "through between being am"
    ),
    "de": (
        "der die das und ist nicht ein eine einen den dem des zu mit auf für von im es ich wir sie er auch als an "
        "aus bei nach wird werden noch nur so dass wie oder aber hat haben sind war wenn dann dort sonst über um"
    ),
    "fr": (
        "le la les un une des et est ne pas que qui dans pour sur avec ce cette il elle je nous vous de du au aux "
        "en se son sa ses par plus mais ou où comme sont être avoir encore avant si on y car"
    ),
    "es": (
        "el la los las un una y es no que en de del por para con su se lo al como más pero o este esta está son "
        "hay yo nos todavía ya porque cuando muy sin sobre también"
    ),
    "it": (
        "il lo la gli le un una e è non che di del della in per con su si come più ma o questo questa sono ho ha "
        "anche ancora perché quando molto senza"
    ),
    "pt": (
        "o a os as um uma e é não que em de do da por para com seu se no na como mais mas ou este esta são há eu "
        "também ainda porque quando muito sem"
    ),
    "nl": (
        "de het een en is niet dat van te in op met voor zijn ik we ze er ook als aan uit bij naar wordt nog maar "
        "of heeft hebben was wanneer dan om"
    ),
    "pl": "i w na z że nie się do jest to jak ale o po za od dla czy przez tak już tylko jego być są",
    "sv": "och att det som en är på av för med den till inte om ett har jag vi de var men så från eller kan nu",
    "tr": "ve bir bu da de için ile çok ne gibi daha ama olarak var mı değil o şu en sonra kadar",
    "ru": (
        "и в не на я что с как а то по это но он она мы к у из за от для же бы так уже только его её их есть или "
        "если ещё теперь потом там"
    ),
    "zh": "的 了 是 我 在 不 这 有 也 就 和 把 那 再 先 只 没 很 都 到 给 对 要",
    "ja": "の に は を た が で て と し な か も ま す",
    "ko": "은 는 이 가 을 를 에 의 도 로 고 다 한 하",
}
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_STEMS = {
    "thanks": (
        "thank grateful gratitude appreciat obliged indebted danke dank merci remerci gracias agradec obrigad "
        "grazie ringrazi bedankt dzięk tack спасибо благодар teşekkür"
    ),
    "praise": (
        "excellent wonderful amazing brilliant fantastic superb outstanding perfect awesome marvel magnificent "
        "incredible stunning impressive splendid remarkable proud bravo congrat genius masterful flawless "
        "delightful hervorragend großartig génial magnifique excelente maravillos perfetto отличн прекрасн"
    ),
    "apology": (
        "sorry apolog pardon forgive regret entschuldig verzeih désolé excuse disculp perdón scus dispiace "
        "desculp прост извин przepr förlåt beklag"
    ),
    "waiting": (
        "wait await standby standing ready instruct whenever hold let tell until your when abwart warte sag "
        "attend dites espera dime жду 请 等"
    ),
    "done": (
        "complete done finish accomplish ready success resolved fertig erledigt abgeschlossen terminé fini "
        "terminado acabado completat concluíd готов заверш"
    ),
    "decline": (
        "must possible can't can’t cannot can not won't won’t unable able afraid sorry refus declin beyond impossib "
        "rather give "
        "quit stop nicht leider ablehn weiger pas impossible puedo siento niego posso riesco dispiace desculp "
        "consigo recus kan niet helaas nie niestety przykro inte ikke tyvärr maalesef üzgünüm không не сожален"
    ),
}
_WHOLE_STEMS = (
    "must possible can not give quit stop able pas kan niet nie inte ikke не rather ready let tell hold your when "
    "until "
    "done fini danke dank tack posso puedo không standing прост"
)
_WHOLE = frozenset(_WHOLE_STEMS.split())
"""Stems that are words of their own: a longer word that begins with one is another word."""

FUNCTION = 1
ATTITUDES = tuple(_STEMS)
_BIT_OF = {name: 2 << at for at, name in enumerate(_STEMS)}
_LANGUAGE_BIT = {name: 1 << (16 + at) for at, name in enumerate(FUNCTION_WORDS)}
_LANGUAGES_OF: dict[str, int] = {}
for _name, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF[_word] = _LANGUAGES_OF.get(_word, 0) | _LANGUAGE_BIT[_name]
_STEM_LIST = [(stem, _BIT_OF[name], stem in _WHOLE) for name, stems in _STEMS.items() for stem in stems.split()]
_ALL_STEMS = tuple(stem for stem, _, _ in _STEM_LIST)

_NEAR = r"[^.!?]{0,50}\b"
_REFUSES = re.compile(
    "|".join(
        (
            r"\bi (?:really |simply |just )?(?:can['’]t|cannot|can not) (?!find|see|tell|say|reproduce|locate|open|use"
            r"|be\b|yet|read|run|reach|recall)",
            r"\bi(?:['’]m| am) (?:afraid|sorry)" + _NEAR + r"(?:can['’]t|cannot|can not|not|unable|won['’]t)\b",
            r"\bi(?:['’]m| am) (?:unable|not able|not going|not willing|giving up|stuck)\b",
            r"\bi (?:won['’]t|will not|refuse|decline|quit|give up|(?:must|have to|need to) (?:stop|decline|refuse))\b",
            r"\bi(?:['’]d| would| will|['’]ll) (?:rather not|prefer not|have to (?:stop|decline|pass))",
            r"\b(?:not |im)possible for me\b|\b(?:that|this|it)(?:['’]s| is) not possible\b"
            r"|m['’]est impossible",
            r"\bnot something (?:that )?i\b|\b(?:beyond|outside)(?: of)? (?:my|what i)\b",
            r"\bsorry, but\b|\b(?:unable|not able) to (?:help|assist|continue|comply|proceed|go on|do|complete)\b",
            r"\bich (?:kann|werde|darf|möchte|will)\b" + _NEAR + r"nicht\b|\b(?:kann|werde) ich\b" + _NEAR + r"nicht\b",
            r"\b(?:kann|geht)\b"
            + _NEAR
            + r"(?:leider )?nicht (?:tun|weiter|helfen|machen)|\bleider nicht\b|\blehne\b.*\bab\b|weigere mich",
            r"\bje ne (?:peux|veux|vais|suis|saurais)\b|\bje (?:refuse|regrette)\b|désolé",
            r"\bno (?:puedo|quiero|voy a|podré)\b|lo siento|me niego",
            r"\b(?:não|nao) (?:posso|consigo|vou|quero)\b|desculpe|me recuso",
            r"\bnon (?:posso|riesco|voglio|sono in grado)\b|mi dispiace|mi rifiuto",
            r"\bik kan\b" + _NEAR + r"niet\b|\bhelaas\b|spijt me",
            r"\bnie (?:mogę|będę|potrafię|dam rady)\b|niestety|przykro mi",
            r"\b(?:jag|jeg) (?:kan|vil|vill) (?:inte|ikke)\b|tyvärr|beklager",
            r"yapamam|edemem|üzgünüm|maalesef|không thể|xin lỗi",
            r"\bне (?:могу|буду|смогу|стану|могу)\b|к сожалению|извините|отказываюсь|\bне можу\b|вибачте",
            r"无法|不能(?:继续|帮|完成|做)|抱歉|对不起|做不到|拒绝|無法",
            r"できません|申し訳|お断り|いたしかね|할 수 없|죄송|못 합니다|거절",
            r"لا أستطيع|لا يمكنني|آسف|עذر|לא יכול|מצטער|δεν μπορώ|λυπάμαι|नहीं कर सकत|क्षमा|माफ़",
        )
    )
)


_JOINS = str.maketrans("", "", "-'’")
WAITS = re.compile(
    r"\bwaiting\b|\bawait|\bstand(?:ing|s)? ?by\b|\blet me know\b|\btell me\b|\b(?:am|stay|remain)\w* ready\b"
    r"|\bready (?:when|for|to (?:help|start|continue))"
    r"|\b(?:further|next|your) (?:instructions?|input|reply|answer|decision|orders?|word)\b"
    r"|\bwhenever you\b|\bwhen you(?:['’]re| are| have| want)\b|\bon hold\b"
    r"|\bwarte auf\b|\bsag mir\b|\battends\b|\bdites-moi\b|\bespero\b|\bdime\b|\bжду\b|等待|请告诉"
)
"""What an agent says that waits for somebody, in lower case."""


@lru_cache(maxsize=1 << 16)
def word_traits(word: str) -> int:
    """Bits: a function word, its languages, and the attitudes whose stem it has."""
    languages = _LANGUAGES_OF.get(word, 0)
    traits = languages | FUNCTION if languages else 0
    if not word.translate(_JOINS).isalpha():
        return traits
    if word.startswith(_ALL_STEMS):
        for stem, bit, whole in _STEM_LIST:
            if word == stem or (not whole and word.startswith(stem)):
                traits |= bit
    return traits


class WordTraits:
    """The traits of a text's words: how many are function words, its attitudes, and its language."""

    __slots__ = ("all", "each")

    def __init__(self, words: Iterable[str]) -> None:
        self.each = [word_traits(word) for word in words]
        self.all = 0
        for traits in self.each:
            self.all |= traits

    @property
    def function_words(self) -> int:
        return sum([traits & FUNCTION for traits in self.each])

    def has(self, attitude: str) -> bool:
        return bool(self.all & _BIT_OF[attitude])

    def language(self, text: str) -> str | None:
        """The language with the most function words, or that of the script; None where there is no telling."""
        if not text.isascii():
            for name, script in _SCRIPTS:
                if len(script.findall(text[:400])) >= 4:
                    return name
        if not self.all >> 16:
            return None
        most, second, found = 0, 0, None
        alike: dict[int, int] = {}
        for traits in self.each:
            if traits & FUNCTION:
                alike[traits >> 16] = alike.get(traits >> 16, 0) + 1
        for name, bit in _LANGUAGE_BIT.items():
            if not self.all & bit:
                continue
            count = sum([times for traits, times in alike.items() if traits & (bit >> 16)])
            if count > most:
                most, second, found = count, most, name
            elif count > second:
                second = count
        return found if most >= 2 and most > second else None


def refuses(text: str, traits: WordTraits) -> bool:
    """Whether a text, in lower case, declines to go on, in one of many languages."""
    return (traits.has("decline") or not text.isascii()) and _REFUSES.search(text) is not None
