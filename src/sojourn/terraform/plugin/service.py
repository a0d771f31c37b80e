"""The methods of the protocol: from messages to a provider's resources and back."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sojourn.core.flag import Flag
from sojourn.terraform.plugin import durations, wire
from sojourn.terraform.plugin.diagnostics import Diagnostic, Failure, path_to_wire
from sojourn.terraform.plugin.plan import plan
from sojourn.terraform.plugin.resource import Call, DataSource, Provider, Resource
from sojourn.terraform.plugin.values import Object, decode, decode_json, encode, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sojourn.terraform.plugin.log import Log
    from sojourn.terraform.plugin.schema import Block, Schema

__all__ = ["Service"]

# Private state of an import that could not read everything back, until the first apply after it.
_IMPORTED = {"imported": True}
_MARK = json.dumps(_IMPORTED).encode()


class Service:
    """A provider behind the protocol. Its methods may be called from many threads at once."""

    def __init__(self, provider: Provider, log: Log) -> None:
        self._provider = provider
        self._log = log
        self._stopped = Flag()
        self._busy = _Counter()
        self._lost = False  # whether an answer may lack what was made

    def methods(self) -> dict[str, tuple[Callable[[Any], Any], Any]]:
        """For each method of the protocol: what carries it out, and the class of its request."""
        return {
            "GetProviderSchema": (self._schemas, wire.Empty),
            "ValidateProviderConfig": (self._validate_provider, wire.ConfigRequest),
            "ConfigureProvider": (self._configure, wire.ConfigureRequest),
            "ValidateResourceConfig": (self._validate_resource, wire.ValidateRequest),
            "ValidateDataResourceConfig": (self._validate_data_source, wire.TypedConfig),
            "UpgradeResourceState": (self._upgrade, wire.UpgradeRequest),
            "ReadResource": (self._read, wire.ReadRequest),
            "PlanResourceChange": (self._plan, wire.PlanRequest),
            "ApplyResourceChange": (self._apply, wire.ApplyRequest),
            "ImportResourceState": (self._import, wire.ImportRequest),
            "ReadDataSource": (self._read_data_source, wire.TypedConfig),
            "StopProvider": (self._stop, wire.Empty),
        }

    def stop(self) -> None:
        """Let every verb under way come to a good end soon."""
        self._stopped.set()

    def wait(self, seconds: float) -> bool:
        """Wait until no verb is under way; false if that took too long."""
        return self._busy.wait(seconds)

    def in_order(self) -> bool:
        """Whether no verb is under way, and all were answered as they should."""
        return self.wait(0) and not self._lost

    def _schemas(self, _: wire.Empty) -> wire.ProviderSchema:
        provider = self._provider
        return wire.ProviderSchema(
            provider=provider.schema.to_wire(),
            resources={name: r.schema.to_wire() for name, r in provider.resources.items()},
            data_sources={name: d.schema.to_wire() for name, d in provider.data_sources.items()},
            capabilities=wire.Capabilities(plan_destroy=True, schema_optional=True),
        )

    def _validate_provider(self, _: wire.ConfigRequest) -> wire.ConfigChecked:
        return wire.ConfigChecked()

    def _configure(self, request: wire.ConfigureRequest) -> wire.Diagnosed:
        log = self._log
        log.write("debug", "Configured", terraform=request.terraform_version)
        call = Call(log, self._stopped, 60.0)
        response = wire.Diagnosed()
        with self._reporting(response, call):
            _tell(response, self._provider.configure(call))
        return response

    def _validate_resource(self, request: wire.ValidateRequest) -> wire.Diagnosed:
        resource = self._provider.resources[request.type_name]
        response = self._validate(resource, request.config)
        if not request.abilities.write_only:
            config = _required(request.config, resource.schema.whole)
            _tell(response, _write_only_problems(resource.schema.block, config))
        return response

    def _validate_data_source(self, request: wire.TypedConfig) -> wire.Diagnosed:
        return self._validate(self._provider.data_sources[request.type_name], request.config)

    def _validate(self, what: Resource | DataSource, given: wire.Value) -> wire.Diagnosed:
        config = _required(given, what.schema.whole)
        response = wire.Diagnosed()
        with self._reporting(response, None):
            _tell(response, what.validate(config))
            _tell(response, _value_problems(what.schema.block, config))
            _tell(response, _timeout_problems(what.schema, config))
        return response

    def _upgrade(self, request: wire.UpgradeRequest) -> wire.StateResponse:
        resource = self._provider.resources[request.type_name]
        response = wire.StateResponse()
        if request.raw_state.flatmap:
            _tell(
                response,
                [Diagnostic("Terraform 0.11 or older wrote this state, which is not supported")],
            )
            return response
        block = resource.schema.whole
        state = decode_json(request.raw_state.json)
        with self._reporting(response, None):
            if request.version != resource.schema.version:
                state = resource.upgrade(request.version, state)
            response.state.msgpack = encode(whole(state, block))
        return response

    def _read(self, request: wire.ReadRequest) -> wire.StateResponse:
        resource = self._provider.resources[request.type_name]
        block = resource.schema.whole
        state = _required(request.state, block)
        response = wire.StateResponse(state=request.state, private=request.private)
        call = self._call("read", request.type_name, resource.schema, state)
        with self._reporting(response, call):
            now = resource.read(call, state)
            response.state.msgpack = encode(now)
        return response

    def _plan(self, request: wire.PlanRequest) -> wire.PlanResponse:
        resource = self._provider.resources[request.type_name]
        block = resource.schema.whole
        proposed = decode(request.proposed_state, block)
        response = wire.PlanResponse(state=request.proposed_state, private=request.private)
        prior = decode(request.prior_state, block)
        if proposed is None:
            self._plan_removal(response, request.type_name, prior)
            return response
        config = _required(request.config, block)
        call = self._call("read", request.type_name, resource.schema, proposed, config)
        with self._reporting(response, call):
            imported = _imported(request.private)
            planned = plan(block, prior, proposed, config, imported=imported)
            # A replacement is a new one. Terraform plans it once more as such, but shows warnings
            # of the first time only.
            changed = None if planned.replace else prior
            _tell(response, resource.plan(call, changed, planned.state))
            if prior is not None and changed is None:
                _tell(response, resource.plan_removal(call, prior))
            response.state.msgpack = encode(planned.state)
            response.requires_replace.extend(map(path_to_wire, planned.replace))
        return response

    def _plan_removal(self, response: wire.PlanResponse, kind: str, prior: Object | None) -> None:
        if prior is None:
            return
        resource = self._provider.resources[kind]
        call = self._call("read", kind, resource.schema, prior)
        with self._reporting(response, call):
            _tell(response, resource.plan_removal(call, prior))

    def _apply(self, request: wire.ApplyRequest) -> wire.ApplyResponse:
        resource = self._provider.resources[request.type_name]
        block = resource.schema.whole
        prior = decode(request.prior_state, block)
        planned = decode(request.planned_state, block)
        # Unless told otherwise, everything is as before.
        response = wire.ApplyResponse(state=request.prior_state, private=request.private)
        verb = "create" if prior is None else "delete" if planned is None else "update"
        config = decode(request.config, block)
        call = self._call(verb, request.type_name, resource.schema, planned or prior or {}, config)
        with self._busy.counted(), self._reporting(response, call):
            response.state.msgpack = encode(_carry_out(resource, call, prior, planned))
            response.private = b""
        return response

    def _import(self, request: wire.ImportRequest) -> wire.ImportResponse:
        resource = self._provider.resources[request.type_name]
        response = wire.ImportResponse()
        call = self._call("read", request.type_name, resource.schema, {})
        with self._reporting(response, call):
            found = resource.find(call, request.id)
            response.imported.add(
                type_name=request.type_name,
                state=wire.Value(msgpack=encode(_as_sent(found, resource.schema.whole))),
                private=b"" if _read_back(found, resource.schema.block) else _MARK,
            )
        return response

    def _read_data_source(self, request: wire.TypedConfig) -> wire.StateResponse:
        source = self._provider.data_sources[request.type_name]
        config = _required(request.config, source.schema.whole)
        response = wire.StateResponse()
        call = self._call("read", request.type_name, source.schema, config)
        with self._reporting(response, call):
            response.state.msgpack = encode(source.read(call, config))
        return response

    def _stop(self, _: wire.Empty) -> wire.StopResponse:
        self._log.write("info", "Stopping on request of Terraform")
        self.stop()
        return wire.StopResponse()

    def _call(
        self, verb: str, kind: str, schema: Schema, state: Object, config: Object | None = None
    ) -> Call:
        own = state.get("id")
        named = {"id": own} if isinstance(own, str) else {}
        log = self._log.having(resource=kind, verb=verb, **named)
        return Call(log, self._stopped, _time_for(verb, schema, state), config)

    @contextmanager
    def _reporting(self, response: Any, call: Call | None) -> Iterator[None]:
        """Turn whatever is raised into diagnostics: an exception would lose the state."""
        try:
            yield
        except Failure as failure:
            _tell(response, failure.diagnostics)
            if failure.state is not None:
                response.state.msgpack = encode(failure.state)
        except Exception as error:
            self._lost = True
            self._log.write("error", "Unexpected", trace=_trace(error))
            # Not its representation, which may have the whole value that it is about.
            what = f"{type(error).__name__}: {error}"
            _tell(response, [Diagnostic(f"Unexpected error: {what}", _TELL_US)])
        finally:
            if call:
                _tell(response, call.warnings)


_TELL_US = (
    "This is a bug in Sojourn. Set TF_LOG_PROVIDER=ERROR to see where it happened; "
    "it is safe to run the command again."
)


def _carry_out(
    resource: Resource, call: Call, prior: Object | None, planned: Object | None
) -> Object | None:
    begun = time.monotonic()
    try:
        if prior is None and planned is not None:
            return resource.create(call, planned)
        if prior is not None and planned is not None:
            return resource.update(call, prior, planned)
        if prior is not None:
            resource.delete(call, prior)
        return None
    finally:
        call.log.write("debug", "Done", seconds=round(time.monotonic() - begun, 3))


def _value_problems(block: Block, config: Object) -> Iterator[Diagnostic]:
    """What Terraform lets pass: null for what is required, a value for what is only computed."""
    for attribute in block.attributes:
        name, given = attribute.name, config[attribute.name] is not None
        if attribute.required and not given:
            yield Diagnostic(f"{name}: required, must not be null", "Set it.", (name,))
        elif attribute.computed and not attribute.optional and given:
            yield Diagnostic(f"{name}: read-only", "Remove it.", (name,))


def _write_only_problems(block: Block, config: Object) -> Iterator[Diagnostic]:
    """A Terraform that does not know of them would put them into plans and states."""
    for attribute in block.attributes:
        if attribute.write_only and config[attribute.name] is not None:
            name = attribute.name
            yield Diagnostic(
                f"{name}: requires a version with write-only arguments",
                "Terraform 1.11 and later have them.",
                (name,),
            )


def _timeout_problems(schema: Schema, config: Object) -> Iterator[Diagnostic]:
    given = _timeouts(config)
    for verb in schema.timeouts:
        text = given.get(verb)
        if isinstance(text, str) and durations.seconds(text) is None:
            yield Diagnostic(
                f"timeouts.{verb}: invalid duration {text!r}",
                "Use a duration such as 90s, 30m or 1h30m.",
                ("timeouts", verb),
            )


def _time_for(verb: str, schema: Schema, state: Object) -> float:
    text = _timeouts(state).get(verb)
    given = durations.seconds(text) if isinstance(text, str) else None
    return given or schema.timeouts.get(verb, float("inf"))


def _timeouts(values: Object) -> Object:
    given = values.get("timeouts")
    return given if isinstance(given, dict) else {}


def _required(value: wire.Value, block: Block) -> Object:
    found = decode(value, block)
    if found is None:
        raise ValueError("an object is missing")
    return found


def _as_sent(found: Object, block: Block) -> Object | None:
    """The whole object; its numbers are those that people write, not the floats nearest to them."""
    return decode(wire.Value(msgpack=encode(found)), block)


def _read_back(found: Object, block: Block) -> bool:
    """Whether nothing is missing that cannot be read back."""
    return all(a.readable or a.name in found for a in block.attributes) and all(
        _read_back(item, nested.block) for nested in block.blocks for item in found[nested.name]
    )


def _imported(private: bytes) -> bool:
    return bool(private) and json.loads(private) == _IMPORTED


def _tell(response: Any, diagnostics: Iterable[Diagnostic]) -> None:
    response.diagnostics.extend(diagnostic.to_wire() for diagnostic in diagnostics)


def _trace(error: Exception) -> str:
    import traceback  # only for defects

    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


class _Counter:
    """How many verbs are under way."""

    def __init__(self) -> None:
        self._number = 0
        self._changed = threading.Condition()

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._changed:
            self._number += 1
        try:
            yield
        finally:
            with self._changed:
                self._number -= 1
                self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._number == 0, seconds)
