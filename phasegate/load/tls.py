"""The trust that openai's own transport would have, so that a server it reaches is reached here too."""

from __future__ import annotations

import ssl

import httpx2


def default_context() -> ssl.SSLContext:
    """httpx2's default context (its roots, SSL_CERT_FILE and SSL_CERT_DIR), speaking HTTP/1.1 only."""
    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
