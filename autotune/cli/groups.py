"""The commands in groups, as `autotune --help` lists them."""

import sys
from typing import Any

from typer.core import TyperGroup

from autotune.suggested import NO_ARRAYS

GROUPS = {
    "Look": (
        *("show", "doctor", "advise", "status", "history", "report", "profiles", "diff"),
        "forecast",
    ),
    "Tune": ("run", "solve", "design", "lab"),
    "Keep": ("apply", "restore", "unpersist"),
    "Share": ("export", "import"),
    "Automate": ("retune", "guard", "check", "service", "config"),
}
EXAMPLES = (
    ("autotune show", "what your arrays are set to"),
    ("autotune doctor /dev/md0", "whether a run can go ahead"),
    ("autotune run /dev/md0", "find better settings, and put the original ones back"),
    ("autotune apply PROFILE /dev/md0", "use what was found; --persist keeps it over reboots"),
)

_INTERRUPTED = "Interrupted; `autotune status` says what is in force."


class GroupedCommands(TyperGroup):
    """Lists commands by group, each with its whole summary, and then some examples.

    The types are click's own, which newer versions of typer carry inside.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        """As ever, but that wrong usage is an error like all others, which `ending` says."""
        alone = extra.get("standalone_mode", True)
        extra["standalone_mode"] = False
        if not alone:
            return super().main(*args, **extra)
        try:
            code = super().main(*args, **extra)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()  # type: ignore[attr-defined]
                sys.exit(2)
            from autotune.cli.wrong_usage import usage_error

            raise usage_error(error) from None
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """As ever, but that Ctrl-C ends it with a sentence, and not in silence with 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from autotune.errors import AutotuneError

            raise AutotuneError(_INTERRUPTED) from None

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for names in GROUPS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(len(name) for name in self.commands)
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl(
                    [(name.ljust(widest), _summary(self.commands[name])) for name in names]
                )
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The arrays of this machine, so that the next command can be copied."""
        with formatter.section("On this machine"):
            formatter.write_text(_arrays_here())


def _arrays_here() -> str:
    from autotune.errors import AutotuneError
    from autotune.system.array import list_arrays

    try:
        here = list_arrays()
    except (AutotuneError, OSError):
        return "The arrays cannot be read."
    if not here:
        return f"{NO_ARRAYS} `autotune lab raid5-hdd` starts a machine that has one."
    names = ", ".join(f"{array.device} ({array.level})" for array in here)
    return f"{names}. Next: `autotune doctor {here[0].device}`."


def _summary(command: Any) -> str:
    return str(command.help or "").split("\n\n")[0].replace("\n", " ")
