"""What `--dry-run` shows to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.task import Task
    from sojourn.engine.creation import Plan
    from sojourn.engine.upload import Upload

__all__ = ["plan_text"]

_LARGEST = 10
_EXCLUDED = 10


def plan_text(plan: Plan, task: Task) -> str:
    """What it would do, in words."""
    lines = [*_uploaded(plan.upload, task), *_created(plan), "Dry run: nothing created."]
    if plan.advice:
        lines.insert(-1, plan.advice)
    return "\n".join(lines)


def _uploaded(upload: Upload | None, task: Task) -> Iterator[str]:
    from sojourn.core.sizes import size_of

    if upload is None:
        yield "No workdir: nothing to upload"
        return
    yield f"Would upload {upload} from {task.storage.workdir}"
    for part in upload.parts[:_LARGEST]:
        yield f"  {size_of(part.bytes):>10}  {part.path}"
    if len(upload.parts) > _LARGEST:
        yield f"  and {len(upload.parts) - _LARGEST:,} more"
    if upload.excluded:
        names = ", ".join(upload.excluded[:_EXCLUDED])
        more = len(upload.excluded) - _EXCLUDED
        yield f"Would exclude {names}" + (f", and {more:,} more" if more > 0 else "")


def _created(plan: Plan) -> Iterator[str]:
    if plan.exists:
        yield f"Would resume {plan.id}, which already exists on {plan.cloud}"
        return
    yield f"Would create on {plan.cloud}"
    for title in plan.resources:
        yield f"  {title}"
