/** The level of each change, by the rule names of oasdiff. The names of our own rules, for events,
 *  permissions and rate limits, follow the pattern of oasdiff. */

/** The worst first. Breaking: clients or receivers that follow the contract fail. Risky: clients or
 *  receivers that rely on more than the contract promises may fail. Code: generated code changes,
 *  but not what is sent. */
export const LEVELS = ['breaking', 'risky', 'code', 'safe'] as const
export type Level = (typeof LEVELS)[number]

/** `request`: clients write the data. `response`: the service writes it, also in events. */
export type Direction = 'request' | 'response'

/** Changes outside of schemas. */
export const RULES = {
  'endpoint-added': 'safe',
  'endpoint-deprecated': 'safe',
  'endpoint-reactivated': 'safe',
  'api-removed-without-deprecation': 'breaking',
  'api-path-removed-without-deprecation': 'breaking',
  'api-removed-before-sunset': 'breaking',
  'api-path-removed-before-sunset': 'breaking',
  'api-removed-with-deprecation': 'safe',
  'api-path-removed-with-deprecation': 'safe',
  'api-sunset-date-changed-too-small': 'breaking',
  'api-sunset-date-too-small': 'breaking',
  'api-operation-id-removed': 'code',
  'api-tag-changed': 'code',
  'api-path-parameter-renamed': 'code',
  'api-server-removed': 'breaking',
  'api-server-added': 'safe',
  'api-security-scope-added': 'breaking',
  'api-security-scope-removed': 'safe',
  'api-rate-limit-decreased': 'risky',
  'api-rate-limit-increased': 'safe',
  'new-required-request-parameter': 'breaking',
  'new-optional-request-parameter': 'safe',
  // Only risky in oasdiff. But this service refuses undeclared query parameters.
  'request-parameter-removed': 'breaking',
  'request-parameter-became-required': 'breaking',
  'request-parameter-became-optional': 'safe',
  // A request with one value stays the same.
  'request-parameter-became-list': 'code',
  'request-parameter-deprecated': 'safe',
  'request-parameter-reactivated': 'safe',
  'request-parameter-sunset-date-changed-too-small': 'breaking',
  'request-parameter-sunset-date-too-small': 'breaking',
  'request-body-added-required': 'breaking',
  'request-body-added-optional': 'safe',
  'request-body-became-required': 'breaking',
  'request-body-became-optional': 'safe',
  'request-body-removed': 'breaking',
  'response-success-status-removed': 'breaking',
  'response-success-status-added': 'safe',
  'response-non-success-status-removed': 'safe',
  'response-non-success-status-added': 'safe',
  'response-media-type-removed': 'breaking',
  'response-media-type-added': 'safe',
  'required-response-header-removed': 'breaking',
  'optional-response-header-removed': 'breaking',
  'response-header-became-optional': 'breaking',
  'response-header-became-required': 'safe',
  'response-header-added': 'safe',
  'event-added': 'safe',
  'event-deprecated': 'safe',
  'event-reactivated': 'safe',
  'event-sunset-date-changed-too-small': 'breaking',
  'event-sunset-date-too-small': 'breaking',
  'event-removed-without-deprecation': 'breaking',
  'event-removed-before-sunset': 'breaking',
  'event-removed-with-deprecation': 'safe',
  'event-not-subscribable': 'breaking',
  'event-subscribable': 'safe',
  'event-removed-from-channel': 'breaking',
  'event-added-to-channel': 'safe',
  'event-emitted-by-system': 'safe',
  'event-not-emitted-by-system': 'breaking',
  'api-event-added': 'safe',
  'api-event-removed': 'breaking',
} as const satisfies Record<string, Level>

/** Changes of a schema, with their level in each direction. The rule's name is the subject, for
 *  example `request-property`, and the change. */
