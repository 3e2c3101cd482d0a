"""`autotune advise`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import STATE_DIR, Device, Json, StateDir
from autotune.cli.terminal import console, notice
from autotune.service import CONFIG


def advise(
    device: Device,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Read the members for 3 to 6 s, if nobody uses them, to find a slow one. "
            "[default: --measure]",
        ),
    ] = True,
    as_json: Json = False,
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Where findings are silenced.")
    ] = CONFIG,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Say what could be better about an array that `run` may not change by itself.

    Filesystems that do not know its stripe, wrong alignment, mount options, the bitmap, members
    that do not fit together: what was seen, what it costs, and the command that fixes it. Changes
    nothing on the array; `autotune report` shows what was found.
    """
    import json
    from datetime import UTC, datetime

    from autotune.advice import stored
    from autotune.advice.advise import advise
    from autotune.errors import AutotuneError
    from autotune.report.advice import advice_document, print_advice
    from autotune.service.config import load_config
    from autotune.system.array import find_array

    array = find_array(device)
    advice = advise(array, state_dir, load_config(config).advise.silence, measure)
    if as_json:
        print(json.dumps(advice_document(advice), indent=2))
    else:
        print_advice(console(), advice)
    try:
        stored.keep(stored.Kept(array.uuid, datetime.now(UTC), advice), state_dir)
    except PermissionError:
        # It may be asked by anybody, and of what others than root find most is missing.
        return
    except OSError as error:
        path = stored.path_of(state_dir, array.uuid)
        notice(f"What was found cannot be kept for reports in {path}: {error.strerror}.")
    except AutotuneError as error:
        notice(f"What was found is not kept for reports: {error}")
