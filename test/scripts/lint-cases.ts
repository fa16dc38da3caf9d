/** Defects of contracts, and the problems that `muster lint` reports. */
export interface Case {
  name: string
  /** Default: openapi.yaml. */
  file?: 'openapi.yaml' | 'asyncapi.yaml'
  /** Replaces the first `from` after the text `after`. */
  change: [from: string, to: string]
  after?: string
  /** A text that begins on the reported line: its first place after the text `lineAfter`. Empty:
   *  the problem can be on any line of any file. Default: the new text. */
  line?: string
  /** Default: `after`. */
  lineAfter?: string
  /** The start of the problem, from the rule's name. */
  want: string
  /** A part of a problem that another rule reports. */
  also?: string
}

/** Defects of the contract of this service. One contract has all of them, and each is reported. */
export const CASES: Case[] = [
  {
    name: 'an operationId that is no verb and noun',
    change: ['operationId: getTask\n', 'operationId: task\n'],
    want: 'operation-id-form — operationId task must be a verb and a noun: write it like listParticipants',
  },
  {
    name: 'a mistyped word beside an unknown one',
    change: ['x-names-fields: errors', 'x-name-fields: errors\n      x-owner-team: api'],
    want: 'mistyped-word — x-name-fields is unknown and has no effect: write x-names-fields',
  },
  {
    name: 'a repeated operationId',
    change: ['operationId: getJob\n', 'operationId: listJobs\n'],
    after: '/public/v1/jobs/{job}:',
    line: 'get:',
    want: 'operation-id-unique — repeats the operationId listJobs of line ',
    also: 'generates — this is, or refers to, a schema that Ajv refuses: schema with key or id "/listJobs_query"',
  },
  {
    name: 'an error response with another schema than ApiError',
    change: [
      "$ref: '#/components/schemas/ApiError'\n          example:\n            message: This API",
      "$ref: '#/components/schemas/Answers'\n          example:\n            message: This API",
    ],
    line: 'Forbidden:',
    want: "error-schema — a 403 must be application/json only, with $ref: '#/components/schemas/ApiError'",
  },
  {
    name: 'an undeclared status that the service can return',
    change: ["        '412': { $ref: '#/components/responses/PreconditionFailed' }\n", ''],
    after: 'operationId: deletePayment',
    line: 'responses:',
    want: 'statuses — deletePayment can return 412, because it takes If-Match: declare it',
  },
  {
    name: 'a header parameter that no handler gets',
    change: [
      "        - $ref: '#/components/parameters/IdempotencyKey'\n",
      "        - $ref: '#/components/parameters/IdempotencyKey'\n        - { name: X-Tenant, in: header, required: true, description: The tenant., schema: { type: string }, example: a }\n",
    ],
    after: 'operationId: createTask\n',
    line: '- { name: X-Tenant',
    want: 'headers-read — createTask declares the header X-Tenant, which no handler gets',
  },
  {
    name: 'an example of a response that breaks its schema',
    change: ['currency: EUR', 'currency: euro'],
    after: '    PaymentCreated:',
    want: 'examples — the example must be equal to one of the allowed values: correct',
  },
  {
    name: 'an example of a response with an undeclared field',
    change: ['currency: EUR\n', 'currency: EUR\n            paid: true\n'],
    after: 'description: The current record of the payment.',
    line: 'paid: true',
    want: 'examples — the example must NOT have additional properties {"additionalProperty":"paid"}',
  },
  {
    name: 'an example of a parameter that breaks its schema',
    change: ['example: 25\n', 'example: 250\n'],
    after: '    PageSize:',
    want: 'no-invalid-parameter-examples — Example value must conform to the schema: must be <= 100',
  },
  {
    name: 'an example of a header that breaks its schema',
    change: ['example: 59', 'example: -1'],
    want: 'examples — the example must be >= 0',
  },
  {
    name: 'an example of a message that breaks its schema',
    file: 'asyncapi.yaml',
    change: ['type: task\n', 'type: job\n'],
    after: '    TaskDeleted:\n      name',
    want: 'examples — the example must be equal to constant {"allowedValue":"task"}',
  },
  {
    name: 'an example of a message with an undeclared field',
    file: 'asyncapi.yaml',
    change: ['event_type: job.deleted\n', 'event_type: job.deleted\n            at: now\n'],
    line: 'at: now',
    want: 'examples — the example must NOT have additional properties {"additionalProperty":"at"}',
  },
  {
    name: 'a required parameter without an example',
    change: ['        example: 019cade2-11c0-7b87-8f3c-5b9e1d4a7c28\n', ''],
    after: '/public/v1/events/{event}:',
    line: '- name: event',
    want: 'dredd-safe — parameter event of getEvent is required but has no example',
  },
  {
    name: 'a parameter whose name Dredd cannot send',
    change: ['- name: filter[currency]', '- name: filter[currency-code]'],
    want: 'dredd-safe — parameter filter[currency-code] of listPayments must consist of letters, digits, _ and pairs of []',
    also: 'lists — listPayments is a list: filter[currency-code] must be written like filter[created_after]',
  },
  {
    name: 'a body without an example',
    change: ['          example:\n            status: paid\n', ''],
    after: '    PaymentUpdateBody:',
    line: 'application/json:',
    want: 'dredd-safe — the body of updatePayment has no example: add one',
  },
  {
    name: 'two operations of one path with one summary',
    change: ['summary: Delete a task', 'summary: Get a task'],
    after: '/public/v1/tasks/{task}:',
    line: 'delete:',
    want: 'dredd-safe — deleteTask has the summary of task',
  },
  {
    name: 'a URL without quotes in braces',
    change: [
      '  contact:\n    name: Muster support\n    url: https://muster.example/support\n    email: support@muster.example\n',
      '  contact: { url: https://example.com }\n',
    ],
    want: 'dredd-safe — https://example.com needs quotes here',
  },
  {
    name: 'a URL without quotes in braces of two lines',
    file: 'asyncapi.yaml',
    change: [
      '    url: https://muster.example/support\n',
      '    url: https://muster.example/support\n    x-desk: { days: { first: 1 },\n      url: https://example.com/desk }\n',
    ],
    line: 'url: https://example.com/desk }',
    want: 'dredd-safe — https://example.com/desk needs quotes here',
  },
  {
    name: 'an event type that asyncapi.yaml does not have',
    change: ['x-emits: [job.updated]', 'x-emits: [job.updated, job.lost]'],
    want: 'emits — operation updateJob emits job.lost, which asyncapi.yaml does not have',
  },
  {
    name: 'x-emits of an event type with x-subscribable: false',
    change: ['x-emits: [job.created]', 'x-emits: [job.created, webhook.test]'],
    want: 'emits — operation createJob emits webhook.test, which is x-subscribable: false in asyncapi.yaml',
  },
  {
    name: 'an event type that nothing emits',
    change: ['x-emits: [payment.deleted]', 'x-emits: []'],
    line: '',
    want: 'emits — nothing emits payment.deleted',
  },
  {
    name: 'an event that is sent on no channel',
    file: 'asyncapi.yaml',
    change: ["      ExportFailed:\n        $ref: '#/components/messages/ExportFailed'\n", ''],
    line: '    messages:',
    want: 'event-types-listed — webhook.messages is stale: run "npx muster generate"',
  },
  {
    name: 'an event type that the API does not list',
    change: ['        - payment.paid\n', ''],
    after: '    EventTypeName:\n',
    line: ' enum:',
    want: 'event-types-listed — EventTypeName.enum is stale: run "npx muster generate"',
    also: 'described — EventTypeName has ',
  },
  {
    name: 'a list whose tag has no x-module',
    change: ['    x-module: exports\n', ''],
    line: '- name: Exports',
    want: 'modules — Exports has a list: add x-module, the permission for its console pages (participants, tasks, jobs, exports, finance), or none',
  },
  {
    name: 'an unknown module',
    change: ['x-module: finance', 'x-module: payments'],
    want: 'modules — x-module of Payments must be one of participants, tasks, jobs, exports, finance, none',
  },
  {
    name: 'an x-currency that names no property of its schema',
    change: ['x-currency: currency', 'x-currency: money'],
    want: 'currencies — x-currency of Payment.amount_minor must name the currency property of Payment',
  },
  {
    name: 'a rule for a field that the body does not have',
    change: ['accepts: [{ due_at:', 'accepts: [{ due:'],
    line: 'due_at:',
    want: 'rule-fields — due_at in x-refusals must name fields of the body: createTask has no due',
  },
  {
    name: 'a rule for a parameter that the operation does not have',
    change: ["accepts: [{ 'filter[email]':", 'accepts: [{ email:'],
    line: 'filter[email]:',
    want: 'rule-fields — filter[email] in x-refusals must name parameters: listParticipants has no email',
  },
  {
    name: 'an x-batch that names no operation on one record',
    change: ['update: updateParticipant, key', 'update: updateTask, key'],
    want: 'batches — x-batch of batchParticipants must name the operations that create and update one record',
  },
  {
    name: 'an embedded record without its reference',
    change: ['include: { participant: participant_id }', 'include: { participant: owner_id }'],
    line: 'get:',
    lineAfter: '/public/v1/tasks/{task}:',
    want: 'includes — include.participant of the record of task must name its fields',
  },
  {
    name: 'include without an option of the record',
    change: ['enum: [participant, task]', 'enum: [participant]'],
    line: 'get:',
    lineAfter: '/public/v1/payments/{payment}:',
    want: 'includes — include of getPayment must have the options of x-record: participant, task',
    also: 'described — PaymentInclude has 1 values',
  },
  {
    name: 'a computed field with a row that has no result',
    change: ['- [[], { a: true }, null]', '- [[], { a: true }]'],
    line: '',
    want: 'computed-rows — row 1 of computed.screening_outcome must have 2 values and the result',
  },
  {
    name: 'a field that is shown once and cannot be null',
    change: ['has_next_secret:\n', 'has_next_secret:\n          x-shown-once: true\n'],
    after: '    Webhook:\n      type: object',
    line: '',
    want: 'shown-once — has_next_secret has x-shown-once: add nullable: true, because later responses have null',
  },
  {
    name: 'a value for tests that its schema refuses',
    change: ['x-test-value: [export.failed]', 'x-test-value: []'],
    want: 'examples — the example must NOT have fewer than 1 items',
  },
  {
    name: 'a list without pages',
    change: ["        - $ref: '#/components/parameters/PageSize'\n", ''],
    after: 'operationId: listEventTypes',
    line: 'parameters:',
    want: 'lists — listEventTypes is a list: add the parameter page[size]',
  },
  {
    name: 'a list with a filter of another form',
    change: ['- name: filter[resource_id]', '- name: resource_id'],
    after: 'operationId: listEvents\n',
    line: 'parameters:',
    want: 'lists — listEvents is a list: resource_id must be written like filter[created_after]',
  },
  {
    name: 'a sort in one direction',
    change: [
      'enum: [created_at, -created_at, completed_at, -completed_at]',
      'enum: [created_at, -created_at, completed_at]',
    ],
    lineAfter: 'operationId: listExports',
    line: "schema:\n            type: array\n            minItems: 1\n            uniqueItems: true\n            items:\n              $ref: '#/components/schemas/ExportSort'",
    want: 'lists — sort of listExports must list each field, then its -field',
    also: 'described — ExportSort has 3 values: describe each in x-enum-descriptions',
  },
  {
    name: 'an example of an error with other sorts than the list has',
    change: ['allowed_sorts: [title, due_at, created_at, updated_at]', 'allowed_sorts: [title]'],
    want: 'lists — the example of listTasks must show the allowed_sorts that its sort declares: title, due_at, created_at, updated_at',
  },
  {
    name: 'a sunset before a year has passed',
    change: [
      'operationId: getEvent\n',
      "operationId: getEvent\n      deprecated: true\n      x-deprecated-since: '2026-03-01'\n      x-sunset: '2027-02-28'\n",
    ],
    line: 'x-sunset:',
    want: 'sunset-in-time — getEvent must not be removed before 2027-03-01, a year after its deprecation: set a later day',
  },
  {
    name: 'a component that nothing refers to',
    file: 'asyncapi.yaml',
    change: ['  schemas:\n', '  schemas:\n    Unused: { type: string, description: None. }\n'],
    line: 'Unused:',
    want: 'unreferenced — nothing refers to components.schemas.Unused: remove it, or refer to it',
  },
  {
    name: 'a default that some generators refuse',
    change: ['x-default: []', 'default: []'],
    want: 'portable-default — this default is an array or object, which some generators refuse: use x-default',
  },
  {
    name: 'a reference to a schema of the other file',
    file: 'asyncapi.yaml',
    change: [
      "$ref: '#/components/schemas/NoData'",
      "$ref: './openapi.yaml#/components/schemas/NoData'",
    ],
    want: 'self-contained — refers to ./openapi.yaml#/components/schemas/NoData in another file: copy the schema to this file',
  },
  {
    name: 'a schema that differs between the two files',
    file: 'asyncapi.yaml',
    change: ['required: [screening_outcome]', 'required: []'],
    after: '    JobApplicationCreatedData:\n',
    line: 'JobApplicationCreatedData:',
    lineAfter: '    ScreeningResult:\n',
    want: 'same-in-both-files — JobApplicationCreatedData differs from JobApplicationCreatedData of openapi.yaml: correct one, or rename it',
  },
  {
    name: 'a property without a description',
    change: ['          description: The number of this page.\n', ''],
    line: 'current_page:',
    lineAfter: '    ListMeta:\n',
    want: 'described — ListMeta.current_page has no description: add one',
  },
  {
    name: 'a value without a description',
    change: ['        - Not open yet.\n', ''],
    after: '    JobStatus:\n',
    line: ' enum:',
    want: 'described — JobStatus has 3 values: describe each in x-enum-descriptions, in the same order',
  },
  {
    name: 'an undeclared tag',
    change: ['tags: [Exports]', 'tags: [Export]'],
    after: 'operationId: getExport\n',
    want: 'operation-tag-defined — ',
  },
]

