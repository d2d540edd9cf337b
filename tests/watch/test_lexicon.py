"""Words tell languages and attitudes; refusals are told from inabilities of everyday work."""

import pytest

from gametape.watch.lexicon import refuses
from gametape.watch.observed_step import ObservedStep


@pytest.mark.parametrize(
    "text",
    [
        "I cannot continue with this.",
        "Sorry, but that is not something I can do.",
        "I would rather not touch it.",
        "Das kann ich leider nicht tun.",
        "Je ne peux pas continuer.",
        "Lo siento, no puedo ayudar.",
        "Ik kan dat niet doen.",
        "К сожалению, я не могу продолжить.",
        "抱歉，我无法完成。",
        "申し訳ありませんが、できません。",
    ],
)
def test_a_refusal(text: str) -> None:
    assert refuses(text.lower(), ObservedStep(text).traits)


@pytest.mark.parametrize(
    "text",
    [
        "I cannot find the file.",
        "The server could not be reached.",
        "It is not set there, so the test fails.",
        "I can't see where it is called yet.",
        "Der Wert ist nicht gesetzt.",
        "Le test ne passe pas encore.",
    ],
)
def test_none(text: str) -> None:
    assert not refuses(text.lower(), ObservedStep(text).traits)


def test_languages() -> None:
    def language(text: str) -> str | None:
        return ObservedStep(text).language

    assert language("The file is not there, so we look for it in the cache.") == "en"
    assert language("Die Datei ist nicht da, und wir sehen auf dem Server nach.") == "de"
    assert language("Le fichier n'est pas dans le cache, on le cherche sur le serveur.") == "fr"
    assert language("El archivo no está en la caché, y lo buscamos en el servidor.") == "es"
    assert language("文件不在缓存里，我们去服务器上找。") == "zh"
    assert language("ls -la src/core") is None


def test_names_of_files_have_no_attitude() -> None:
    assert not ObservedStep("see successful_chaining.py and thanks.md").traits.has("thanks")
    assert ObservedStep("Thanks, that is done").traits.has("thanks")
