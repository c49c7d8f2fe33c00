"""Every error that Holdfast raises on purpose.

HoldfastError
├── BadInput
│   ├── BadQuery
│   ├── BadFilter
│   ├── BadPaging
│   ├── BadChange
│   ├── BadKey
│   │   └── BadMetricKey
│   ├── BadValue
│   │   └── BadMetricValue
│   ├── NoIndex
│   ├── InvalidEntitySchema
│   ├── BadModel
│   ├── UnknownColumn
│   ├── Malformed
│   ├── BadDump
│   ├── InvalidEventSchema
│   ├── InvalidEvent
│   ├── ExpandsTooFar
│   ├── WrongKind
│   ├── CountersWithoutTimes
│   ├── IncompleteCounter
│   ├── NoJobQueue
│   ├── BadArgument
│   │   ├── JobTooLarge
│   │   └── CircularDependency
│   ├── WrongMetricType
│   ├── BadMetricSpec
│   ├── EmptyPrefix
│   ├── MetricOverflow
│   ├── BadRange
│   ├── BadWindow
│   ├── BadLimit
│   ├── DuplicateCondition
│   ├── SpecConflict
│   ├── BadFrame
│   │   └── HttpOnRespPort
│   ├── HeadTooLarge
│   ├── UrlTooLong
│   ├── RequestTooLarge
│   ├── AnswerTooLarge
│   ├── BatchTooLong
│   ├── ClientGone
│   ├── UnsupportedContent
│   ├── KeyTooLong
│   ├── ValueTooLarge
│   ├── NotACounter
│   ├── UnsupportedPart
│   ├── OutsideSpace
│   ├── ViewOnlyReads
│   ├── BadTask
│   ├── BadTaskArgument
│   └── WorkflowTooLarge
├── NotFound
│   ├── InvalidTable
│   ├── UnknownSchema
│   ├── UnknownJob
│   ├── UnknownRecurringJob
│   ├── UnknownBatch
│   ├── UnknownBulkAction
│   ├── UnknownMetric
│   ├── UnknownCondition
│   ├── UnknownUser
│   ├── UnknownOperation
│   └── UnknownSpace
├── Conflict
├── SpaceNotEmpty
├── DuplicateKey
├── VersionMismatch
├── IndexNotReady
├── TableInUse
├── WrongState
│   ├── JobLost
│   ├── JobNeeded
│   ├── UniqueKeyTaken
│   └── Canceled
├── LimitExceeded
├── MethodNotAllowed
├── CannotServe
├── NotAuthenticated
├── TooManyLogins
├── Forbidden
├── UserExists
├── LastAdmin
├── ServerBusy
├── ServerFailed
├── Unanswered
│   ├── Unreachable
│   ├── NoAnswer
│   └── OutcomeUnknown
├── RemovalFailed
├── StoreUnusable
│   ├── StoreClosed
│   ├── StoreForked
│   ├── StoreFull
│   ├── StoreDamaged
│   │   └── LogDamaged
│   ├── StoreBusy
│   ├── CopyUnfinished
│   ├── StoreUnreachable
│   ├── UnsupportedFormat
│   └── UnsupportedFileSystem
├── MissingDriver
├── TableError
│   ├── InvalidTableRequest
│   ├── InvalidTableJson
│   ├── InvalidTableSchema
│   ├── SchemaUpgradeRejected
│   ├── InvalidTableQuery
│   ├── InvalidAttributeValue
│   ├── UnknownAttribute
│   ├── MissingKeyAttribute
│   ├── RowKeyTooLong
│   ├── TtlNotAllowed
│   ├── InvalidPageToken
│   ├── TableMismatch
│   ├── InvalidTablePath
│   ├── TableNotFound
│   ├── IndexNotFound
│   ├── PreconditionFailed
│   ├── RowTooLarge
│   ├── IndexBuilding
│   └── TableUnavailable
├── TaskFailed
├── WorkflowChanged
├── StepFailed
├── ChildFailed
├── TaskNotFinished
├── ProcessDied
└── TaskTimedOut

A module for each layer has its errors; `from holdfast.errors import ...` has them all.
"""

from holdfast.errors.base import *
from holdfast.errors.entities import *
from holdfast.errors.events import *
from holdfast.errors.jobs import *
from holdfast.errors.metrics import *
from holdfast.errors.server import *
from holdfast.errors.stores import *
from holdfast.errors.tables import *
from holdfast.errors.tasks import *
from holdfast.errors.wire import *

# The public name of an error is the one that tracebacks, pickles and remembered steps should have.
for _error in list(globals().values()):
    if isinstance(_error, type) and issubclass(_error, HoldfastError):
        _error.__module__ = __name__
