"""What is measured of Sojourn: one push or restore, in a process of its own.

`python -m bench.ours push|restore STORE_URL FOLDER`; the S3 server is the one of the environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sojourn.core.context import Context
from sojourn.core.filters import Filters
from sojourn.storage import layout
from sojourn.storage.data import StoreData
from sojourn.storage.restore import Restorer
from sojourn.storage.snapshot import newest
from sojourn.storage.store import Store, StoreAddress, open_store

__all__ = ["main"]


def main(verb: str, url: str, folder: str) -> None:
    store = open_store(StoreAddress(url, _options() if url.startswith("s3:") else {}))
    {"push": _push, "restore": _restore}[verb](store, Path(folder))


def _push(store: Store, folder: Path) -> None:
    StoreData(lambda: store).push(Context(), folder, Filters(), None)


def _restore(store: Store, folder: Path) -> None:
    found = newest(store, layout.WORKDIR)
    if found is None:
        raise SystemExit("there is no snapshot to restore")
    _, manifest = found
    Restorer(store, folder).restore(Context(), manifest.release(), manifest.objects)


def _options() -> dict[str, object]:
    return {
        "endpoint": os.environ["S3_ENDPOINT_URL"],
        "access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
        "secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "region": os.environ["AWS_REGION"],
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True},
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
