from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Value(_message.Message):
    __slots__ = ("msgpack", "json")
    MSGPACK_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    msgpack: bytes
    json: bytes
    def __init__(self, msgpack: _Optional[bytes] = ..., json: _Optional[bytes] = ...) -> None: ...

class Path(_message.Message):
    __slots__ = ("steps",)
    class Step(_message.Message):
        __slots__ = ("attribute", "key", "index")
        ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
        KEY_FIELD_NUMBER: _ClassVar[int]
        INDEX_FIELD_NUMBER: _ClassVar[int]
        attribute: str
        key: str
        index: int
        def __init__(self, attribute: _Optional[str] = ..., key: _Optional[str] = ..., index: _Optional[int] = ...) -> None: ...
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[Path.Step]
    def __init__(self, steps: _Optional[_Iterable[_Union[Path.Step, _Mapping]]] = ...) -> None: ...

class Diagnostic(_message.Message):
    __slots__ = ("severity", "summary", "detail", "attribute")
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    severity: int
    summary: str
    detail: str
    attribute: Path
    def __init__(self, severity: _Optional[int] = ..., summary: _Optional[str] = ..., detail: _Optional[str] = ..., attribute: _Optional[_Union[Path, _Mapping]] = ...) -> None: ...

class Schema(_message.Message):
    __slots__ = ("version", "block")
    class Attribute(_message.Message):
        __slots__ = ("name", "type", "description", "required", "optional", "computed", "sensitive", "description_kind", "write_only")
        NAME_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
        REQUIRED_FIELD_NUMBER: _ClassVar[int]
        OPTIONAL_FIELD_NUMBER: _ClassVar[int]
        COMPUTED_FIELD_NUMBER: _ClassVar[int]
        SENSITIVE_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_KIND_FIELD_NUMBER: _ClassVar[int]
        WRITE_ONLY_FIELD_NUMBER: _ClassVar[int]
        name: str
        type: bytes
        description: str
        required: bool
        optional: bool
        computed: bool
        sensitive: bool
        description_kind: int
        write_only: bool
        def __init__(self, name: _Optional[str] = ..., type: _Optional[bytes] = ..., description: _Optional[str] = ..., required: _Optional[bool] = ..., optional: _Optional[bool] = ..., computed: _Optional[bool] = ..., sensitive: _Optional[bool] = ..., description_kind: _Optional[int] = ..., write_only: _Optional[bool] = ...) -> None: ...
    class Nested(_message.Message):
        __slots__ = ("type_name", "block", "nesting", "min_items", "max_items")
        TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
        BLOCK_FIELD_NUMBER: _ClassVar[int]
        NESTING_FIELD_NUMBER: _ClassVar[int]
        MIN_ITEMS_FIELD_NUMBER: _ClassVar[int]
        MAX_ITEMS_FIELD_NUMBER: _ClassVar[int]
        type_name: str
        block: Schema.Block
        nesting: int
        min_items: int
        max_items: int
        def __init__(self, type_name: _Optional[str] = ..., block: _Optional[_Union[Schema.Block, _Mapping]] = ..., nesting: _Optional[int] = ..., min_items: _Optional[int] = ..., max_items: _Optional[int] = ...) -> None: ...
    class Block(_message.Message):
        __slots__ = ("attributes", "block_types", "description", "description_kind")
        ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
        BLOCK_TYPES_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_KIND_FIELD_NUMBER: _ClassVar[int]
        attributes: _containers.RepeatedCompositeFieldContainer[Schema.Attribute]
        block_types: _containers.RepeatedCompositeFieldContainer[Schema.Nested]
        description: str
        description_kind: int
        def __init__(self, attributes: _Optional[_Iterable[_Union[Schema.Attribute, _Mapping]]] = ..., block_types: _Optional[_Iterable[_Union[Schema.Nested, _Mapping]]] = ..., description: _Optional[str] = ..., description_kind: _Optional[int] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    version: int
    block: Schema.Block
    def __init__(self, version: _Optional[int] = ..., block: _Optional[_Union[Schema.Block, _Mapping]] = ...) -> None: ...

class ProviderSchema(_message.Message):
    __slots__ = ("provider", "resources", "data_sources", "diagnostics", "capabilities")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Schema
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Schema, _Mapping]] = ...) -> None: ...
    class DataSourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Schema
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Schema, _Mapping]] = ...) -> None: ...
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    DATA_SOURCES_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    provider: Schema
    resources: _containers.MessageMap[str, Schema]
    data_sources: _containers.MessageMap[str, Schema]
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    capabilities: Capabilities
    def __init__(self, provider: _Optional[_Union[Schema, _Mapping]] = ..., resources: _Optional[_Mapping[str, Schema]] = ..., data_sources: _Optional[_Mapping[str, Schema]] = ..., diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ..., capabilities: _Optional[_Union[Capabilities, _Mapping]] = ...) -> None: ...

class Capabilities(_message.Message):
    __slots__ = ("plan_destroy", "schema_optional")
    PLAN_DESTROY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    plan_destroy: bool
    schema_optional: bool
    def __init__(self, plan_destroy: _Optional[bool] = ..., schema_optional: _Optional[bool] = ...) -> None: ...

