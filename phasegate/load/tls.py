"""What is trusted over TLS, for measured requests and questions alike, and what is said where trust ends.

Certificates that the environment names take the place of the system's roots: those of ``SSL_CERT_FILE`` and
``SSL_CERT_DIR``, which openai's own transport reads, and of ``REQUESTS_CA_BUNDLE`` and ``CURL_CA_BUNDLE``, which other
clients of the same server read. Where several are set, what any of them names is trusted.
"""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from pathlib import Path

from phasegate.engines.base import EngineError

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Where certificates to trust are named."""

_EXPIRED = 10
_WRONG_NAME = (62, 64)
"""Reasons of a refusal, as OpenSSL numbers them (x509_vfy.h): expired; another host name, another address."""

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")


def trust() -> ssl.SSLContext:
    """The context of every TLS connection, speaking HTTP/1.1 only.

    Raises:
        EngineError: a variable names certificates that cannot be read; one line.
    """
    return _context(tuple((name, value) for name in VARIABLES if (value := os.environ.get(name))))


@lru_cache(maxsize=8)
def _context(named: tuple[tuple[str, str], ...]) -> ssl.SSLContext:
    if not named:
        import httpx2

        context = httpx2.create_ssl_context(trust_env=False)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for name, value in named:
            _trust_also(context, name, Path(value))
    context.set_alpn_protocols(["http/1.1"])
    return context


def _trust_also(context: ssl.SSLContext, name: str, place: Path) -> None:
    try:
        if place.is_dir():
            context.load_verify_locations(capath=str(place))
        else:
            context.load_verify_locations(cafile=str(place))
    except ssl.SSLError:
        why = "has no certificate in it"
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    else:
        return
    raise EngineError(f"{name}: {place} {why}; name a file of certificates in PEM form, or unset it")


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """The fault of TLS that an error is, or was raised from."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return seen
        reason = getattr(seen, "reason", None)
        seen = reason if isinstance(reason, BaseException) else seen.__cause__ or seen.__context__
    return None


def tls_words(error: ssl.SSLError, where: str) -> str:
    """What went wrong with TLS and what to do, in one line; ``where`` is host and port."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        if error.verify_code in _WRONG_NAME:
            return f"TLS with {where}: its certificate is for another name ({why}); give the address by a name it has"
        if error.verify_code == _EXPIRED:
            return f"TLS with {where}: its certificate has expired, or this machine's clock is wrong"
        return (
            f"TLS with {where}: its certificate is not trusted ({why}); "
            "name a file that has it, or the authority that signed it, in SSL_CERT_FILE"
        )
    if error.reason in _NO_TLS:
        return f"TLS with {where}: what answers there speaks no TLS; is its address http:// and not https://?"
    return f"TLS with {where} failed: {error.reason or error}"
