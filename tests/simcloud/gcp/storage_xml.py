"""The XML API of Cloud Storage, which object_store's client speaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.storage_json import listed
from tests.simcloud.gcp.storage_model import (
    SMALLEST_PART,
    Bucket,
    Buckets,
    Match,
    Object,
    Upload,
    byte_range,
    check_hashes,
    check_name,
    no_object,
    precondition_failed,
)
from tests.simcloud.gcp.storage_rights import copy_source
from tests.simcloud.gcp.wire import XML, GCPError

_SPACE = 'xmlns="http://doc.s3.amazonaws.com/2006-03-01"'
_HEADERS = ("cache-control", "content-disposition", "content-encoding", "content-language")
_MOST = 1000
_META = "x-goog-meta-"


class StorageXML:
    """All methods that are known; each is called with the lock held."""

    def __init__(self, clock: Clock, buckets: Buckets) -> None:
        self._clock = clock
        self._buckets = buckets
        self._methods: Mapping[str, Callable[[Call, Request, Bucket], Answer]] = {
            "objects.copy": self._copy,
            "objects.delete": self._delete,
            "objects.get": self._get,
            "objects.insert": self._insert,
            "objects.list": self._list,
            "xml.abortUpload": self._abort,
            "xml.completeUpload": self._complete,
            "xml.createUpload": self._begin,
            "xml.listParts": self._parts,
            "xml.listUploads": self._uploads,
            "xml.uploadPart": self._part,
        }

    def answer(self, call: Call, request: Request) -> Answer:
        bucket = self._buckets.get(call.places["bucket"])
        return self._methods[call.operation](call, request, bucket)

    def _insert(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        name = call.places["object"]
        check_name(name)
        check_hashes(request.headers, request.body)
        made = Object(name, request.body, 0, self._clock.today(), _kind(request))
        made.metadata, made.headers = _extras(request)
        return Answer(200, b"", _about(self._buckets.put(bucket, made, _match(request))))

    def _get(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        name = call.places["object"]
        found = bucket.objects.get(name)
        asked = call.asked("generation")
        if found is None or (asked and asked != str(found.generation)):
            raise no_object(bucket.name, name)
        _match(request).check(found, reading=True)
        _check_conditions(request, found)
        headers = {
            **_about(found),
            "Content-Type": found.content_type,
            "Last-Modified": format_datetime(found.created, usegmt=True),
            "Accept-Ranges": "bytes",
            **found.headers,
            **{_META + key: value for key, value in found.metadata.items()},
        }
        if request.method == "HEAD":
            return Answer(200, b"", {**headers, "Content-Length": str(len(found.data))})
        part = byte_range(request.headers.get("range", ""), len(found.data))
        if part is None:
            return Answer(200, found.data, headers)
        first, last = part
        headers["Content-Range"] = f"bytes {first}-{last}/{len(found.data)}"
        return Answer(206, found.data[first : last + 1], headers)

    def _delete(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        self._buckets.delete(bucket, call.places["object"], _match(request))
        return Answer(204)

    def _copy(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        from_bucket, name = copy_source(request.headers["x-goog-copy-source"])
        source = self._buckets.get(from_bucket).objects.get(name)
        if source is None:
            raise no_object(from_bucket, name)
        check_name(call.places["object"])
        made = Object(
            call.places["object"], source.data, 0, self._clock.today(), source.content_type,
            dict(source.headers), dict(source.metadata),
        )  # fmt: skip
        made = self._buckets.put(bucket, made, _match(request))
        text = _element("ETag", made.etag) + _element("LastModified", _time(made.created))
        return _xml(f"<CopyObjectResult>{text}</CopyObjectResult>", _about(made))

    def _list(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        if call.asked("list-type") != "2":
            raise NotImplementedError("lists are only known with list-type=2")
        token, after = call.asked("continuation-token"), call.asked("start-after")
        start = token or (after + "\0" if after else "")
        most = min(call.asked_number("max-keys", _MOST), _MOST)
        prefix, delimiter = call.asked("prefix"), call.asked("delimiter")
        found, prefixes, following = listed(bucket, prefix, delimiter, start, most)
        safe = quote if call.asked("encoding-type") == "url" else escape
        inner = _element("Name", bucket.name) + _element("Prefix", prefix)
        inner += _element("KeyCount", str(len(found) + len(prefixes)))
        inner += _element("IsTruncated", str(bool(following)).lower())
        inner += _element("NextContinuationToken", following) if following else ""
        for each in found:
            inner += (
                f"<Contents><Key>{safe(each.name)}</Key>"
                f"<Generation>{each.generation}</Generation>"
                f"<MetaGeneration>1</MetaGeneration>"
                f"<LastModified>{_time(each.created)}</LastModified>"
                f"<ETag>{escape(each.etag)}</ETag><Size>{len(each.data)}</Size></Contents>"
            )
        for common in prefixes:
            inner += f"<CommonPrefixes><Prefix>{safe(common)}</Prefix></CommonPrefixes>"
        return _xml(f"<ListBucketResult {_SPACE}>{inner}</ListBucketResult>")

    # In parts

    def _begin(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        name = call.places["object"]
        check_name(name)
        metadata, headers = _extras(request)
        started = Upload(name, self._clock.today(), _kind(request), metadata, headers)
        upload_id = self._buckets.begin(bucket, started)
        inner = _element("Bucket", bucket.name) + _element("Key", name)
        inner += _element("UploadId", upload_id)
        return _xml(
            f"<InitiateMultipartUploadResult {_SPACE}>{inner}</InitiateMultipartUploadResult>"
        )

    def _part(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        upload = _upload(call, bucket)
        number = call.asked_number("partNumber", 0)
        if not 1 <= number <= 10000:
            raise GCPError("invalid", "Part numbers are from 1 to 10000", 400)
        check_hashes(request.headers, request.body)
        upload.parts[number] = request.body
        return Answer(200, b"", {"ETag": _etag(request.body)})

    def _complete(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        upload = _upload(call, bucket)
        chosen = [
            (int(part.findtext("{*}PartNumber", "0")), part.findtext("{*}ETag", ""))
            for part in ElementTree.fromstring(request.body).findall("{*}Part")
        ]
        numbers = [number for number, _ in chosen]
        if not numbers or numbers != sorted(set(numbers)):
            raise GCPError("invalid", "The parts are not in order", 400, xml="InvalidPartOrder")
        for number, etag in chosen:
            data = upload.parts.get(number)
            if data is None or _etag(data).strip('"') != etag.strip('"'):
                raise GCPError("invalid", "A part was not found", 400, xml="InvalidPart")
            if number != numbers[-1] and len(data) < SMALLEST_PART:
                message = "Your proposed upload is smaller than the minimum object size"
                raise GCPError("invalid", message, 400, xml="EntityTooSmall")
        whole = b"".join(upload.parts[number] for number in numbers)
        made = Object(
            upload.name, whole, 0, self._clock.today(), upload.content_type, upload.headers,
            upload.metadata, len(numbers),
        )  # fmt: skip
        made = self._buckets.put(bucket, made, _match(request))
        del bucket.uploads[call.asked("uploadId")]
        inner = _element("Bucket", bucket.name) + _element("Key", made.name)
        inner += _element("ETag", made.etag)
        return _xml(
            f"<CompleteMultipartUploadResult {_SPACE}>{inner}</CompleteMultipartUploadResult>",
            _about(made),
        )

    def _abort(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        _upload(call, bucket)
        del bucket.uploads[call.asked("uploadId")]
        return Answer(204)

    def _parts(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        upload = _upload(call, bucket)
        inner = "".join(
            f"<Part><PartNumber>{number}</PartNumber><Size>{len(data)}</Size></Part>"
            for number, data in sorted(upload.parts.items())
        )
        return _xml(f"<ListPartsResult {_SPACE}>{inner}</ListPartsResult>")

    def _uploads(self, call: Call, request: Request, bucket: Bucket) -> Answer:
        inner = "".join(
            f"<Upload>{_element('Key', each.name)}{_element('UploadId', key)}</Upload>"
            for key, each in sorted(bucket.uploads.items(), key=lambda item: item[1].name)
            if each.name.startswith(call.asked("prefix"))
        )
        return _xml(f"<ListMultipartUploadsResult {_SPACE}>{inner}</ListMultipartUploadsResult>")


def _upload(call: Call, bucket: Bucket) -> Upload:
    found = bucket.uploads.get(call.asked("uploadId"))
    if found is None or found.name != call.places["object"]:
        message = "The requested upload was not found."
        raise GCPError("notFound", message, 404, xml="NoSuchUpload")
    return found


def _match(request: Request) -> Match:
    def number(name: str) -> int | None:
        value = request.headers.get(f"x-goog-if-{name}")
        if value is not None and not re.fullmatch(r"\d+", value):
            raise GCPError("invalid", f"Invalid value of x-goog-if-{name}: {value}", 400)
        return None if value is None else int(value)

    return Match(number("generation-match"), None, number("metageneration-match"))


def _check_conditions(request: Request, found: Object) -> None:
    """The conditions of HTTP, which only reads have."""
    given = request.headers
    if given.get("if-match", found.etag) not in (found.etag, found.etag.strip('"'), "*"):
        raise precondition_failed()
    if given.get("if-none-match") in (found.etag, found.etag.strip('"'), "*"):
        raise GCPError("notModified", "", 304)
    changed = found.created.replace(microsecond=0)
    if "if-modified-since" in given and changed <= parsedate_to_datetime(
        given["if-modified-since"]
    ):
        raise GCPError("notModified", "", 304)
    if "if-unmodified-since" in given and changed > parsedate_to_datetime(
        given["if-unmodified-since"]
    ):
        raise precondition_failed()


def _extras(request: Request) -> tuple[dict[str, str], dict[str, str]]:
    metadata = {
        name.removeprefix(_META): value
        for name, value in request.headers.items()
        if name.startswith(_META)
    }
    return metadata, {name: request.headers[name] for name in _HEADERS if name in request.headers}


def _kind(request: Request) -> str:
    return request.headers.get("content-type") or "application/octet-stream"


def _about(found: Object) -> dict[str, Any]:
    return {
        "ETag": found.etag,
        "x-goog-generation": str(found.generation),
        "x-goog-metageneration": "1",
        "x-goog-storage-class": "STANDARD",
    }


def _etag(data: bytes) -> str:
    import hashlib

    return f'"{hashlib.md5(data).hexdigest()}"'


def _time(moment: Any) -> str:
    return str(moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z")


def _element(name: str, value: str) -> str:
    return f"<{name}>{escape(value)}</{name}>"


def _xml(text: str, headers: Mapping[str, str] | None = None) -> Answer:
    body = f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode()
    return Answer(200, body, {**(headers or {}), "Content-Type": XML})
