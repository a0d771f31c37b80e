"""XML and batches of the blob service. What an operation does is in `blobs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from email.utils import format_datetime
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.simcloud.az.blobstore import Account, Blob, Container
from tests.simcloud.az.gate import BlobError
from tests.simcloud.az.tls import BLOBS
from tests.simcloud.common.wire import Answer, Request

_XML = {"Content-Type": "application/xml"}
_HEAD = '<?xml version="1.0" encoding="utf-8"?>'


def listing(account: Account, container: Container, given: Mapping[str, str], page: int) -> Answer:
    """A page of a list. The entity tags have no quotes here, unlike in headers."""
    prefix, delimiter = given.get("prefix", ""), given.get("delimiter", "")
    size = min(int(given.get("maxresults") or page), page)
    entries = _entries(container, prefix, delimiter)
    first = given.get("marker") or given.get("startFrom", "")  # both inclusive
    rest = [each for each in entries if each[0] >= first]
    text = "".join(each for _, each in rest[:size])
    following = escape(rest[size][0]) if len(rest) > size else ""
    body = (
        f'{_HEAD}<EnumerationResults ServiceEndpoint="https://{account.name}{BLOBS}/" '
        f'ContainerName="{container.name}"><Prefix>{escape(prefix)}</Prefix>'
        f"<MaxResults>{size}</MaxResults><Blobs>{text}</Blobs>"
        f"<NextMarker>{following}</NextMarker></EnumerationResults>"
    )
    return Answer(200, body.encode(), _XML)


def _entries(container: Container, prefix: str, delimiter: str) -> list[tuple[str, str]]:
    """Blobs and, with a delimiter, what is before it, in the order of their names."""
    found: dict[str, str] = {}
    for name in sorted(container.blobs):
        if not name.startswith(prefix):
            continue
        inner, mark, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
        if mark:
            folder = f"{prefix}{inner}{mark}"
            found[folder] = f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>"
        else:
            found[name] = _entry(name, container.blobs[name])
    return sorted(found.items())


def _entry(name: str, blob: Blob) -> str:
    when = format_datetime(datetime.fromtimestamp(blob.modified, timezone.utc), usegmt=True)
    kind = escape(blob.headers.get("content-type", "application/octet-stream"))
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Creation-Time>{when}</Creation-Time>"
        f"<Last-Modified>{when}</Last-Modified><Etag>{blob.etag.strip(chr(34))}</Etag>"
        f"<Content-Length>{len(blob.data)}</Content-Length><Content-Type>{kind}</Content-Type>"
        f"<BlobType>BlockBlob</BlobType></Properties><OrMetadata /></Blob>"
    )


def block_ids(body: bytes) -> list[str]:
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise BlobError(400, "InvalidXmlDocument", "XML specified is not valid.") from error
    return [each.text or "" for each in root]


def key_times(body: bytes) -> tuple[str, str]:
    root = ElementTree.fromstring(body)
    return root.findtext("Start") or "", root.findtext("Expiry") or ""


def delegation_key(principal: str, tenant: str, start: str, end: str, key: str) -> Answer:
    text = (
        f"{_HEAD}<UserDelegationKey><SignedOid>{principal}</SignedOid>"
        f"<SignedTid>{tenant}</SignedTid><SignedStart>{start}</SignedStart>"
        f"<SignedExpiry>{end}</SignedExpiry><SignedService>b</SignedService>"
        f"<SignedVersion>2023-11-03</SignedVersion><Value>{key}</Value></UserDelegationKey>"
    )
    return Answer(200, text.encode(), _XML)


def parts_of_batch(request: Request) -> list[Request]:
    boundary = request.headers.get("content-type", "").partition("boundary=")[2].strip('"')
    return list(_parts(request, boundary.encode()))


def _parts(request: Request, boundary: bytes) -> Iterator[Request]:
    for part in request.body.split(b"--" + boundary):
        _, _, inner = part.partition(b"\r\n\r\n")
        if not inner.strip() or inner.strip() == b"--":
            continue
        head = inner.decode().split("\r\n\r\n")[0].split("\r\n")
        method, target, _ = head[0].split(" ")
        path, _, query = target.partition("?")
        headers = {"host": request.headers["host"]}
        headers |= {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        headers.setdefault("x-ms-version", request.headers.get("x-ms-version", ""))
        if method != "DELETE":
            raise NotImplementedError("batches of anything but deletions are not known here")
        yield Request(method, path, query, headers, b"")


def _phrase(answer: Answer) -> str:
    if answer.status < 400:
        return "Accepted"
    return ElementTree.fromstring(answer.body).findtext("Message") or ""


def answers_of_batch(answers: list[Answer]) -> Answer:
    mark = "batchresponse_66925647-d0cb-4109-b6d3-28efe3e1e5ed"
    text = b""
    for number, each in enumerate(answers):
        headers = "".join(f"{name}: {value}\r\n" for name, value in each.headers.items())
        text += (
            f"--{mark}\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            f"HTTP/1.1 {each.status} {_phrase(each)}\r\n{headers}"
            f"Content-Length: {len(each.body)}\r\n\r\n"
        ).encode() + each.body
        text += b"\r\n"
    text += f"--{mark}--".encode()
    return Answer(202, text, {"Content-Type": f"multipart/mixed; boundary={mark}"})
