"""What a pass of re-tuning does about what it sees, on an array that is made up."""

from dataclasses import dataclass, field

import pytest

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.service.policy import ComparedInTurn, LastSeen, run_pass
from autotune.stats.verdict import judge

FIGURES = (
    Figure("write.throughput", "write", "throughput", 1.0),
    Figure("resync.p99", "resync", "latency", 0.0, 5e7),
)
ORIGINAL: Setting = {"stripe_cache_size": 256}
GOOD: Setting = {"stripe_cache_size": 4096}
OTHER: Setting = {"stripe_cache_size": 1024}


@dataclass
class Made:
    """`rates` (MB/s) and `p99_ms` by stripe cache. `found`: what a search comes to."""

    rates: dict[int, float]
    p99_ms: dict[int, float] = field(default_factory=dict)
    found: Setting | None = None
    incumbent: Setting = field(default_factory=lambda: dict(GOOD))
    fingerprint: str = "as ever"
    figures: tuple[Figure, ...] = FIGURES
    did: list[str] = field(default_factory=list)

    def shown(self, setting: Setting) -> dict[str, Estimate]:
        stripes = int(setting["stripe_cache_size"])
        return {
            "write.throughput": Estimate(self.rates[stripes] * 1e6, 0.02),
            "resync.p99": Estimate(self.p99_ms.get(stripes, 20.0) * 1e6, 0.02),
        }

    def prove(self, setting: Setting) -> ComparedInTurn:
        self.did.append(f"prove {setting['stripe_cache_size']}")
        before, after = self.shown(self.incumbent), self.shown(setting)
        return ComparedInTurn(judge(self.figures, [after] * 2, [before] * 2), before, after)

    def against_originals(self) -> ComparedInTurn:
        return self.prove(ORIGINAL)

    def back_to_originals(self) -> None:
        self.did.append("revert")
        self.incumbent = ORIGINAL

    def tune(self) -> Setting | None:
        self.did.append("tune")
        return self.found

    def is_original(self, setting: Setting) -> bool:
        return setting == ORIGINAL

    def adopt(self, setting: Setting, proof: ComparedInTurn) -> None:
        self.did.append("adopt")
        self.incumbent = setting


def known(rate: float = 100.0, fingerprint: str = "as ever", setting: Setting = GOOD) -> LastSeen:
    return LastSeen(fingerprint, setting, {"write.throughput": Estimate(rate * 1e6, 0.02)})


def test_an_array_that_is_as_ever_is_left_alone() -> None:
    managed = Made({256: 50, 4096: 103})
    done = run_pass(managed, known(), adopt=True)
    assert (done.outcome, done.reasons, managed.did) == ("unchanged", (), ["prove 256"])
    assert done.gain is not None
    assert done.gain.ratio == pytest.approx(103 / 50)
    # What is compared with does not creep.
    assert done.known == known()


def test_the_first_pass_only_looks() -> None:
    managed = Made({256: 50, 4096: 100})
    done = run_pass(managed, None, adopt=True)
    assert (done.outcome, managed.did) == ("unchanged", ["prove 256"])
    assert done.known.figures["write.throughput"].value == 100e6
    assert run_pass(managed, done.known, adopt=True).reasons == ()


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (known(200), "write.throughput is at 0.50 of what it was"),
        (known(fingerprint="other"), "the array has other members"),
        (known(setting=OTHER), "stripe_cache_size was 1024 and is 4096"),
    ],
)
def test_what_moved_is_searched_and_adopted_if_proven(before: LastSeen, why: str) -> None:
    managed = Made({256: 50, 1024: 130, 4096: 100}, found=OTHER)
    done = run_pass(managed, before, adopt=True)
    assert done.outcome == "adopted"
    assert why in done.reasons[0]
    assert managed.did[-4:] == ["prove 256", "tune", "prove 1024", "adopt"]
    assert done.better is not None
    assert done.better.ratio == pytest.approx(1.3)
    # And then there is peace.
    assert run_pass(managed, done.known, adopt=True).outcome == "unchanged"


def test_a_figure_that_moved_once_is_noise() -> None:
    class Restless(Made):
        def against_originals(self) -> ComparedInTurn:
            proof = super().against_originals()
            self.rates[4096] = 100
            return proof

    managed = Restless({256: 50, 1024: 130, 4096: 60}, found=OTHER)
    done = run_pass(managed, known(), adopt=True)
    assert (done.outcome, managed.did) == ("unchanged", ["prove 256", "prove 256"])


