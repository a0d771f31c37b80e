"""The blob service, for block blobs: what each operation does.

Who may does not belong here, see `blobauth`; nor what XML looks like, see `blobxml`.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime, parsedate_to_datetime
from urllib.parse import unquote, urlsplit

from tests.simcloud.az import blobxml
from tests.simcloud.az.blobauth import BlobAuth, Caller
from tests.simcloud.az.blobstore import Account, Blob, Container
from tests.simcloud.az.gate import BlobError
from tests.simcloud.az.parts import Parts
from tests.simcloud.az.storage import Storage
from tests.simcloud.az.tls import BLOBS
from tests.simcloud.az.wire import host
from tests.simcloud.common.wire import CUT, Answer, Request

_KEPT = ("content-type", "content-encoding", "content-language", "cache-control")
_PAGE = 5000


class BlobService:
    """Answers for all storage accounts. Called with the lock held."""

    def __init__(self, parts: Parts, storage: Storage) -> None:
        self._parts = parts
        self._storage = storage
        self._auth = BlobAuth(parts)
        self.page = _PAGE
        self._handlers: Mapping[str, Callable[[Caller, Account, Request], Answer]] = {
            "CreateContainer": self._create_container,
            "DeleteContainer": self._delete_container,
            "GetContainer": lambda _, a, r: Answer(200, b"", self._common(self._container(a, r))),
            "ListBlobs": self._list,
            "PutBlob": self._put,
            "PutBlock": self._put_block,
            "PutBlockList": self._put_list,
            "CopyBlob": self._copy,
            "GetBlob": self._get,
            "HeadBlob": self._get,
            "DeleteBlob": self._delete,
            "SubmitBatch": self._batch,
            "GetUserDelegationKey": self._delegate,
        }

    def name(self, request: Request) -> str:
        """Which operation a request asks for."""
        given, inside = request.parameters, unquote(request.path).strip("/").partition("/")[2]
        kind = (request.method, given.get("restype", ""), given.get("comp", ""))
        known = {
            ("PUT", "container", ""): "CreateContainer",
            ("DELETE", "container", ""): "DeleteContainer",
            ("GET", "container", ""): "GetContainer",
            ("HEAD", "container", ""): "GetContainer",
            ("GET", "container", "list"): "ListBlobs",
            ("POST", "container", "batch"): "SubmitBatch",
            ("POST", "", "batch"): "SubmitBatch",
            ("POST", "service", "userdelegationkey"): "GetUserDelegationKey",
        }
        if inside:
            copies = "x-ms-copy-source" in request.headers
            known |= {
                ("PUT", "", ""): "CopyBlob" if copies else "PutBlob",
                ("PUT", "", "block"): "PutBlock",
                ("PUT", "", "blocklist"): "PutBlockList",
                ("GET", "", ""): "GetBlob",
                ("HEAD", "", ""): "HeadBlob",
                ("DELETE", "", ""): "DeleteBlob",
            }
        found = known.get(kind)
        if found is None:
            raise NotImplementedError(f"{request.method} {request.path}?{request.query}")
        return found

    def caller(self, request: Request) -> str:
        account, shared = self._account(request)
        return self._auth.find(account, shared, request).name

    def answer(self, name: str, request: Request) -> Answer:
        operation = name.partition(".")[2]
        account, shared = self._account(request)
        caller = self._auth.find(account, shared, request)
        path = unquote(request.path).strip("/")
        if operation != "SubmitBatch":
            prefix = request.parameters.get("prefix", "")
            self._auth.check(caller, account, operation, path, prefix)
        answer = self._handlers[operation](caller, account, request)
        said = {"x-ms-request-id": str(uuid.uuid4()), "x-ms-version": "2023-11-03"}
        return Answer(answer.status, answer.body, {**said, **answer.headers})

    def _account(self, request: Request) -> tuple[Account, bool]:
        found = self._storage.account(host(request).removesuffix(BLOBS))
        if found is None or found.properties["provisioningState"] != "Succeeded":
            raise BlobError(CUT, "NoSuchHost")  # its name does not even resolve
        return found.inner, bool(found.properties["allowSharedKeyAccess"])

    def _container(self, account: Account, request: Request) -> Container:
        name = unquote(request.path).strip("/").partition("/")[0]
        if name not in account.containers:
            if account.gone.get(name, 0.0) > self._parts.clock.now():
                text = "The specified container is being deleted. Try operation later."
                raise BlobError(409, "ContainerBeingDeleted", text)
            text = "The specified container does not exist."
            raise BlobError(404, "ContainerNotFound", text)
        return account.containers[name]

    def _create_container(self, _: Caller, account: Account, request: Request) -> Answer:
        name = unquote(request.path).strip("/")
        if name in account.containers:
            text = "The specified container already exists."
            raise BlobError(409, "ContainerAlreadyExists", text)
        if account.gone.get(name, 0.0) > self._parts.clock.now():
            self._container(account, request)
        self._storage.add_container(account, name)
        return Answer(201)

    def _delete_container(self, _: Caller, account: Account, request: Request) -> Answer:
        self._storage.remove_container(account, self._container(account, request).name)
        return Answer(202)

    def _list(self, _: Caller, account: Account, request: Request) -> Answer:
        container = self._container(account, request)
        return blobxml.listing(account, container, request.parameters, self.page)

    def _put(self, _: Caller, account: Account, request: Request) -> Answer:
        if request.headers.get("x-ms-blob-type") != "BlockBlob":
            text = "An HTTP header that's mandatory for this request is not specified."
            raise BlobError(400, "MissingRequiredHeader", text)
        digest = request.headers.get("content-md5")
        if digest and digest != base64.b64encode(hashlib.md5(request.body).digest()).decode():
            raise BlobError(400, "Md5Mismatch", "The MD5 value specified did not match.")
        container, key = self._container(account, request), _key(request)
        return self._store(container, key, request, request.body, request.headers)

    def _store(
        self,
        container: Container,
        key: str,
        request: Request,
        data: bytes,
        headers: Mapping[str, str],
    ) -> Answer:
        _check_conditions(container.blobs.get(key), request, writing=True)
        blob = Blob(
            data,
            self._parts.clock.now(),
            {
                name: v
                for name in _KEPT
                if (v := headers.get(f"x-ms-blob-{name}", headers.get(name)))
            },
            {name: value for name, value in headers.items() if name.startswith("x-ms-meta-")},
        )
        container.blobs[key] = blob
        container.blocks.pop(key, None)
        return Answer(201, b"", {"ETag": blob.etag, "Last-Modified": _date(blob.modified)})

    def _put_block(self, _: Caller, account: Account, request: Request) -> Answer:
        blocks = self._container(account, request).blocks.setdefault(_key(request), {})
        block = request.parameters.get("blockid", "")
        if not block or any(len(each) != len(block) for each in blocks):
            text = "The specified blob or block content is invalid."
            raise BlobError(400, "InvalidBlobOrBlock", text)
        blocks[block] = request.body
        return Answer(201)

    def _put_list(self, _: Caller, account: Account, request: Request) -> Answer:
        container, key = self._container(account, request), _key(request)
        blocks = container.blocks.get(key, {})
        ids = blobxml.block_ids(request.body)
        if any(each not in blocks for each in ids):
            raise BlobError(400, "InvalidBlockList", "The specified block list is invalid.")
        data = b"".join(blocks[each] for each in ids)
        headers = {n: v for n, v in request.headers.items() if n != "content-type"}
        return self._store(container, key, request, data, headers)

    def _copy(self, caller: Caller, account: Account, request: Request) -> Answer:
        container, key = self._container(account, request), _key(request)
        source = urlsplit(request.headers["x-ms-copy-source"])
        if source.hostname != host(request):
            raise NotImplementedError("copies from other accounts are not known here")
        path = unquote(source.path).strip("/")
        if "sig=" not in source.query:
            self._auth.check(caller, account, "GetBlob", path)
        name, _, inside = path.partition("/")
        found = account.containers.get(name, Container(name)).blobs.get(inside)
        if found is None:
            raise BlobError(404, "CannotVerifyCopySource", "The specified blob does not exist.")
        headers = {**found.headers, **found.metadata}
        stored = self._store(container, key, request, found.data, headers)
        said = {"x-ms-copy-id": str(uuid.uuid4()), "x-ms-copy-status": "success"}
        return Answer(202, b"", {**stored.headers, **said})

    def _get(self, _: Caller, account: Account, request: Request) -> Answer:
        blob = self._container(account, request).blobs.get(_key(request))
        if blob is None:
            raise BlobError(404, "BlobNotFound", "The specified blob does not exist.")
        _check_conditions(blob, request, writing=False)
        said = {**self._common(blob), **blob.metadata, "x-ms-blob-type": "BlockBlob"}
        said["Content-Type"] = blob.headers.get("content-type", "application/octet-stream")
        said |= {name.title(): v for name, v in blob.headers.items() if name != "content-type"}
        asked = request.headers.get("x-ms-range") or request.headers.get("range")
        if request.method == "HEAD":
            return Answer(200, b"", {**said, "Content-Length": str(len(blob.data))})
        if not asked:
            return Answer(200, blob.data, said)
        begin, end = _range(asked, len(blob.data))
        said["Content-Range"] = f"bytes {begin}-{end - 1}/{len(blob.data)}"
        return Answer(206, blob.data[begin:end], said)

    def _delete(self, _: Caller, account: Account, request: Request) -> Answer:
        blobs, key = self._container(account, request).blobs, _key(request)
        if key not in blobs:
            raise BlobError(404, "BlobNotFound", "The specified blob does not exist.")
        _check_conditions(blobs[key], request, writing=True)
        del blobs[key]
        return Answer(202, b"", {"x-ms-delete-type-permanent": "true"})

    def _batch(self, caller: Caller, account: Account, request: Request) -> Answer:
        """Up to 256 deletions, each with headers of its own."""
        inner = blobxml.parts_of_batch(request)
        if not 0 < len(inner) <= 256:
            raise BlobError(400, "InvalidInput", "One of the request inputs is not valid.")
        answers = []
        for each in inner:
            try:
                who = self._auth.find(account, True, each)
                self._auth.check(who, account, "DeleteBlob", unquote(each.path).strip("/"))
                answers.append(self._delete(who, account, each))
            except BlobError as error:
                answers.append(error.answer())
        return blobxml.answers_of_batch(answers)

    def _delegate(self, caller: Caller, account: Account, request: Request) -> Answer:
        if caller.principal is None:
            raise BlobError(403, "AuthenticationFailed", "Only with an OAuth token.")
        start, end = blobxml.key_times(request.body)
        if end and _moment(end) - _moment(start) > timedelta(days=7):
            text = "The value for one of the XML nodes is not in the correct format."
            raise BlobError(400, "InvalidXmlNodeValue", text)
        key = base64.b64encode(hashlib.sha256(uuid.uuid4().bytes).digest()).decode()
        self._auth.delegated[caller.principal.object_id] = (key, caller.principal)
        tenant = self._parts.directory.tenant
        return blobxml.delegation_key(caller.principal.object_id, tenant, start, end, key)

    def _common(self, what: Blob | Container) -> dict[str, str]:
        if isinstance(what, Container):
            return {"ETag": '"0x8DC"', "Last-Modified": _date(self._parts.clock.now())}
        return {
            "ETag": what.etag,
            "Last-Modified": _date(what.modified),
            "Accept-Ranges": "bytes",
            "x-ms-creation-time": _date(what.modified),
        }


def _key(request: Request) -> str:
    return unquote(request.path).lstrip("/").partition("/")[2]


def _check_conditions(blob: Blob | None, request: Request, writing: bool) -> None:
    headers = request.headers
    match, none_match = headers.get("if-match"), headers.get("if-none-match")
    if match and (blob is None or match not in ("*", blob.etag)):
        raise _failed()
    if none_match and blob and none_match in ("*", blob.etag):
        if not writing:
            raise BlobError(304, "ConditionNotMet")
        if none_match == "*":
            raise BlobError(409, "BlobAlreadyExists", "The specified blob already exists.")
        raise _failed()
    since, until = headers.get("if-modified-since"), headers.get("if-unmodified-since")
    if blob and until and int(blob.modified) > parsedate_to_datetime(until).timestamp():
        raise _failed()
    if blob and since and int(blob.modified) <= parsedate_to_datetime(since).timestamp():
        raise BlobError(304, "ConditionNotMet") if not writing else _failed()


def _failed() -> BlobError:
    text = "The condition specified using HTTP conditional header(s) is not met."
    return BlobError(412, "ConditionNotMet", text)


def _range(asked: str, size: int) -> tuple[int, int]:
    first, _, last = asked.removeprefix("bytes=").partition("-")
    if not first:
        raise BlobError(400, "InvalidHeaderValue", "Suffix ranges are not supported.")
    begin, end = int(first), min(int(last) + 1 if last else size, size)
    if begin >= size:
        raise BlobError(416, "InvalidRange", "The range specified is invalid for the resource.")
    return begin, end


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _date(seconds: float) -> str:
    return format_datetime(datetime.fromtimestamp(seconds, timezone.utc), usegmt=True)
