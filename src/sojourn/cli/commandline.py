"""What was typed after `sojourn run`: its own options first, then what to run, and with what."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import click

from sojourn.taskfiles import is_task_file

__all__ = ["WORDS", "Typed", "WithCommand"]

WORDS = "words"
"""The parameter that has all that is no option."""

_KEY = "sojourn.typed"
_WITH_SECRETS = ("-e", "--env", "--container-opt")


@dataclass(frozen=True)
class Typed:
    """A command line, taken apart.

    `options`: those of Sojourn, as they were typed. `words`: what to run, and its arguments.
    `literal`: a `--` says that the words, or those after a file, are to be taken as they are.
    """

    verb: str
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    dashed: bool = False
    literal: bool = False

    @classmethod
    def of(cls, ctx: click.Context) -> Typed:
        """What was typed for this command."""
        found: Typed = ctx.meta[_KEY]
        return found

    @property
    def command(self) -> str:
        """What is run, as it was typed; empty if that tells nothing, as `-` does."""
        return "" if self.words[:1] == ("-",) else shlex.join(self.words)

    def line(self, *words: str) -> str:
        """Another line to type, with the same options; values that may be secret are left out."""
        typed = [*_without_secrets(self.options), *_without_secrets(words)]
        said = f"sojourn {self.verb} {shlex.join(typed)}".rstrip()
        return said.replace("'...'", "...")


def _without_secrets(words: tuple[str, ...]) -> list[str]:
    before = ("", *words)
    return [_without_value(option, word) for option, word in zip(before, words, strict=False)]


def _without_value(option: str, word: str) -> str:
    """A word without the value of the variable that it sets; `option`: the word before it."""
    name, equals, value = word.partition("=")
    if name in _WITH_SECRETS and "=" in value:
        return f"{word[: word.index('=', len(name) + 1)]}=..."
    sets = option in _WITH_SECRETS or re.match(r"-e.", word)
    return f"{name}=..." if sets and equals else word


class WithCommand(click.Command):
    """Takes options up to the first other word; all after it belongs to what is run.

    Options may also follow a task file: it is no program that could have its own.
    """

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed = self._typed(ctx, args)
        ctx.meta[_KEY] = typed
        return super().parse_args(ctx, [*typed.options, "--", *typed.words])

    def _typed(self, ctx: click.Context, args: list[str]) -> Typed:
        verb = ctx.info_name or ""
        words = self._after_options(ctx, args)
        options = args[: len(args) - len(words)]
        if options[-1:] == ["--"]:
            return Typed(verb, tuple(options[:-1]), words, dashed=True, literal=True)
        if not words:
            return Typed(verb, tuple(options))
        file, *rest = words
        at = rest.index("--") if "--" in rest else len(rest)
        if is_task_file(Path(file)):
            others, more = self.split(ctx, rest[:at])
            typed = Typed(verb, (*options, *more), (file, *rest[at + 1 :]), literal=True)
            if others and not ctx.resilient_parsing:
                right = typed.line(file, "--", *others, *rest[at + 1 :])
                ctx.fail(f"unexpected {others[0]!r} after {file}. Run `{right}` to pass it along.")
            return typed
        if rest[:1] == ["--"]:
            return Typed(verb, tuple(options), (file, *rest[1:]), literal=True)
        return Typed(verb, tuple(options), words)

    def _after_options(self, ctx: click.Context, args: list[str]) -> tuple[str, ...]:
        """The words from the first one that is no option; a `--` before them is none of them."""
        parsed, _, _ = self.make_parser(ctx).parse_args(list(args))
        words = parsed.get(WORDS)
        return tuple(words) if isinstance(words, list | tuple) else ()

    def split(self, ctx: click.Context, words: list[str]) -> tuple[list[str], list[str]]:
        """Words that are none of Sojourn's options, and those that are, with their values."""
        known = {
            name: parameter
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option)
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        others: list[str] = []
        options: list[str] = []
        todo = list(words)
        while todo:
            word = todo.pop(0)
            if word == "--":  # nothing after it can be an option
                return [*others, word, *todo], options
            long = word.startswith("--")
            name, _, value = word.partition("=") if long else (word[:2], "", word[2:])
            option = known.get(name) if word.startswith("-") else None
            if option is None:
                others.append(word)
                continue
            options.append(word)
            if not (option.is_flag or value) and todo:
                options.append(todo.pop(0))
        return others, options
