"""`autotune export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir

if TYPE_CHECKING:
    from autotune.problem.profile import Profile


def export(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|PROFILE",
            autocompletion=complete.runs_or_profiles,
            help="A run's number, or a profile: a JSON file or a name.",
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.formats,
            help="json, udev, tuned, ansible, shell or systemd.",
        ),
    ] = "json",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The folder to write to. [default: print it, if it is one file]"
        ),
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE|UUID",
            autocompletion=complete.devices,
            help="The array that udev or tuned sets. [default: the one it was proven on]",
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Also replace files that were made for another array."),
    ] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Write a profile in the form of another tool, to take it to other machines.

    Without RUN or PROFILE, it takes the newest run that has one.

    Example: autotune export 3 --format ansible --out roles
    """
    import json

    from autotune.errors import UsageError
    from autotune.export import FOR_ONE_ARRAY, FORMATS
    from autotune.system.array import find_uuid

    if format not in FORMATS:
        raise UsageError(f'There is no format "{format}"; the formats are {", ".join(FORMATS)}.')
    if array is not None and format not in FOR_ONE_ARRAY:
        raise UsageError(f"The format {format} is not made for one array; leave out --array.")
    profile = _profile(source, state_dir, array or "DEVICE")
    uuid = find_uuid(array) if array is not None else profile.proven_on.uuid
    if format in FOR_ONE_ARRAY:
        _judge_here(profile, uuid)
    files = FORMATS[format](profile, uuid)
    if out is None and len(files) > 1 and not as_json:
        raise UsageError(
            f"The format {format} has {len(files)} files; name a folder for them with --out DIR."
        )
    if out is not None:
        _write(files, out, None if replace else profile)
    if as_json:
        print(json.dumps({"format": format, "out": out and str(out), "files": files}, indent=2))
    elif out is None:
        print(*files.values(), sep="", end="")
    else:
        for name in files:
            print(out / name)


def _judge_here(profile: "Profile", uuid: str) -> None:
    """Raise RefusalError for values that would do harm on that array, if it is one of these."""
    from autotune.errors import RefusalError
    from autotune.knobs.harmful import judge_on, ram_budget_for
    from autotune.system.array import list_arrays

    for array in (array for array in list_arrays() if array.uuid == uuid):
        refusals = judge_on(array, profile.knobs, ram_budget_for(profile, array)).refusals
        if refusals:
            raise RefusalError(f"{' '.join(refusals)} So it is not exported.")


def _profile(source: str | None, state_dir: Path, device: str) -> "Profile":
    """The profile of a file, of a run, or of the newest run that has one. `device` is what a
    message names."""
    from autotune.deploy.catalogue import find_profile
    from autotune.errors import UsageError

    if source is not None and not (source.isascii() and source.isdigit()):
        return find_profile(source, state_dir, device)
    from autotune.results import stored_run
    from autotune.store.database import Store

    store = Store.existing(state_dir)
    if store is None:
        raise UsageError(f"Nothing has been run with {state_dir} yet; name a profile.")
    if source is None:
        runs = [run for run in store.runs() if run.profile is not None]
        if not runs:
            raise UsageError("No run has saved a profile yet; name a profile, such as a JSON file.")
        found = runs[0]
    else:
        found = store.run(int(source[:18]))
    profile = stored_run.profile(found)
    if profile is None:
        raise UsageError(
            f"Run {found.id} found nothing better than the original settings, so it has no profile."
        )
    return profile


def _refuse_other(path: Path, place: Path, profile: "Profile") -> None:
    """Raise RefusalError if the file was not made from this array's profile. Its name is no proof:
    hosts have profiles of one name."""
    from autotune.errors import RefusalError
    from autotune.export.header import is_from, origin_of
    from autotune.untrusted import MOST_KEPT_BYTES, read_file

    try:
        text = read_file(place, MOST_KEPT_BYTES).decode("utf-8", "replace")
    except ValueError:
        text = ""
    if is_from(text, profile):
        return
    there = origin_of(text)
    what = f"was made from another profile, {there}" if there else "is no export of autotune"
    raise RefusalError(
        f"{path} {what}; name another folder with --out, or replace it with --replace."
    )


def _write(files: dict[str, str], out: Path, profile: "Profile | None") -> None:
    """Raise RefusalError if a file is there that was not made from this `profile`, if one is
    given."""
    import contextlib

    from autotune.durable import write_beside
    from autotune.errors import AutotuneError
    from autotune.named_file import found

    # All of it or nothing: a role or a script that is there may be in use.
    parts: dict[Path, Path] = {}
    places: dict[str, Path] = {}
    path = out
    with contextlib.ExitStack() as stack:
        try:
            for name in files:
                path = out / name
                at = stack.enter_context(found(path, 0o777))
                places[name] = at.place
                if profile is not None and at.descriptor is not None:
                    _refuse_other(path, at.place, profile)
            for name, text in files.items():
                path, place = out / name, places[name]
                parts[place] = write_beside(place, text, 0o755 if text.startswith("#!") else 0o644)
            for place, part in parts.items():
                part.replace(place)
        except OSError as error:
            for part in parts.values():
                with contextlib.suppress(OSError):
                    part.unlink()
            raise AutotuneError(f"{path} cannot be written: {error.strerror}.") from None
