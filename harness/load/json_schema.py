"""The JSON Schema of a scenario file, for editors. It is kept in `scenarios/scenario.schema.json`:

    python -m harness.load > scenarios/scenario.schema.json

It says what each value looks like; what several mean together, only `onceproof validate` knows.
"""

from __future__ import annotations

from typing import Any

from harness.load.models import shapes

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """JSON-ready, the same at each call."""
    made: dict[str, Any] = tidy(shapes().scenario.model_json_schema())
    defs = made["$defs"]
    for name in list(defs):
        defs[name.removesuffix("Shape").lower()] = defs.pop(name)
    word = defs["verdict"]["properties"].pop("word")
    del defs["outcome"]["properties"]["word"]
    defs["outcome"]["required"] = ["violated"]
    defs["verdict"]["minProperties"] = 1
    at = defs["verdict"]["properties"].pop("at")
    defs["verdict"]["additionalProperties"] = either(word, at["additionalProperties"])
    keys = made["properties"]
    keys["pipeline"] = either({"type": "string"}, keys["pipeline"])
    keys["sink"] = either(keys["sink"]["items"], keys["sink"])
    keys["verdict"] = either(word, keys["verdict"])
    return {"$schema": DRAFT, "title": "A scenario of Onceproof"} | made


def either(*forms: dict[str, Any]) -> dict[str, Any]:
    """Return one of these forms."""
    return {"anyOf": list(forms)}


def tidy(part: Any) -> Any:
    """Without the titles and the null defaults that pydantic adds, its definitions under our names."""
    if isinstance(part, list):
        return [tidy(each) for each in part]
    if not isinstance(part, dict):
        return part
    out = {key: tidy(value) for key, value in part.items() if not noise(key, value)}
    if isinstance(reference := out.get("$ref"), str):
        out["$ref"] = "#/$defs/" + reference.rpartition("/")[2].removesuffix("Shape").lower()
    return out


def noise(key: str, value: object) -> bool:
    """Return True for what says nothing to a reader."""
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)
