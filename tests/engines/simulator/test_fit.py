"""Fitted to an engine's curves, the simulator predicts the engine elsewhere."""

from __future__ import annotations

import pytest

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.fit import FirstToken, FitError, PerToken, fit
from phasegate.engines.simulator.model import Departure
from phasegate.engines.simulator.timetable import simulate
from tests.engines.simulator.arrivals import alone, arrival, tpot, ttft

ENGINE = SimulatorConfig(
    step_seconds=0.005,
    sequence_seconds=0.001,
    kv_seconds_per_token=4e-7,
    prefill_tokens_per_second=900.0,
    attention_seconds_per_token_pair=3e-7,
    request_overhead_seconds=0.004,
)
"""The engine that the fit does not know."""


def _together(config: SimulatorConfig, streams: int, prompt: int = 32, output: int = 33) -> float:
    """TPOT of the last of so many requests, once all decode."""
    left = simulate(config, [arrival(n, prompt=prompt, output=output) for n in range(1, streams + 1)])
    return tpot(left[streams])


def _last(config: SimulatorConfig, prompts: int, *, prompt: int) -> list[Departure]:
    """The departures of the last of so many requests that come at once."""
    return simulate(config, [arrival(n, prompt=prompt, output=2) for n in range(1, prompts + 1)])[prompts]


def _measured(config: SimulatorConfig) -> tuple[list[FirstToken], list[PerToken]]:
    first = [FirstToken(n, ttft(alone(config, prompt=n))) for n in (64, 256, 1024)]
    per = [PerToken(1, n + 16, tpot(alone(config, prompt=n, output=33))) for n in (64, 512, 2048)]
    per += [PerToken(streams, 32 + 16, _together(config, streams)) for streams in (4, 8)]
    return first, per


def test_a_fitted_simulator_predicts_other_lengths_and_concurrencies() -> None:
    """Within a per cent, at points that the fit has not seen."""
    fitted = fit(SimulatorConfig(), *_measured(ENGINE))
    for prompt in (128, 700, 1900):
        assert ttft(alone(fitted, prompt=prompt)) == pytest.approx(ttft(alone(ENGINE, prompt=prompt)), rel=0.01)
    assert tpot(alone(fitted, prompt=1000)) == pytest.approx(tpot(alone(ENGINE, prompt=1000)), rel=0.01)
    assert _together(fitted, 16) == pytest.approx(_together(ENGINE, 16), rel=0.01)


def test_without_the_fit_the_prediction_is_off() -> None:
    """The check above can fail."""
    assert ttft(alone(SimulatorConfig(), prompt=700)) != pytest.approx(ttft(alone(ENGINE, prompt=700)), rel=0.1)


def test_the_price_of_company_is_told_from_that_of_a_stream() -> None:
    """An engine with a faster way for one request, and a fixed price of each prompt: three streams are predicted."""
    engine = ENGINE.changed(together_seconds=0.012, prompt_seconds=0.004, gather_seconds=0.002)
    first, per = _measured(engine)
    first += [FirstToken(96, ttft(_last(engine, count, prompt=96)), prompts=count) for count in (2, 4)]
    fitted = fit(SimulatorConfig(gather_seconds=0.002), first, per)
    assert fitted.together_seconds == pytest.approx(0.012, rel=0.05)
    assert fitted.prompt_seconds == pytest.approx(0.004, rel=0.05)
    assert _together(fitted, 3) == pytest.approx(_together(engine, 3), rel=0.01)
    assert ttft(_last(fitted, 3, prompt=200)) == pytest.approx(ttft(_last(engine, 3, prompt=200)), rel=0.01)


def test_costs_that_nothing_measured_tells_apart_stay_zero() -> None:
    """One prompt at a time cannot show what a prompt costs beside what a request costs."""
    fitted = fit(SimulatorConfig(), *_measured(ENGINE.changed(prompt_seconds=0.004)))
    assert fitted.prompt_seconds == 0.0
    assert fitted.request_overhead_seconds == pytest.approx(0.008, rel=0.05)


def test_noise_never_makes_a_cost_negative() -> None:
    """Here TTFT bends the wrong way; the attention term becomes 0."""
    bent = [FirstToken(64, 0.07), FirstToken(256, 0.26), FirstToken(1024, 0.9)]
    assert fit(SimulatorConfig(), bent, _measured(ENGINE)[1]).attention_seconds_per_token_pair == 0.0


def test_too_few_measurements_are_refused() -> None:
    """One clear line."""
    first, per = _measured(ENGINE)
    with pytest.raises(FitError, match="3 prompt lengths"):
        fit(SimulatorConfig(), first[:2], per)
    with pytest.raises(FitError, match="3 points"):
        fit(SimulatorConfig(), first, per[:2])
