# SPDX-License-Identifier: Apache-2.0
"""Who gets in. Every request passes here: only our own address as Host, only our own pages as Origin, a session of the
one-time token or the bearer token, a bounded body; every answer leaves with headers that let nothing in from elsewhere.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
"""Of pages that anonfit wrote as files: they have their style inside, and nothing may run."""
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)
OPEN = ("/static/",)
"""What everybody may have: style and script, which tell nothing."""


class TooLarge(Exception):
    """A request whose body is larger than allowed."""


@dataclass
class Keys:
    """The secrets of a server: a one-time token for the next browser, the sessions that it opened, and the bearer token
    of pipelines.
    """

    bearer: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    once: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)

    def ticket(self) -> str:
        """A token that lets one browser in, once."""
        token = secrets.token_urlsafe(32)
        self.once.add(token)
        return token

    def admit(self, token: str) -> str | None:
        """Take a one-time token; the session that it opens, or None."""
        known = next((held for held in self.once if _same(held, token)), None)
        if known is None:
            return None
        self.once.discard(known)
        session = secrets.token_urlsafe(32)
        self.sessions.add(session)
        return session

    def knows(self, session: str) -> bool:
        """Whether a session is one of ours."""
        return any(_same(held, session) for held in self.sessions)

    def is_bearer(self, header: str) -> bool:
        """Whether an Authorization header has the bearer token."""
        kind, _, token = header.partition(" ")
        return kind.lower() == "bearer" and _same(self.bearer, token.strip())


def _same(held: str, given: str) -> bool:
    return hmac.compare_digest(held.encode(), given.encode("utf-8", "replace"))


@dataclass(frozen=True)
class Guard:
    """The outermost layer of the application."""

    app: App
    keys: Keys
    hosts: frozenset[str]
    scheme: str
    cookie: str
    largest: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await self._refuse(scope, send, *refusal)
            return
        if scope["path"] == "/" and scope["method"] == "GET" and (token := _token(scope)) is not None:
            await self._admit(scope, send, token, headers)
            return
        if not scope["path"].startswith(OPEN) and not self._is_known(scope, headers):
            await self._refuse(scope, send, 401, "Unauthorized", UNKNOWN)
            return
        await self._bounded(scope, receive, send)

    def _refusal(self, scope: Scope, headers: MutableMapping[str, str]) -> tuple[int, str, str] | None:
        given = [value.decode("latin-1").lower() for name, value in scope["headers"] if name.lower() == b"host"]
        if len(given) != 1 or given[0] not in self.hosts:
            return 403, "Host", "this server answers under its own address only; use the one that it printed."
        origin, is_change = headers.get("origin"), scope["method"] not in SAFE
        is_foreign = origin is not None and origin.lower() != f"{self.scheme}://{given[0]}"
        from_elsewhere = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if is_foreign or (is_change and from_elsewhere):
            return 403, "Origin", "the request comes from a page of another site, and is refused."
        if is_change and origin is None and not self.keys.is_bearer(headers.get("authorization", "")):
            return 403, "Origin", "a change needs an Origin header, as browsers send it, or the bearer token."
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.largest:
            return 413, "TooLarge", _too_large(self.largest)
        return None

    def _is_known(self, scope: Scope, headers: MutableMapping[str, str]) -> bool:
        if self.keys.is_bearer(headers.get("authorization", "")):
            return True
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        session = next((value for name, _, value in pairs if name == self.cookie), "")
        scope.setdefault("state", {})["session"] = session
        return bool(session) and self.keys.knows(session)

    async def _admit(self, scope: Scope, send: Send, token: str, headers: MutableMapping[str, str]) -> None:
        """Exchange a one-time token for a session."""
        session = self.keys.admit(token)
        if session is None and not self._is_known(scope, headers):
            await self._refuse(scope, send, 403, "Token", UNKNOWN)
            return
        answer = [(b"location", b"/"), *HEADERS]
        if session is not None:
            secure = "; Secure" if self.scheme == "https" else ""
            cookie = f"{self.cookie}={session}; HttpOnly; SameSite=Strict; Path=/{secure}"
            answer.append((b"set-cookie", cookie.encode()))
        await send({"type": "http.response.start", "status": 303, "headers": answer})
        await send({"type": "http.response.body", "body": b""})

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, its body bounded and its answer with our headers."""
        received, refused = 0, False

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.largest:
                raise TooLarge
            return message

        async def dressed(message: Message) -> None:
            nonlocal refused
            if received > self.largest:  # whatever else the application makes of it
                if not refused:
                    refused = True
                    await self._refuse(scope, send, 413, "TooLarge", _too_large(self.largest))
                return
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in HEADERS if name not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        with suppress(TooLarge):
            await self.app(scope, bounded, dressed)

    async def _refuse(self, scope: Scope, send: Send, status: int, kind: str, words: str) -> None:
        """Refuse a request: pages as a page, the REST door as JSON."""
        from anonfit.web.answers import refusal

        kind_of_answer, body = refusal(scope["path"], kind, words)
        headers = [(b"content-type", kind_of_answer), (b"content-length", str(len(body)).encode()), *HEADERS]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


UNKNOWN = (
    "this address needs the one-time link that anonfit web printed when it was started; it opens one browser once. "
    "Start anonfit web again for a new one."
)


def _token(scope: Scope) -> str | None:
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("token", [])), None)


def _too_large(largest: int) -> str:
    return f"the request is larger than the {largest / 2**20:,.0f} MB that are allowed; allow more (--upload)."
