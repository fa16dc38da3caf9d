/** The level of each change, by the rule names of oasdiff. Our own rules for events, permissions and
 *  rate limits follow its pattern. */

/** Breaking: fails clients or receivers that follow the contract. Risky: may fail those that rely on
 *  more than the contract promises. */
export type Level = 'breaking' | 'risky' | 'safe'

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
  'api-operation-id-removed': 'risky',
  'api-security-added': 'breaking',
  'api-security-removed': 'safe',
  'api-security-scope-added': 'breaking',
  'api-security-scope-removed': 'safe',
  'api-rate-limit-decreased': 'risky',
  'api-rate-limit-increased': 'safe',
  'new-required-request-parameter': 'breaking',
  'new-optional-request-parameter': 'safe',
  // Risky in oasdiff. This service refuses undeclared query parameters.
  'request-parameter-removed': 'breaking',
  'request-header-parameter-removed': 'risky',
  'request-parameter-became-required': 'breaking',
  'request-parameter-became-optional': 'safe',
  'request-body-added-required': 'breaking',
  'request-body-removed': 'breaking',
  'response-success-status-removed': 'breaking',
  'response-success-status-added': 'safe',
  'response-non-success-status-removed': 'safe',
  'response-non-success-status-added': 'safe',
  'response-media-type-removed': 'breaking',
  'response-media-type-added': 'safe',
  'required-response-header-removed': 'breaking',
  'optional-response-header-removed': 'risky',
  'response-header-became-optional': 'breaking',
  'response-header-became-required': 'safe',
  'response-header-added': 'safe',
  'event-added': 'safe',
  'event-deprecated': 'safe',
  'event-removed-without-deprecation': 'breaking',
  'event-removed-before-sunset': 'breaking',
  'event-removed-with-deprecation': 'safe',
  'event-not-subscribable': 'breaking',
  'event-subscribable': 'safe',
  'api-event-added': 'safe',
  'api-event-removed': 'risky',
} as const satisfies Record<string, Level>

/** Changes of a schema, with their level in each direction. The rule's name is the subject, for example
 *  `request-property`, and the change. */
export const SCHEMA_RULES = {
  'type-changed': { request: 'breaking', response: 'breaking' },
  'type-generalized': { request: 'safe', response: 'breaking' },
  'type-specialized': { request: 'breaking', response: 'safe' },
  'format-changed': { request: 'breaking', response: 'breaking' },
  'number-format-added': { request: 'safe', response: 'safe' },
  'format-added': { request: 'breaking', response: 'safe' },
  'format-removed': { request: 'safe', response: 'risky' },
  'const-changed': { request: 'breaking', response: 'breaking' },
  'became-nullable': { request: 'safe', response: 'breaking' },
  'became-not-nullable': { request: 'breaking', response: 'safe' },
  'became-enum': { request: 'breaking', response: 'safe' },
  'enum-unset': { request: 'safe', response: 'risky' },
  'enum-value-removed': { request: 'breaking', response: 'safe' },
  'enum-value-added': { request: 'safe', response: 'risky' },
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
  'pattern-added': { request: 'breaking', response: 'safe' },
  // The only exception in docs/versioning.md: nobody means such text.
  'blank-text-refused': { request: 'risky', response: 'safe' },
  // No version accepts NUL in text: the pattern only says so.
  'nul-refused': { request: 'safe', response: 'safe' },
  'pattern-removed': { request: 'safe', response: 'risky' },
  'pattern-changed': { request: 'risky', response: 'risky' },
  'unique-items-added': { request: 'breaking', response: 'safe' },
  'unique-items-removed': { request: 'safe', response: 'risky' },
  'default-value-changed': { request: 'risky', response: 'safe' },
  'additional-properties-disallowed': { request: 'breaking', response: 'safe' },
  'additional-properties-allowed': { request: 'safe', response: 'safe' },
  'one-of-added': { request: 'safe', response: 'breaking' },
  // The new type comes with new options of an enumeration only.
  'dependent-one-of-added': { request: 'safe', response: 'risky' },
  // An object is split into alternatives, each of which narrows it.
  'one-of-split': { request: 'breaking', response: 'safe' },
  'one-of-removed': { request: 'breaking', response: 'safe' },
  'schema-changed': { request: 'risky', response: 'risky' },
  // Properties of an object:
  'required-property-added': { request: 'breaking', response: 'safe' },
  'optional-property-added': { request: 'safe', response: 'safe' },
  'required-property-removed': { request: 'breaking', response: 'breaking' },
  'optional-property-removed': { request: 'breaking', response: 'risky' },
  'became-required': { request: 'breaking', response: 'safe' },
  'became-optional': { request: 'safe', response: 'breaking' },
} as const satisfies Record<string, Record<Direction, Level>>

/** Levels of oasdiff that differ for one subject. */
const EXCEPTIONS: Record<string, Level> = {
  'request-parameter-default-value-changed': 'breaking',
  // An open object still accepts the removed property.
  'open-request-property-removed': 'risky',
}

export type SchemaChange = keyof typeof SCHEMA_RULES

export function findLevel(id: string, change: SchemaChange, direction: Direction): Level {
  return EXCEPTIONS[id] ?? SCHEMA_RULES[change][direction]
}

/** Rule names of oasdiff that do not follow the pattern. */
const NAMES: Record<string, string> = {
  'request-required-property-added': 'new-required-request-property',
  'request-optional-property-added': 'new-optional-request-property',
  'request-required-property-removed': 'request-property-removed',
  'request-optional-property-removed': 'request-property-removed',
}

/** For example `response-property-type-changed`, or `response-required-property-removed`. */
export function toRuleId(subject: string, change: SchemaChange): string {
  const [, side = subject] = /^(\w+)-(?:body|property|payload)$/.exec(subject) ?? []
  const id = /-property-(added|removed)$/.test(change)
    ? `${side}-${change}`
    : `${subject}-${change}`
  return NAMES[id] ?? id
}
