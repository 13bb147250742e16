"""Finds the request field that a server's error message refuses, so that the codec can leave it out. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

# Patterns are compiled when first used: most runs never see a refusal.
_REFUSED = (
    r"un-?support|unknown|unrecogni[sz]ed|unexpected|unavailable|deprecated|reject"
    r"|(?:not|n't|no longer) (?:be )?(?:currently )?"
    r"(?:support|permit|allow|accept|valid|available|recogni|implement)"
    r"|extra (?:inputs?|fields?)|extra_forbidden|additional propert"
    r"|invalid (?:field|param|argument|key|property|option)"
    r"|does(?: not|n't) (?:support|accept|allow|have)"
    r"|cannot be (?:used|set|combined)|can(?:no|')t (?:use|be used)|can only be used"
)
_ABOUT_A_VALUE = (
    r"unsupported value|invalid value|supported values|input should be|out of range|exceed|maximum|minimum"
    r"|too (?:large|small|long|short|high|low|big|many)|at most \d|at least \d"
    r"|(?:greater|less|larger|smaller|more|fewer|higher|lower) than"
    r"|must be (?:one of|between|at (?:most|least)|an? |in |positive)|does(?: not|n't) support ['\"`]"
)
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


class Downgrade:
    """The fields that can be given up. Each is given up once, so that corrected requests can't loop."""

    def __init__(
        self,
        fields: Iterable[str],
        aliases: Mapping[str, str] = _NO_ALIASES,
        by_mention: Collection[str] = (),
    ) -> None:
        """`fields` can be left out or replaced. `aliases` are phrases by which servers refer to one of them.

        The user has to correct a value out of range, so a message about a value counts only for the fields
        in `by_mention`.
        """
        self._fields = tuple(fields)
        self._aliases = {words.lower(): field for words, field in aliases.items()}
        self._by_mention = frozenset(by_mention)
        self._taken: set[str] = set()

    def take(self, message: str, in_use: Collection[str] | None = None) -> str | None:
        """The field that this message refuses, now given up; None if there is none, or it was given up before.

        A field that is not `in_use` is not refused but mentioned, for example as an alternative.
        """
        field = self._field_in(message, in_use)
        if field is None or field in self._taken or not self._is_refused(field, message):
            return None
        self._taken.add(field)
        return field

    def _field_in(self, message: str, in_use: Collection[str] | None) -> str | None:
        """The field that a message is about: an alias phrase wins over the first field name."""
        text = message.lower()
        for words, field in self._aliases.items():
            if words in text and (in_use is None or field in in_use):
                return field
        found = [
            (hit.start(), field)
            for field in self._fields
            if (in_use is None or field in in_use) and (hit := re.search(_pattern_of(field), message)) is not None
        ]
        return min(found)[1] if found else None

    def _is_refused(self, field: str, message: str) -> bool:
        if field in self._by_mention:
            return True
        is_refusal = re.search(_REFUSED, message, re.IGNORECASE) is not None
        return is_refusal and re.search(_ABOUT_A_VALUE, message, re.IGNORECASE) is None


def _pattern_of(field: str) -> str:
    """A pattern for the ways servers write a field's name: as sent, in camel case, or in a path.

    A name that is also an English word counts only in quotes, in a path, or beside a word such as `parameter`.
    """
    camel = re.sub(r"_(\w)", lambda found: found[1].upper(), field)
    name = f"(?:{re.escape(field)}|{re.escape(camel)})" if camel != field else re.escape(field)
    if camel != field or "." in field:
        return rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])"
    path = r"(?:[.\[][\w.\[\]]*)?"
    return (
        rf"['\"`]{name}{path}['\"`]"
        rf"|(?<![\w.]){name}\.\w"
        rf"|\.{name}\b"
        rf"|^{name}{path}:"
        rf"|\b(?i:parameters?|arguments?|fields?|propert(?:y|ies)|keys?|options?|inputs?)(?: supplied)?:? {name}\b"
        rf"|\b{name} (?i:parameter|argument|field|property|key|option|input|is not|isn't)\b"
    )
