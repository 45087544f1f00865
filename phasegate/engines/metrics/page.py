"""Reading ``/metrics`` pages: the server's own, or those of the workers behind a router.

A page is asked for between measurements, never inside one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import sleep
from urllib.parse import urlsplit

from phasegate.core.hiding import hide_key
from phasegate.engines.ask import AskError, address_problem, ask_text, root_of, same_server, without_userinfo
from phasegate.engines.metrics.names import ENGINES, EngineNames
from phasegate.engines.metrics.readings import Samples, engine_of, readings_of, readings_of_workers, samples_of
from phasegate.stats.counters import Reading
from phasegate.wire.messages import clean

SECONDS = 5.0
"""Longest wait for a page; a busy server's page takes milliseconds."""

SETTLE = max(one.settle for one in ENGINES.values())
"""Seconds of waiting before pages whose engines are not known yet."""

SHOWN = 100
"""Characters of what a reader says of a page that it cannot read; it may quote all of the page."""

NUMBERLESS = "the server's own counters were not read: its page has no number for any that are known of its engine"


@dataclass(frozen=True, slots=True)
class Page:
    """One reading of a server's page, or of the pages of all its workers together.

    Attributes:
        readings: our word -> reading; words that the page does not have are missing.
        note: why there is no reading, in one sentence for people, or None.
    """

    readings: Mapping[str, Reading]
    note: str | None = None


class MetricsPages:
    """Where a server's page is, or those of the workers behind it, and how to read them.

    Args:
        base_url: the server's API, with its version path.
        engine: as `ServerIdentity.engine` names it.
        api_key: what clients present, or None. It goes to that server only, and to no other host or port.
        headers: sent to that server beside the usual ones, as requests carry them; nowhere else either.
        workers: addresses of the pages to read instead of the server's own: those of the workers behind a router, of
            whatever engine each is; what they tell is added up.

    Attributes:
        names: the engine's names; of workers what holds for all of them, and None until they were first read.
    """

    def __init__(
        self,
        base_url: str,
        engine: str,
        api_key: str | None = None,
        workers: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._own = root_of(base_url) + "/metrics"
        self._pages = tuple(page_url(one) for one in workers)
        self._api_key = api_key
        self._headers = dict(headers or {})
        self.names: EngineNames | None = None if workers else ENGINES.get(engine.lower())
        self._closed: str | None = None

    @property
    def pages(self) -> int:
        """How many pages are added up."""
        return len(self._pages) or 1

    def read(self) -> Page:
        """The pages now. Never raises: one that cannot be had is a note, and nothing is asked for again.

        Of several pages all are needed: a sum with a worker missing would be taken for the whole.
        """
        if self.names is None and not self._pages:
            return Page({})
        if self._closed is None:
            sleep(self.names.settle if self.names is not None else SETTLE)
            try:
                readings = self._read_workers() if self._pages else self._read_own()
                # Not closed: some engines tell a number only after their first request.
                return Page(readings, None if readings else NUMBERLESS)
            except _ClosedError as closed:
                self._closed = f"the server's own counters were not read: {closed}"
        return Page({}, self._closed)

    def _read_own(self) -> dict[str, Reading]:
        assert self.names is not None
        hint = f"; {self.names.enabled_by} opens it" if self.names.enabled_by else ""
        return readings_of(self._samples(self._own, "/metrics", hint), self.names)

    def _read_workers(self) -> dict[str, Reading]:
        pages, engines = [], []
        for url in self._pages:
            shown = without_userinfo(url)
            pages.append(self._samples(url, shown, "; a metrics URL names the page of a worker"))
            engine = engine_of(pages[-1])
            if engine is None:
                known = ", ".join(one.prefix for one in ENGINES.values())
                raise _ClosedError(f"{shown} is the page of no engine that is known by its names ({known})")
            engines.append(engine)
        self.names = _common([ENGINES[engine] for engine in dict.fromkeys(engines)])
        return readings_of_workers(pages)

    def _samples(self, url: str, shown: str, hint: str) -> Samples:
        own = same_server(url, self._own)
        key, headers = (self._api_key, self._headers) if own else (None, {})
        try:
            text = ask_text(url, api_key=key, seconds=SECONDS, headers=headers)
        except AskError as error:
            raise _ClosedError(f"{shown} gave {error}{hint}") from None
        try:
            return samples_of(text)
        except ValueError as error:
            said = "it holds bytes that are no text" if _is_binary(text) else clean(hide_key(str(error), self._api_key))
            said = said if len(said) <= SHOWN else said[: SHOWN - 1] + "…"
            raise _ClosedError(f"{shown} is not a page in Prometheus' text format ({said})") from None


def _is_binary(text: str) -> bool:
    """Whether what was read as text is none: it holds control characters, or bytes that were no UTF-8."""
    return any(mark == "\ufffd" or not (mark.isprintable() or mark.isspace()) for mark in text)


class _ClosedError(Exception):
    """A page that cannot be had; the message says which and why."""


def page_url(text: str, source: str = "--perf-metrics-url") -> str:
    """A page's address from what a user wrote: as it stands where it ends in ``/metrics``, else that below its root.

    Args:
        text: an address.
        source: the option that it was given in, for the message.

    Raises:
        ValueError: it is no address; one line.
    """
    if address_problem(text) is not None:
        raise ValueError(
            f"{source} {without_userinfo(text)!r} is no address of a metrics page; "
            "write http://host:port or http://host:port/metrics"
        )
    return text if urlsplit(text).path.rstrip("/").endswith("/metrics") else root_of(text) + "/metrics"


def _common(engines: Sequence[EngineNames]) -> EngineNames:
    """What holds for all of some engines."""
    if len(engines) == 1:
        return engines[0]
    return EngineNames(
        {},
        "",
        tokenised_inside=all(one.tokenised_inside for one in engines),
        settle=max(one.settle for one in engines),
        probed=all(one.probed for one in engines),
    )
