"""Why pods do not come, in short sentences that say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.k8s.jobs import condition
from sojourn.core.errors import AuthError

if TYPE_CHECKING:
    from sojourn.kube.api import Api, Object

__all__ = ["cannot_start", "job_obstacle", "last_events", "shortened", "waiting", "when"]

_IMAGE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable")
_WRONG = ("InvalidImageName", "CreateContainerConfigError", "CreateContainerError")
_MOUNT = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_CLAIM = ("ProvisioningFailed", "FailedBinding")
_LONGEST = 300


def waiting(api: Api, pod: Object) -> str:
    """Why a pod is not running yet; empty if nothing is in its way."""
    if pod["status"].get("phase") != "Pending":
        return ""
    image = _image_problem(pod)
    if image:
        return image
    if not pod["spec"].get("nodeName"):
        claims = _claim_problem(api, pod)
        if claims:
            return claims
    scheduled = _not_scheduled(pod)
    if scheduled:
        return f"no node fits: {shortened(scheduled)}"
    told = _told(api, pod["metadata"]["name"], _MOUNT)
    return f"could not mount a volume: {told}" if told else ""


def cannot_start(api: Api, pod: Object) -> str:
    """Why a pod never will, as far as can be known; empty if it may."""
    if not pod["spec"].get("nodeName") and (claim := _claim_problem(api, pod)):
        return f"{claim}; choose another storage class, or set storage.container to a bucket"
    for item in _statuses(pod):
        state = item["state"].get("waiting") or {}
        if state.get("reason") == "InvalidImageName":
            return f"invalid image {item['image']!r}: {shortened(state.get('message', ''))}"
    return ""


def _image_problem(pod: Object) -> str:
    for item in _statuses(pod):
        state = item["state"].get("waiting") or {}
        if state.get("reason") in _IMAGE:
            told = shortened(state.get("message") or state["reason"])
            return f"could not pull image {item['image']}: {told}"
        if state.get("reason") in _WRONG:
            return (
                f"could not start container {item['name']}: {shortened(state.get('message', ''))}"
            )
    return ""


def _statuses(pod: Object) -> list[Object]:
    status = pod["status"]
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _not_scheduled(pod: Object) -> str:
    for found in pod["status"].get("conditions") or ():
        if found["type"] == "PodScheduled" and found["status"] == "False":
            return str(found.get("message") or found.get("reason") or "")
    return ""


def _claim_problem(api: Api, pod: Object) -> str:
    """What is said of a claim that is not bound."""
    for volume in pod["spec"].get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if not name:
            continue
        try:
            claim = api.find("PersistentVolumeClaim", name)
        except AuthError:
            return ""
        if claim is None:
            return f"claim {name} not found"
        if claim["status"].get("phase") == "Bound":
            continue
        told = _told(api, name, _CLAIM)
        if told:
            return f"claim {name} is not bound: {told}"
    return ""


def _told(api: Api, name: str, reasons: tuple[str, ...]) -> str:
    """The last thing that is said of an object for one of these reasons."""
    found = [event for event in last_events(api, name) if event.get("reason") in reasons]
    return shortened(str(found[-1].get("message") or found[-1]["reason"])) if found else ""


def last_events(api: Api, name: str) -> list[Object]:
    """What the cluster says of an object, oldest first; nothing, if we may not know."""
    try:
        found = api.list("Event", fields=f"involvedObject.name={name}")
    except AuthError:
        return []
    return sorted(found, key=when)


def when(event: Object) -> str:
    """When an event last happened."""
    return str(
        event.get("lastTimestamp")
        or (event.get("series") or {}).get("lastObservedTime")
        or event.get("eventTime")
        or event["metadata"]["creationTimestamp"]
    )


def job_obstacle(api: Api, job: Object) -> str:
    """Why a Job makes no pods; empty if nothing is known."""
    failed = condition(job, "Failed")
    if failed:
        return f"Kubernetes gave up: {shortened(failed.get('message', ''))}"
    if job.get("status", {}).get("active"):
        return ""  # what is said of pods that failed before is over
    return _told(api, job["metadata"]["name"], ("FailedCreate",))


def shortened(text: str) -> str:
    """On one line, and not too long."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."