export const SCHEMA_RULES = {
  'type-changed': { request: 'breaking', response: 'breaking' },
  'type-generalized': { request: 'safe', response: 'breaking' },
  'type-specialized': { request: 'breaking', response: 'safe' },
  'format-changed': { request: 'breaking', response: 'breaking' },
  'number-format-added': { request: 'code', response: 'code' },
  'number-format-removed': { request: 'code', response: 'code' },
  'format-added': { request: 'breaking', response: 'safe' },
  'format-removed': { request: 'safe', response: 'breaking' },
  'const-changed': { request: 'breaking', response: 'breaking' },
  'became-nullable': { request: 'safe', response: 'breaking' },
  'became-not-nullable': { request: 'breaking', response: 'safe' },
  'became-enum': { request: 'breaking', response: 'safe' },
  'enum-unset': { request: 'safe', response: 'breaking' },
  'enum-value-removed': { request: 'breaking', response: 'safe' },
  'enum-value-added': { request: 'safe', response: 'breaking' },
  // The older contract marks the enumeration with `x-extensible-enum`.
  'extensible-enum-value-added': { request: 'safe', response: 'risky' },
  'became-extensible-enum': { request: 'safe', response: 'breaking' },
  'enum-names-changed': { request: 'code', response: 'code' },
  'max-decreased': { request: 'breaking', response: 'safe' },
  'max-increased': { request: 'safe', response: 'breaking' },
  'min-increased': { request: 'breaking', response: 'safe' },
  'min-decreased': { request: 'safe', response: 'breaking' },
  'max-length-decreased': { request: 'breaking', response: 'safe' },
  'max-length-increased': { request: 'safe', response: 'breaking' },
  'min-length-increased': { request: 'breaking', response: 'safe' },
  'min-length-decreased': { request: 'safe', response: 'breaking' },
  'max-items-decreased': { request: 'breaking', response: 'safe' },
  'max-items-increased': { request: 'safe', response: 'breaking' },
  'min-items-increased': { request: 'breaking', response: 'safe' },
  'min-items-decreased': { request: 'safe', response: 'breaking' },
  'max-properties-decreased': { request: 'breaking', response: 'safe' },
  'max-properties-increased': { request: 'safe', response: 'breaking' },
  'min-properties-increased': { request: 'breaking', response: 'safe' },
  'min-properties-decreased': { request: 'safe', response: 'breaking' },
  'pattern-added': { request: 'breaking', response: 'safe' },
  // docs/versioning.md permits this change: nobody sends blank text on purpose.
  'blank-text-refused': { request: 'risky', response: 'safe' },
  // No version accepts NUL in text: the pattern only says so.
  'nul-refused': { request: 'safe', response: 'safe' },
  'pattern-removed': { request: 'safe', response: 'breaking' },
  'pattern-changed': { request: 'breaking', response: 'breaking' },
  'unique-items-added': { request: 'breaking', response: 'safe' },
  'unique-items-removed': { request: 'safe', response: 'breaking' },
  // Requests without the value get another meaning.
  'default-value-changed': { request: 'breaking', response: 'safe' },
  'became-read-only': { request: 'breaking', response: 'safe' },
  'became-not-read-only': { request: 'safe', response: 'safe' },
  'became-write-only': { request: 'safe', response: 'breaking' },
  'became-not-write-only': { request: 'safe', response: 'safe' },
  'signature-changed': { request: 'breaking', response: 'breaking' },
  'additional-properties-disallowed': { request: 'breaking', response: 'safe' },
  'additional-properties-allowed': { request: 'safe', response: 'safe' },
  'one-of-added': { request: 'safe', response: 'breaking' },
  // The new alternative is only for new values of the tag, the property that tells the alternatives
  // apart.
  'dependent-one-of-added': { request: 'safe', response: 'risky' },
  // A single schema becomes alternatives. Each alternative alone, in place of the schema, would be
  // a change of level `safe` or `code`. But `oneOf` refuses a request that several of them accept.
  'one-of-split': { request: 'breaking', response: 'safe' },
  'one-of-removed': { request: 'breaking', response: 'safe' },
  'discriminator-changed': { request: 'code', response: 'code' },
  'schema-renamed': { request: 'code', response: 'code' },
  // Keywords without rules of their own: each refuses values.
  'constraint-added': { request: 'breaking', response: 'safe' },
  'constraint-removed': { request: 'safe', response: 'breaking' },
  'constraint-changed': { request: 'breaking', response: 'breaking' },
  deprecated: { request: 'safe', response: 'safe' },
  reactivated: { request: 'safe', response: 'safe' },
  'sunset-date-changed-too-small': { request: 'breaking', response: 'breaking' },
  'sunset-date-too-small': { request: 'breaking', response: 'breaking' },
  // Properties of an object:
  'required-property-added': { request: 'breaking', response: 'safe' },
  'optional-property-added': { request: 'safe', response: 'safe' },
  'required-property-removed': { request: 'breaking', response: 'breaking' },
  'optional-property-removed': { request: 'breaking', response: 'breaking' },
  'became-required': { request: 'breaking', response: 'safe' },
  'became-optional': { request: 'safe', response: 'breaking' },
} as const satisfies Record<string, Record<Direction, Level>>

export type SchemaChange = keyof typeof SCHEMA_RULES

/** By the name that `toRuleId` builds: the name of the same rule in oasdiff. */
const NAMES: Record<string, string> = {
  'request-required-property-added': 'new-required-request-property',
  'request-optional-property-added': 'new-optional-request-property',
  'request-required-property-removed': 'request-property-removed',
  'request-optional-property-removed': 'request-property-removed',
}

/** For example `response-property-type-changed`. The rules for properties that are added or removed
 *  name only the first word of the subject: `response-required-property-removed`. */
export function toRuleId(subject: string, change: SchemaChange): string {
  const [, side = subject] = /^(\w+)-(?:body|property|payload)$/.exec(subject) ?? []
  // oasdiff has the same rule for extensible and other enumerations.
  const name = change.replace(/^extensible-/, '')
  const id = /-property-(added|removed)$/.test(name) ? `${side}-${name}` : `${subject}-${name}`
  return NAMES[id] ?? id
}
