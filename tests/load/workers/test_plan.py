"""Dividing a load: nothing is lost, nothing is doubled, and the shares add up to what was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.load.workers.plan import Share, divide_closed, divide_open, parts

COUNTS = st.integers(0, 300)
MANY = st.integers(1, 64)
OFFSETS = st.lists(st.floats(0, 1e6), max_size=120)


@given(whole=st.integers(0, 10_000), count=MANY)
def test_parts_add_up_exactly_and_differ_by_one_at_most(whole: int, count: int) -> None:
    found = parts(whole, count)
    assert sum(found) == whole
    assert len(found) == count
    assert max(found) - min(found) <= 1


@given(count=COUNTS, concurrency=MANY, workers=MANY)
def test_a_closed_loop_keeps_every_request_and_the_whole_concurrency(
    count: int, concurrency: int, workers: int
) -> None:
    shares = divide_closed(count, concurrency, workers)
    assert sorted(place for share in shares for place in share.places) == list(range(count))
    assert len(shares) == min(workers, concurrency, count)
    assert all(share.places for share in shares)
    if shares:
        assert sum(share.max_concurrency or 0 for share in shares) == concurrency


@given(waves=st.integers(1, 9), concurrency=MANY, workers=MANY)
def test_whole_waves_give_every_user_the_same_number_of_requests(waves: int, concurrency: int, workers: int) -> None:
    """So no worker is done long before the others."""
    for share in divide_closed(waves * concurrency, concurrency, workers):
        assert len(share.places) == waves * (share.max_concurrency or 0)


@given(offsets=OFFSETS, workers=MANY, cap=st.none() | MANY)
def test_a_schedule_is_divided_request_by_request(offsets: list[float], workers: int, cap: int | None) -> None:
    shares = divide_open(offsets, cap, workers)
    assert sorted(place for share in shares for place in share.places) == list(range(len(offsets)))
    assert len(shares) == min(workers, len(offsets), cap if cap is not None else workers)
    if shares and cap is not None:
        assert sum(share.max_concurrency or 0 for share in shares) == cap
    elif cap is None:
        assert {share.max_concurrency for share in shares} <= {None}


@given(offsets=OFFSETS, workers=MANY, moment=st.floats(0, 1e6))
def test_at_every_moment_the_same_number_of_requests_has_been_due_in_every_worker(
    offsets: list[float], workers: int, moment: float
) -> None:
    """To within one: a burst falls on all."""
    due = [sum(offsets[place] <= moment for place in share.places) for share in divide_open(offsets, None, workers)]
    assert not due or max(due) - min(due) <= 1


def test_the_division_of_a_small_load_as_it_reads() -> None:
    """Five users and seven requests over two workers: users 0, 2, 4 and users 1, 3."""
    assert divide_closed(7, 5, 2) == (Share((0, 2, 4, 5), 3), Share((1, 3, 6), 2))
    assert divide_open((0.3, 0.1, 0.2), 3, 2) == (Share((0, 1), 2), Share((2,), 1))


def test_nothing_to_send_takes_no_worker() -> None:
    assert divide_closed(0, 4, 4) == ()
    assert divide_open((), None, 4) == ()


def test_less_than_one_of_anything_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match="number of workers 0 is not possible"):
        divide_closed(4, 4, 0)
    with pytest.raises(ValueError, match="concurrency 0 is not possible"):
        divide_closed(4, 0, 4)
    with pytest.raises(ValueError, match="concurrency -1 is not possible"):
        divide_open((0.0,), -1, 1)
