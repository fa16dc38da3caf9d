import { findFaultyDefaults } from '../generate/faults.ts'
import { findMissingModules } from '../generate/resources.ts'
import { findUnusedComponents } from '../model/components.ts'
import {
  findContradictions,
  findEmitMismatches,
  findRepeatedIds,
  findUndefinedRequired,
} from '../model/consistency.ts'
import type { Contract } from '../model/contract.ts'
import { earliestSunset } from '../model/deprecations.ts'
import type { Schema } from '../model/schema.ts'
import { type Finding, valueAt } from '../model/source.ts'
import { findUnsupportedParts } from '../model/supported.ts'
import { findDreddProblems } from './dredd.ts'
import { findEventTypeMismatches } from './events.ts'
import { findInvalidExamples } from './examples.ts'
import { findListProblems } from './lists.ts'
import {
  findNeverHidden,
  findUnknownFields,
  findWrongBatches,
  findWrongIncludes,
  findWrongRows,
} from './record-rules.ts'
import { findOtherErrorSchemas, findUndeclaredStatuses, findUnreadHeaders } from './responses.ts'
import {
  findDifferentSchemas,
  findOutsideReferences,
  findUndescribed,
  findUnportableDefaults,
} from './schemas.ts'
import { findUntested } from './untested.ts'
import { findMistypedWords } from './words.ts'

/** Our rules by name, each with the function that finds what breaks it. */
export const rules: Record<string, (contract: Contract) => Finding[]> = {
  'operation-id-unique': findRepeatedIds,
  'operation-id-form': findOperationIdsWithoutVerb,
  supported: findUnsupportedParts,
  defaults: findFaultyDefaults,
  'required-defined': findUndefinedRequired,
  contradictions: findContradictions,
  'error-schema': findOtherErrorSchemas,
  statuses: findUndeclaredStatuses,
  'headers-read': findUnreadHeaders,
  examples: findInvalidExamples,
  'dredd-safe': findDreddProblems,
  emits: findEmitMismatches,
  'event-types-listed': findEventTypeMismatches,
  lists: findListProblems,
  described: findUndescribed,
  'portable-default': findUnportableDefaults,
  'self-contained': findOutsideReferences,
  'same-in-both-files': findDifferentSchemas,
  modules: findMissingModules,
  currencies: findCurrencyProblems,
  'rule-fields': findUnknownFields,
  'computed-rows': findWrongRows,
  batches: findWrongBatches,
  'shown-once': findNeverHidden,
  includes: findWrongIncludes,
  'sunset-in-time': findEarlySunsets,
  unreferenced: findUnusedComponents,
  'mistyped-word': findMistypedWords,
  untested: findUntested,
}

/** Handler and test files are named after the operation ID. A verb and a noun tell them apart from
 *  other files. */
function findOperationIdsWithoutVerb({ operations }: Contract): Finding[] {
  return operations
    .filter(({ id }) => !/^[a-z]+[A-Z]/.test(id))
    .map(({ id, place: { source, path } }) => ({
      source,
      path: [...path, 'operationId'],
      problem: `operationId ${id} must be a verb and a noun: write it like listParticipants`,
    }))
}

/** Amounts whose `x-currency` names no property beside them. The console would show such an amount
 *  in minor units, for example cents. */
function findCurrencyProblems({ sources }: Contract): Finding[] {
  const source = sources['openapi.yaml']
  if (!source) return []
  const schemas = valueAt(source.root, ['components', 'schemas']) as
    | Record<string, Schema>
    | undefined
  return Object.entries(schemas ?? {}).flatMap(([schema, { properties = {} }]) =>
    Object.entries(properties).flatMap(([name, property]) => {
      const currency = valueAt(property, ['x-currency'])
      if (currency === undefined || Object.hasOwn(properties, String(currency))) return []
      const problem = `x-currency of ${schema}.${name} must name the currency property of ${schema}`
      return [
        {
          source,
          path: ['components', 'schemas', schema, 'properties', name, 'x-currency'],
          problem,
        },
      ]
    }),
  )
}

/** docs/versioning.md promises at least one year between deprecation and removal. */
function findEarlySunsets({ operations }: Contract): Finding[] {
  return operations.flatMap(({ id, place: { source, path }, deprecation }) => {
    if (!deprecation?.sunset) return []
    const { since, sunset } = deprecation
    const earliest = earliestSunset(since)
    if (sunset >= earliest) return []
    return [
      {
        source,
        path: [...path, 'x-sunset'],
        problem:
          `${id} must not be removed before ${earliest}, ` +
          'a year after its deprecation: set a later day',
      },
    ]
  })
}
