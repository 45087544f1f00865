"""The option that chooses workers: what it takes, and what it says to everything else."""

import pytest

from phasegate.load.workers.choice import WorkersAsked, parse_workers, workers_asked


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (None, WorkersAsked()),
        ("auto", WorkersAsked()),
        (" auto ", WorkersAsked()),
        ("1", WorkersAsked(processes=1)),
        ("32", WorkersAsked(processes=32)),
        ("ray", WorkersAsked(ray="")),
        ("ray://head:10001", WorkersAsked(ray="ray://head:10001")),
    ],
)
def test_what_it_takes(text: str | None, asked: WorkersAsked) -> None:
    assert parse_workers(text) == asked


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "513", "two", "", "Ray", "٣", "1e3", "ray:/head", "auto 2"])
def test_everything_else_is_refused_with_its_value_and_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match="--perf-workers") as refused:
        parse_workers(text)
    assert repr(text) in str(refused.value)
    assert "auto, ray, or ray://host:port" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_address_without_a_host_is_refused() -> None:
    with pytest.raises(ValueError, match="names no host"):
        parse_workers("ray://")


def test_ray_that_is_not_installed_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phasegate.load.workers.choice.find_spec", lambda _name: None)
    with pytest.raises(ValueError, match=r"--perf-workers ray needs Ray, .* run: pip install 'phasegate\[ray\]'"):
        workers_asked("ray")
    assert workers_asked("3") == WorkersAsked(processes=3)
