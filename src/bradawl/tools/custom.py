"""`@tool`: makes a tool of a Python function. The model sees its name, docstring, annotations and defaults."""

import asyncio
import contextvars
import inspect
import re
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast, overload

import msgspec
from msgspec import UNSET

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.messages import Document, Image, Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolKind, ToolSpec
from bradawl.tools.custom_params import Parameters, holds_paths, parameters_of
from bradawl.tools.reading.decoding import presentable

_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Names = str | Sequence[str]
"""The name of a parameter, or several."""
Arguments = Mapping[str, Any]
Declare = Callable[[Arguments, CallContext], object]


class FunctionTool(Generic[P, R]):
    """A function as a tool; it can still be called like the function."""

    def __init__(self, function: Callable[P, R], spec: ToolSpec, parameters: Parameters, declare: Declare) -> None:
        """Called by `tool`, which makes the arguments."""
        self.spec = spec
        self.params: type[msgspec.Struct] = parameters.struct
        self.function = function
        self.__doc__ = function.__doc__
        self._parameters = parameters
        self._declare = declare

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result."""
        return self.function(*args, **kwargs)

    def effects(self, params: msgspec.Struct, context: CallContext) -> Effects:
        """The declared effects for these arguments; `UNKNOWN` if none were declared."""
        declared = self._declare(self._arguments(params), context)
        if not isinstance(declared, Effects):
            raise TypeError(f"effects gave back {type(declared).__name__}, not Effects")
        return declared

    async def run(self, params: msgspec.Struct, context: CallContext) -> ToolOutput:
        """The function's result for the model. A function that is not async runs in its own thread.

        A cancelled call does not wait for its thread, which can't be ended.
        """
        arguments = dict(self._arguments(params))
        is_async = inspect.iscoroutinefunction(self.function)
        if name := self._parameters.context_name:
            arguments[name] = context if is_async else _for_a_thread(context)
        call = partial(cast("Callable[..., Any]", self.function), **arguments)
        try:
            return _output(await call() if is_async else await _in_a_thread(call))
        except SystemExit as error:
            raise RuntimeError(f"it tried to end the program ({error})") from error

    def _arguments(self, params: msgspec.Struct) -> Arguments:
        """The given arguments, and the function's defaults for the others."""
        given = {name: getattr(params, name) for name in self._parameters.defaults}
        return {name: self._parameters.defaults[name] if value is UNSET else value for name, value in given.items()}


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str = "",
    reads: Names = (),
    writes: Names = (),
    read_only: bool = False,
    effects: Callable[..., Effects] | None = None,
    kind: ToolKind | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    reads: Names = (),
    writes: Names = (),
    read_only: bool = False,
    effects: Callable[..., Effects] | None = None,
    kind: ToolKind | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of an annotated function: `@tool`, or `@tool(...)` to declare what a call touches.

    `reads` and `writes` name parameters that hold paths. `read_only` promises that a call changes nothing. `effects`
    computes the effects from the arguments it names, and from `context` if it names that; it must not block. Without
    any of these a call may do anything: it runs alone, and only if the user allows it.

    `kind` is `write` with `writes`, `read` with `reads` or `read_only`, else `run`; give it with `effects`. A tool of
    kind `write` is covered by `Edit` rules, and its result is shown as a diff. Raises `TypeError` with what is wrong
    with a function.
    """

    def make(made_of: Callable[P, R]) -> FunctionTool[P, R]:
        own_name = name or getattr(made_of, "__name__", "")
        with _naming_tool(own_name):
            _check_words(made_of, own_name)
            parameters = parameters_of(made_of, own_name)
            declare = _declaration(parameters, _tuple(reads), _tuple(writes), effects, read_only=read_only)
        known = kind or ("write" if writes else "read" if reads or read_only else "run")
        return FunctionTool(made_of, _spec(own_name, known, (*_tuple(writes), *_tuple(reads))), parameters, declare)

    return make if function is None else make(function)


def _spec(name: str, kind: ToolKind, shows: tuple[str, ...]) -> ToolSpec:
    """The declaration; a tool that writes is covered by `Edit` rules, and its result is drawn as a diff."""
    if kind == "write":
        return ToolSpec(name, kind, rule_names=("Edit",), shows=shows, result="diff")
    return ToolSpec(name, kind, shows=shows)


@contextmanager
def _naming_tool(name: str) -> Iterator[None]:
    try:
        yield
    except TypeError as error:
        raise TypeError(f"{name or 'this'} can't be a tool: {error}.") from error


def _check_words(function: object, name: str) -> None:
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"it is a {type(function).__name__}, and @tool takes a function")
    if not _NAME.fullmatch(name):
        raise TypeError("its name is to be made of a-z, 0-9 and _, at most 64; give another with name=")
    if not (function.__doc__ or "").strip():
        raise TypeError("it has no docstring, from which a model learns when to use it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("it yields, and a tool returns one result; use context.progress to show more meanwhile")


# ------------------------------------------------------------------ effects


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _declaration(
    parameters: Parameters,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    effects: Callable[..., Effects] | None,
    *,
    read_only: bool,
) -> Declare:
    if effects is not None and (reads or writes or read_only):
        raise TypeError("effects says it all; leave reads, writes and read_only out")
    if read_only and writes:
        raise TypeError("it can't both be read_only and write")
    for each in (*reads, *writes):
        if each not in parameters.defaults:
            raise TypeError(f"reads and writes name its parameters, and it has none named {each!r}")
        if not holds_paths(parameters, each):
            raise TypeError(f"reads and writes name parameters with a path or a list of paths, and {each} is neither")
    if effects is not None:
        return _by_function(effects, parameters)
    if not (reads or writes or read_only):
        return lambda _arguments, _context: UNKNOWN
    return lambda arguments, context: Effects(
        reads=_paths(reads, arguments, context), writes=_paths(writes, arguments, context)
    )


def _by_function(effects: Callable[..., Effects], parameters: Parameters) -> Declare:
    if inspect.iscoroutinefunction(effects):
        raise TypeError("effects is async, but effects are declared without waiting")
    taken = inspect.signature(effects).parameters.values()
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken)
    names = {each.name for each in taken if each.kind is not inspect.Parameter.VAR_KEYWORD}
    if unknown := names - set(parameters.defaults) - {"context"}:
        raise TypeError(f"effects takes {', '.join(sorted(unknown))}, which is none of its parameters")

    def declare(arguments: Arguments, context: CallContext) -> object:
        chosen = {**arguments, "context": context}
        declared = effects(**{name: value for name, value in chosen.items() if takes_all or name in names})
        return _resolved(declared, context) if isinstance(declared, Effects) else declared

    return declare


def _resolved(declared: Effects, context: CallContext) -> Effects:
    """The effects with links resolved, because rules name real paths."""
    return msgspec.structs.replace(
        declared, reads=tuple(map(context.resolve, declared.reads)), writes=tuple(map(context.resolve, declared.writes))
    )


def _paths(names: tuple[str, ...], arguments: Arguments, context: CallContext) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        match arguments[name]:
            case None:
                continue
            case str(path):
                found.append(context.resolve(path))
            case list() | tuple() | set() | frozenset() as paths:
                found += [context.resolve(path) for path in paths]
            case other:
                raise TypeError(f"{name} is a {type(other).__name__}, not a path")
    return tuple(found)


# ------------------------------------------------------------------ running


def _output(value: object) -> ToolOutput:
    match value:
        case ToolOutput():
            return value
        case Text() | Image() | Document():
            return ToolOutput((value,))
        case None:
            return ToolOutput((Text("(done; it gave nothing back)"),))
        case str():
            return ToolOutput((Text(presentable(value)),))
        case _:
            return ToolOutput((Text(msgspec.json.encode(value).decode()),))


class _Outcome(Generic[T]):
    """Passes the result or the exception of a thread to the event loop that waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()

    def __enter__(self) -> Callable[[T], None]:
        return lambda result: self._send(self._future.set_result, result)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            # These would end the event loop, or can't be raised into a task.
            is_usual = isinstance(error, Exception) and not isinstance(error, StopIteration)
            self._send(
                self._future.set_exception, error if is_usual else RuntimeError(f"{type(error).__name__}: {error}")
            )
        return True

    def __await__(self) -> Generator[Any, None, T]:
        return self._future.__await__()

    def _send(self, settle: Callable[[Any], None], value: object) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._settle, settle, value)

    def _settle(self, settle: Callable[[Any], None], value: object) -> None:
        if not self._future.done():  # else the call was cancelled
            settle(value)


async def _in_a_thread(call: Callable[[], T]) -> T:
    """Run the call in a new thread: at exit Python would wait for a thread of a pool."""
    outcome: _Outcome[T] = _Outcome()

    def work() -> None:
        with outcome as deliver:
            deliver(call())

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="tool", daemon=True).start()
    return await outcome


def _for_a_thread(context: CallContext) -> CallContext:
    """The context with callbacks that are safe to call from a thread."""
    loop = asyncio.get_running_loop()

    def in_the_loop(call: Callable[[T], None]) -> Callable[[T], None]:
        return lambda value: loop.call_soon_threadsafe(call, value) and None

    return msgspec.structs.replace(context, progress=in_the_loop(context.progress), change=in_the_loop(context.change))