/** Defects that make the contract unusable for `generate`. `want` is a pattern of the problem. */
export const FATAL: Case[] = [
  {
    name: 'broken YAML',
    change: ['\npaths:\n', '\npaths: [\n'],
    want: 'openapi.yaml:\\d+:\\d+ generates — is not YAML',
  },
  {
    name: 'a reference without a target',
    change: ['responses/TaskList', 'responses/Nope'],
    want: 'openapi.yaml:\\d+:18 generates — refers to #/components/responses/Nope, which does not exist',
  },
  {
    name: 'a reference with a wrong escape',
    change: ['responses/TaskList', 'responses/Task%List'],
    want: 'openapi.yaml:\\d+:18 generates — refers to #/components/responses/Task%List, which has a % that begins no escape: write %25',
  },
  {
    name: 'a default response, which Dredd takes for a second 200',
    change: ["'503':", 'default:'],
    want: 'openapi.yaml:\\d+:9 generates — response default must be one status code',
  },
  {
    name: 'an empty response',
    change: ["'204': { $ref: '#/components/responses/NoContent' }", "'204':"],
    want: 'openapi.yaml:\\d+:9 generates — paths./public/v1/participants/.* must be a mapping',
  },
  {
    name: 'a deprecated operation without x-deprecated-since',
    change: ['operationId: getJob\n', 'operationId: getJob\n      deprecated: true\n'],
    want: 'openapi.yaml:\\d+:5 generates — operation getJob is deprecated: add x-deprecated-since with the day',
  },
  {
    name: 'a day that does not exist',
    change: [
      'operationId: getJob\n',
      "operationId: getJob\n      x-deprecated-since: '2026-02-30'\n",
    ],
    want: "openapi.yaml:\\d+:7 generates — x-deprecated-since must be a day, for example '2026-03-01'",
  },
]
