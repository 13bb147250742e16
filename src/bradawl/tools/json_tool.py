"""A tool whose parameters are a JSON Schema and whose arguments stay a dict, for example one of a remote server."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from bradawl.core.arguments import Arguments
from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import JsonParams, ToolSpec

Run = Callable[[Arguments, CallContext], Awaitable[ToolOutput]]
Declare = Callable[[Arguments, CallContext], Effects]


def _unknown(_arguments: Arguments, _context: CallContext) -> Effects:
    return UNKNOWN


class JsonTool:
    """A `Tool` from a schema and functions. Arguments are checked against the schema before `effects` and `run`."""

    def __init__(
        self,
        spec: ToolSpec,
        description: str,
        schema: str | bytes | Mapping[str, object],
        run: Run,
        effects: Declare = _unknown,
    ) -> None:
        """`schema` is the JSON Schema of an object. It is compiled at the first call, which fails if it is invalid.
        Without `effects` a call may do anything: it runs alone, and only if the user allows it. Raises `ValueError` for
        a schema that is not a JSON object.
        """
        self.spec = spec
        self.function = run
        self._declare = effects
        raw = _object(schema, spec.name)
        self.params = JsonParams(description, raw, _LazyCheck(raw, spec.name))

    def effects(self, params: Arguments, context: CallContext) -> Effects:
        """The declared effects for these arguments."""
        return self._declare(params, context)

    async def run(self, params: Arguments, context: CallContext) -> ToolOutput:
        """The function's output."""
        return await self.function(params, context)


def _object(schema: str | bytes | Mapping[str, object], tool: str) -> msgspec.Raw:
    try:
        text = schema if isinstance(schema, str | bytes) else msgspec.json.encode(schema)
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(text, type=dict[str, object])))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the schema of the tool {tool} is not a JSON object: {error}") from error


class _LazyCheck:
    """Compiles the schema when the first arguments are checked."""

    def __init__(self, schema: msgspec.Raw, tool: str) -> None:
        self._schema = schema
        self._tool = tool
        self._check: Callable[[object], str] | None = None

    def __call__(self, arguments: object) -> str:
        if self._check is None:
            from bradawl.tools.json_schema import check_for

            self._check = check_for(bytes(self._schema), f"The JSON Schema of the tool {self._tool}")
        return self._check(arguments)
