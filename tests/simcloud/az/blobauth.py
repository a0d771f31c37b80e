"""Who asks the blob service, and what that one may: bearer tokens, account keys, signed addresses.

What the service answers does not belong here, see `blobs`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl, unquote

from tests.simcloud.az.blobstore import Account
from tests.simcloud.az.conditions import Asked
from tests.simcloud.az.entra import STORAGE_AUDIENCE, Principal
from tests.simcloud.az.gate import BlobError
from tests.simcloud.az.parts import Parts
from tests.simcloud.az.tls import BLOBS
from tests.simcloud.az.wire import ArmError
from tests.simcloud.common.wire import Request

_BLOB = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_CONTAINER = "Microsoft.Storage/storageAccounts/blobServices/containers"
_FAILED = "Server failed to authenticate the request."
# Per operation: the action, whether it is one on data, and the letter of a signed address
_NEEDS = {
    "GetBlob": (f"{_BLOB}/read", True, "r"),
    "HeadBlob": (f"{_BLOB}/read", True, "r"),
    "PutBlob": (f"{_BLOB}/write", True, "w"),
    "PutBlock": (f"{_BLOB}/write", True, "w"),
    "PutBlockList": (f"{_BLOB}/write", True, "w"),
    "CopyBlob": (f"{_BLOB}/write", True, "w"),
    "DeleteBlob": (f"{_BLOB}/delete", True, "d"),
    "ListBlobs": (f"{_BLOB}/read", True, "l"),
    "GetContainer": (f"{_CONTAINER}/read", False, ""),
    "CreateContainer": (f"{_CONTAINER}/write", False, ""),
    "DeleteContainer": (f"{_CONTAINER}/delete", False, ""),
    "GetUserDelegationKey": (
        "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action",
        False,
        "",
    ),
}
_SIGNED = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type",
    "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip


@dataclass(frozen=True)
class Caller:
    """Somebody with a token, or whoever holds a key or a signed address."""

    name: str
    principal: Principal | None = None
    letters: str | None = None  # what a signed address allows; None: it was none
    path: str = ""  # and for which blob or container


class BlobAuth:
    """Tells who a caller is, and refuses what it may not. Called with the lock held."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.delegated: dict[str, tuple[str, Principal]] = {}  # keys, by the id of their principal

    def find(self, account: Account, shared: bool, request: Request) -> Caller:
        """`shared`: whether the account lets itself be opened by its keys."""
        given = request.headers.get("authorization", "")
        if "sig" in request.parameters:
            return self._signed(account, shared, request)
        if given.startswith("Bearer "):
            return self._bearer(account, request, given)
        if given.startswith("SharedKey "):
            if not shared:
                text = "Key based authentication is not permitted on this storage account."
                raise BlobError(403, "KeyBasedAuthenticationNotPermitted", text)
            _check_signature(account, request, given)
            return Caller(f"key of {account.name}")
        text = f"{_FAILED} Please refer to the information in the www-authenticate header."
        raise BlobError(401, "NoAuthenticationInformation", text)

    def check(
        self, caller: Caller, account: Account, operation: str, path: str, prefix: str = ""
    ) -> None:
        """Whether a caller may do this with `container` or `container/blob`.

        `prefix`: of the blobs that are listed.
        """
        action, data, letter = _NEEDS[operation]
        if caller.letters is not None:
            inside = path == caller.path or path.startswith(f"{caller.path}/")
            if not (inside and letter and letter in caller.letters):
                raise _mismatch()
            return
        if caller.principal is None:
            return  # a key opens everything
        scope = f"{account.id}/blobServices/default"
        container, _, blob = path.partition("/")
        if container:
            scope += f"/containers/{container}"
        who, roles = caller.principal.object_id, self._parts.roles
        if operation == "ListBlobs":
            asked = Asked(action, "Blob.List", {"prefix": prefix})
        else:
            asked = Asked(action, attributes={"path": blob})
        may = roles.may_with_data(who, asked, scope) if data else roles.may(who, action, scope)
        if not may:
            raise _mismatch()

    def _bearer(self, account: Account, request: Request, given: str) -> Caller:
        if "x-ms-version" not in request.headers:
            text = "An HTTP header that's mandatory for this request is not specified."
            raise BlobError(400, "MissingRequiredHeader", text)
        audiences = (STORAGE_AUDIENCE, f"https://{account.name}{BLOBS}")
        try:
            principal = self._parts.directory.verify(given, audiences)
        except ArmError as error:
            raise BlobError(401, "InvalidAuthenticationInfo", error.message) from error
        return Caller(principal.name, principal)

    def _signed(self, account: Account, shared: bool, request: Request) -> Caller:
        """A service SAS for one blob or container, with an account key or a delegated one."""
        given = request.parameters
        if given.get("sr") not in ("b", "c"):
            raise NotImplementedError(
                f"signed addresses for {given.get('sr')!r} are not known here"
            )
        path = unquote(request.path).strip("/")
        path = path if given["sr"] == "b" else path.partition("/")[0]
        text = "\n".join(_string_to_sign(account, path, given))
        keys: list[str] = account.keys if shared else []
        principal = None
        if "skoid" in given:
            key, principal = self.delegated.get(given["skoid"], ("", None))
            keys = [key]
        if not any(_hmac(key, text) == given["sig"] for key in keys if key):
            text = f"{_FAILED} Signature did not match."
            raise BlobError(403, "AuthenticationFailed", text)
        now = self._parts.clock.now()
        start, end = (_seconds(given.get(name, "")) for name in ("st", "se"))
        if (start and now < start) or not end or now >= end:
            text = f"{_FAILED} Signature not valid in the specified time frame."
            raise BlobError(403, "AuthenticationFailed", text)
        if principal and not self._parts.directory.exists(principal.object_id):
            raise _mismatch()
        return Caller(f"signed address of {account.name}", None, given.get("sp", ""), path)