def test_to_advise_puts_nothing_back_either() -> None:
    managed = Made({256: 100, 4096: 90})
    done = run_pass(managed, known(), adopt=False)
    assert (done.outcome, managed.did) == ("advised", ["prove 256"])
    assert managed.incumbent == GOOD
    assert "it is slower than the original settings" in done.reasons
    assert done.better is not None
    assert done.better.ratio == pytest.approx(100 / 90)


def test_to_advise_adopts_nothing() -> None:
    managed = Made({256: 50, 1024: 130, 4096: 100}, found=OTHER)
    done = run_pass(managed, known(200), adopt=False)
    assert (done.outcome, managed.incumbent) == ("advised", GOOD)


@pytest.mark.parametrize(("rate", "found"), [(100, None), (102, OTHER), (90, OTHER)])
def test_what_is_not_worth_it_is_not_adopted(rate: float, found: Setting | None) -> None:
    managed = Made({256: 50, 1024: rate, 4096: 100}, found=found)
    done = run_pass(managed, known(200), adopt=True)
    assert (done.outcome, managed.incumbent) == ("kept", GOOD)
    # It is not searched for again and again.
    managed.did.clear()
    assert run_pass(managed, done.known, adopt=True).outcome == "unchanged"
    assert managed.did == ["prove 256"]


def test_what_would_break_its_ceiling_is_not_adopted() -> None:
    managed = Made({256: 50, 1024: 130, 4096: 100}, {1024: 80}, found=OTHER)
    assert run_pass(managed, known(200), adopt=True).outcome == "kept"


def test_a_ceiling_is_held_again_at_the_price_of_speed() -> None:
    managed = Made({256: 50, 1024: 70, 4096: 75}, {256: 80, 1024: 40, 4096: 80}, found=OTHER)
    done = run_pass(managed, known(), adopt=True)
    assert (done.outcome, managed.incumbent) == ("adopted", OTHER)


@pytest.mark.parametrize(
    ("rates", "p99_ms", "why"),
    [
        ({256: 60, 4096: 50}, {}, "slower than the original settings"),
        ({256: 50, 4096: 100}, {256: 20, 4096: 80}, "resync.p99 is over its ceiling"),
    ],
)
def test_what_has_become_worse_goes_at_once(
    rates: dict[int, float], p99_ms: dict[int, float], why: str
) -> None:
    managed = Made(rates, p99_ms)
    done = run_pass(managed, known(rates[4096]), adopt=True)
    assert (done.outcome, managed.incumbent) == ("reverted", ORIGINAL)
    assert managed.did[-2:] == ["revert", "tune"]
    assert any(why in reason for reason in done.reasons)


def test_a_ceiling_that_the_originals_break_too_brings_nothing_back() -> None:
    managed = Made({256: 50, 4096: 100}, {256: 80, 4096: 80})
    done = run_pass(managed, known(), adopt=True)
    assert (done.outcome, done.reasons) == ("kept", ("resync.p99 is over its ceiling",))
    # It is not searched for again while it stays so.
    assert run_pass(managed, done.known, adopt=True).outcome == "unchanged"


def test_originals_that_are_faster_but_break_a_ceiling_do_not_come_back() -> None:
    managed = Made({256: 200, 4096: 100}, {256: 80, 4096: 30})
    assert run_pass(managed, known(), adopt=True).outcome == "unchanged"


def test_originals_that_are_found_again_are_put_back_and_no_profile_is_made_of_them() -> None:
    """A profile that sets nothing could not be persisted, and the old one would come back."""
    rates = {256: 100.0, 1024: 95.0}
    managed = Made(rates, incumbent=dict(OTHER), found=dict(ORIGINAL))
    managed.fingerprint = "another kernel"
    known = LastSeen("as ever", OTHER, managed.shown(OTHER))
    seen: list[str] = []
    done = run_pass(managed, known, True, lambda each: seen.append(each.outcome))
    assert (done.outcome, managed.incumbent) == ("reverted", ORIGINAL)
    assert seen == ["reverted"]
    assert "adopt" not in managed.did
