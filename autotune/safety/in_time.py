"""What may wait for a disk that does not answer, and is not worth waiting for. Light."""

import threading
from collections.abc import Callable


def in_time(what: Callable[[], None], seconds: float) -> bool:
    """Have it done beside this, in a thread, and wait for so long: whether it was done. What it
    raises within that time is raised; what comes later is heard by nobody. Where no thread can be
    had, it is done here, however long that takes."""
    failure: list[Exception] = []

    def work() -> None:
        try:
            what()
        except Exception as error:
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        work()
    else:
        thread.join(seconds)
        if thread.is_alive():
            return False
    if failure:
        raise failure[0]
    return True
