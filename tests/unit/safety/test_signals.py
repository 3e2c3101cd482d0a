"""Signals that end a run, and those that do not."""

import os
import signal

import pytest

from autotune.safety.signals import Signals


def test_ctrl_z_does_not_stop_it_and_says_why() -> None:
    told: list[str] = []
    signals = Signals("Not now.")
    with signals.caught(told.append):
        os.kill(os.getpid(), signal.SIGTSTP)
        assert signals.going()
        assert signals.going()
    assert told == ["Not now."]


@pytest.mark.parametrize(("before", "ends"), [(signal.SIG_IGN, False), (signal.SIG_DFL, True)])
def test_who_is_started_by_nohup_outlives_the_terminal(before: signal.Handlers, ends: bool) -> None:
    earlier = signal.signal(signal.SIGHUP, before)
    try:
        signals = Signals()
        with signals.caught(print):
            os.kill(os.getpid(), signal.SIGHUP)
            assert signals.going() is not ends
        assert signal.getsignal(signal.SIGHUP) == before
    finally:
        signal.signal(signal.SIGHUP, earlier)