def _string_to_sign(account: Account, path: str, given: Mapping[str, str]) -> Iterator[str]:
    """Of the versions from 2020-12-06 on."""
    yield from (given.get(name, "") for name in ("sp", "st", "se"))
    yield f"/blob/{account.name}/{path}"
    if "skoid" in given:
        yield from (given.get(name, "") for name in ("skoid", "sktid", "skt", "ske", "sks", "skv"))
        yield from (given.get(name, "") for name in ("saoid", "suoid", "scid"))
    else:
        yield given.get("si", "")
    yield from (given.get(name, "") for name in ("sip", "spr", "sv", "sr"))
    yield ""  # of a snapshot
    yield from (given.get(name, "") for name in ("ses", "rscc", "rscd", "rsce", "rscl", "rsct"))


def _check_signature(account: Account, request: Request, given: str) -> None:
    name, _, signature = given.removeprefix("SharedKey ").partition(":")
    text = _canonical(account, request)
    if name != account.name or not any(_hmac(key, text) == signature for key in account.keys):
        text = f"{_FAILED} Make sure the value of Authorization header is formed correctly."
        raise BlobError(403, "AuthenticationFailed", text)


def _canonical(account: Account, request: Request) -> str:
    lines = [request.method]
    for name in _SIGNED:
        value = request.headers.get(name, "")
        if name == "content-length" and value == "0":
            value = ""
        if name == "date" and "x-ms-date" in request.headers:
            value = ""
        lines.append(value)
    own = sorted(name for name in request.headers if name.startswith("x-ms-"))
    lines += [f"{name}:{request.headers[name].strip()}" for name in own]
    lines.append(f"/{account.name}{request.path}")
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        query.setdefault(name.lower(), []).append(value)
    lines += [f"{name}:{','.join(sorted(query[name]))}" for name in sorted(query)]
    return "\n".join(lines)


def _hmac(key: str, text: str) -> str:
    made = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(made).decode()


def _seconds(text: str) -> float | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None


def _mismatch() -> BlobError:
    return BlobError(
        403,
        "AuthorizationPermissionMismatch",
        "This request is not authorized to perform this operation using this permission.",
    )
