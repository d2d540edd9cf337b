"""The chat format of a model, from the files in its directory."""

import json
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.chat_template import ChatTemplate, read_turn_frame
from gametape.engines.chat_formats.fenced import FencedChatFormat
from gametape.engines.chat_formats.native import NativeChatFormat, detect_tool_call_format
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import TERSE_FORMAT


def load_chat_format(directory: Path) -> FencedChatFormat | NativeChatFormat | TerseChatFormat:
    """The model's own tool format where its chat template shows a known one, else the fenced format. Our own tiny
    policies name the terse format in `tokenizer_config.json`.

    Reads `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja`, `config.json` and `generation_config.json`.
    """
    tokenizer = TrainedTokenizer.load(directory / "tokenizer.json")
    settings = _json(directory / "tokenizer_config.json")
    if (signatures := _terse_signatures(settings)) is not None:
        return TerseChatFormat(tokenizer, signatures)
    template = ChatTemplate(_template_source(directory, settings), _special_tokens(settings))
    stops = {*_stop_ids(_json(directory / "generation_config.json")), *_stop_ids(_json(directory / "config.json"))}
    try:
        frame = read_turn_frame(template, tokenizer, stops)
    except BadInput as error:
        raise BadInput(f"{directory}: {error}") from None
    form = detect_tool_call_format(template)
    return NativeChatFormat(tokenizer, frame, template, form) if form else FencedChatFormat(tokenizer, frame)


def _terse_signatures(settings: dict[str, Any]) -> dict[str, list[str]] | None:
    """The arguments of each tool, where the policy uses the terse format (the key `dialect` is older than its name)."""
    ours = settings.get("gametape")
    if not isinstance(ours, dict) or ours.get("dialect") != TERSE_FORMAT:
        return None
    signatures = ours.get("signatures")
    if not isinstance(signatures, dict):
        raise BadInput("tokenizer_config.json names the terse format, but not the signatures of its tools")
    return {str(tool): [str(name) for name in names] for tool, names in signatures.items()}


def _template_source(directory: Path, settings: dict[str, Any]) -> str:
    """The chat template; of several, the one for tools."""
    if (path := directory / "chat_template.jinja").exists():
        return path.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        by_name = {entry["name"]: entry["template"] for entry in template}
        template = by_name.get("tool_use", by_name.get("default"))
    if not isinstance(template, str):
        raise BadInput(f"{directory} has no chat template (chat_template.jinja, or in tokenizer_config.json)")
    return template


def _special_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """`bos_token` and the others that templates refer to."""
    tokens = {name: value for name, value in settings.items() if name.endswith("_token")}
    texts = {name: value.get("content") if isinstance(value, dict) else value for name, value in tokens.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def _stop_ids(settings: dict[str, Any]) -> list[int]:
    value = settings.get("eos_token_id")
    return [value] if isinstance(value, int) else list(value or [])


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadInput(f"{path} is not a JSON object")
    return document
