import { findFaultyDefaults } from '../generate/faults.ts'
import { findMissingModules } from '../generate/resources.ts'
import { findEmitMismatches, findRepeatedIds, findUnusedComponents } from '../model/consistency.ts'
import type { Contract } from '../model/contract.ts'
import { earliestSunset } from '../model/deprecations.ts'
import type { Schema } from '../model/schema.ts'
import { type Finding, valueAt } from '../model/source.ts'
import { findUnsupportedParts } from '../model/supported.ts'
import { dreddSafe } from './dredd.ts'
import { eventsOnChannel, eventTypesListed } from './events.ts'
import { checkExamples } from './examples.ts'
import { lists } from './lists.ts'
import { errorSchema, statuses } from './responses.ts'
import { described, portableDefaults, sameInBothFiles, selfContained } from './schemas.ts'
import { mistypedWords } from './words.ts'

/** Our rules by name. */
export const rules: Record<string, (contract: Contract) => Finding[]> = {
  'operation-id-unique': findRepeatedIds,
  'operation-id-form': operationIdForm,
  supported: findUnsupportedParts,
  defaults: findFaultyDefaults,
  'error-schema': errorSchema,
  statuses,
  examples: checkExamples,
  'dredd-safe': dreddSafe,
  emits: findEmitMismatches,
  'event-on-channel': eventsOnChannel,
  'event-types-listed': eventTypesListed,
  lists,
  described,
  'portable-default': portableDefaults,
  'self-contained': selfContained,
  'same-in-both-files': sameInBothFiles,
  modules: findMissingModules,
  currencies,
  'sunset-in-time': sunsetInTime,
  unreferenced: findUnusedComponents,
  'mistyped-word': mistypedWords,
}

/** Handler and test files are named after the operation ID. The verb-noun form tells them apart
 *  from other files. */
function operationIdForm({ operations }: Contract): Finding[] {
  return operations
    .filter(({ id }) => !/^[a-z]+[A-Z]/.test(id))
    .map(({ id, place: { source, path } }) => ({
      source,
      path: [...path, 'operationId'],
      problem: `operationId ${id} must be a verb and a noun: write it like listParticipants`,
    }))
}

/** Without its currency, the console would show an amount in minor units. */
function currencies({ sources }: Contract): Finding[] {
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
function sunsetInTime({ operations }: Contract): Finding[] {
  return operations.flatMap(({ id, place: { source, path }, deprecation }) => {
    if (!deprecation?.sunset || deprecation.since === null) return []
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