class ConfigRequest(_message.Message):
    __slots__ = ("config",)
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    config: Value
    def __init__(self, config: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class ConfigChecked(_message.Message):
    __slots__ = ("diagnostics",)
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    def __init__(self, diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ...) -> None: ...

class ConfigureRequest(_message.Message):
    __slots__ = ("terraform_version", "config")
    TERRAFORM_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    terraform_version: str
    config: Value
    def __init__(self, terraform_version: _Optional[str] = ..., config: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class TypedConfig(_message.Message):
    __slots__ = ("type_name", "config")
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    config: Value
    def __init__(self, type_name: _Optional[str] = ..., config: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class ValidateRequest(_message.Message):
    __slots__ = ("type_name", "config", "abilities")
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    ABILITIES_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    config: Value
    abilities: Abilities
    def __init__(self, type_name: _Optional[str] = ..., config: _Optional[_Union[Value, _Mapping]] = ..., abilities: _Optional[_Union[Abilities, _Mapping]] = ...) -> None: ...

class Abilities(_message.Message):
    __slots__ = ("write_only",)
    WRITE_ONLY_FIELD_NUMBER: _ClassVar[int]
    write_only: bool
    def __init__(self, write_only: _Optional[bool] = ...) -> None: ...

class Diagnosed(_message.Message):
    __slots__ = ("diagnostics",)
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    def __init__(self, diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ...) -> None: ...

class UpgradeRequest(_message.Message):
    __slots__ = ("type_name", "version", "raw_state")
    class Raw(_message.Message):
        __slots__ = ("json", "flatmap")
        class FlatmapEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: str
            def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
        JSON_FIELD_NUMBER: _ClassVar[int]
        FLATMAP_FIELD_NUMBER: _ClassVar[int]
        json: bytes
        flatmap: _containers.ScalarMap[str, str]
        def __init__(self, json: _Optional[bytes] = ..., flatmap: _Optional[_Mapping[str, str]] = ...) -> None: ...
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RAW_STATE_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    version: int
    raw_state: UpgradeRequest.Raw
    def __init__(self, type_name: _Optional[str] = ..., version: _Optional[int] = ..., raw_state: _Optional[_Union[UpgradeRequest.Raw, _Mapping]] = ...) -> None: ...

class StateResponse(_message.Message):
    __slots__ = ("state", "diagnostics", "private")
    STATE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    state: Value
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    private: bytes
    def __init__(self, state: _Optional[_Union[Value, _Mapping]] = ..., diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ..., private: _Optional[bytes] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("type_name", "state", "private")
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    state: Value
    private: bytes
    def __init__(self, type_name: _Optional[str] = ..., state: _Optional[_Union[Value, _Mapping]] = ..., private: _Optional[bytes] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("type_name", "prior_state", "proposed_state", "config", "private")
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    PRIOR_STATE_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_STATE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    prior_state: Value
    proposed_state: Value
    config: Value
    private: bytes
    def __init__(self, type_name: _Optional[str] = ..., prior_state: _Optional[_Union[Value, _Mapping]] = ..., proposed_state: _Optional[_Union[Value, _Mapping]] = ..., config: _Optional[_Union[Value, _Mapping]] = ..., private: _Optional[bytes] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("state", "requires_replace", "private", "diagnostics")
    STATE_FIELD_NUMBER: _ClassVar[int]
    REQUIRES_REPLACE_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    state: Value
    requires_replace: _containers.RepeatedCompositeFieldContainer[Path]
    private: bytes
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    def __init__(self, state: _Optional[_Union[Value, _Mapping]] = ..., requires_replace: _Optional[_Iterable[_Union[Path, _Mapping]]] = ..., private: _Optional[bytes] = ..., diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ...) -> None: ...

class ApplyRequest(_message.Message):
    __slots__ = ("type_name", "prior_state", "planned_state", "config", "private")
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    PRIOR_STATE_FIELD_NUMBER: _ClassVar[int]
    PLANNED_STATE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    prior_state: Value
    planned_state: Value
    config: Value
    private: bytes
    def __init__(self, type_name: _Optional[str] = ..., prior_state: _Optional[_Union[Value, _Mapping]] = ..., planned_state: _Optional[_Union[Value, _Mapping]] = ..., config: _Optional[_Union[Value, _Mapping]] = ..., private: _Optional[bytes] = ...) -> None: ...

class ApplyResponse(_message.Message):
    __slots__ = ("state", "private", "diagnostics")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    state: Value
    private: bytes
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    def __init__(self, state: _Optional[_Union[Value, _Mapping]] = ..., private: _Optional[bytes] = ..., diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("type_name", "id")
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    id: str
    def __init__(self, type_name: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("imported", "diagnostics")
    class Imported(_message.Message):
        __slots__ = ("type_name", "state", "private")
        TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
        STATE_FIELD_NUMBER: _ClassVar[int]
        PRIVATE_FIELD_NUMBER: _ClassVar[int]
        type_name: str
        state: Value
        private: bytes
        def __init__(self, type_name: _Optional[str] = ..., state: _Optional[_Union[Value, _Mapping]] = ..., private: _Optional[bytes] = ...) -> None: ...
    IMPORTED_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    imported: _containers.RepeatedCompositeFieldContainer[ImportResponse.Imported]
    diagnostics: _containers.RepeatedCompositeFieldContainer[Diagnostic]
    def __init__(self, imported: _Optional[_Iterable[_Union[ImportResponse.Imported, _Mapping]]] = ..., diagnostics: _Optional[_Iterable[_Union[Diagnostic, _Mapping]]] = ...) -> None: ...

class StopResponse(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: str
    def __init__(self, error: _Optional[str] = ...) -> None: ...
