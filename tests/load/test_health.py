"""What the client says about itself: silent when it kept up, one remedy for each way in which it did not."""

import dataclasses

import pytest

from phasegate.load.health import ClientHealth

WELL = ClientHealth(
    loop_lag_p99=0.001,
    loop_lag_max=0.004,
    cpu_seconds=0.2,
    cpu_share=0.1,
    gc_pauses=0,
    gc_pause_max=0.0,
    reads_stamped=100,
    read_wait_mean=0.0001,
    read_wait_max=0.002,
)


def test_a_client_that_kept_up_says_nothing() -> None:
    """No warning without a reason."""
    assert WELL.warnings() == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loop_lag_p99": 0.035, "reads_stamped": 0}, "35.0 ms late"),
        ({"loop_lag_p99": 0.080}, "sent late"),
        ({"cpu_share": 0.97, "cpu_seconds": 2.0}, "97 % of a core"),
        ({"gc_pauses": 2, "gc_pause_max": 0.03}, "2 garbage collections"),
    ],
    ids=["stamps late (case B080)", "sends late", "no CPU left", "collected"],
)
def test_each_fault_is_named_with_its_size(change: dict[str, float], words: str) -> None:
    """One sentence each, with the number and what to do."""
    (warning,) = dataclasses.replace(WELL, **change).warnings()  # type: ignore[arg-type]
    assert words in warning
    assert ";" in warning


def test_a_late_loop_does_not_spoil_reads_that_the_kernel_stamped() -> None:
    """35 ms of lag move no stamp of the kernel's, so there is nothing to warn of."""
    assert dataclasses.replace(WELL, loop_lag_p99=0.035).warnings() == ()


def test_a_window_of_milliseconds_has_no_cpu_share_worth_a_warning() -> None:
    """One short answer is all work and no waiting."""
    assert dataclasses.replace(WELL, cpu_share=0.97, cpu_seconds=0.01).warnings() == ()
