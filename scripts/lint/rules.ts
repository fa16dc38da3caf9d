import { type Contract, emitsAtOdds, type Finding, repeatedIds } from '../generate/contract.ts'
import { unreferenced } from '../generate/references.ts'
import { listsWithoutModule } from '../generate/resources.ts'
import { dreddSafe } from './dredd.ts'
import { eventsOnChannel, eventTypesListed } from './events.ts'
import { examples } from './examples.ts'
import { lists } from './lists.ts'
import { errorSchema, statuses } from './responses.ts'

/** Our rules, by the name that a problem carries. */
export const rules: Record<string, (contract: Contract) => Finding[]> = {
  'operation-id-unique': repeatedIds,
  'operation-id-form': operationIdForm,
  'error-schema': errorSchema,
  statuses,
  examples,
  'dredd-safe': dreddSafe,
  emits: emitsAtOdds,
  'event-on-channel': eventsOnChannel,
  'event-types-listed': eventTypesListed,
  lists,
  modules: listsWithoutModule,
  'sunset-in-time': sunsetInTime,
  unreferenced: ({ sources }) => unreferenced(sources),
}

/** Files of handlers and of their tests are told from others by it. */
function operationIdForm({ operations }: Contract): Finding[] {
  return operations
    .filter(({ id }) => !/^[a-z]+[A-Z]/.test(id))
    .map(({ id, place: { source, path } }) => ({
      source,
      path: [...path, 'operationId'],
      problem: `operationId ${id} must be a verb and a noun: write it like listParticipants`,
    }))
}

/** docs/versioning.md promises a year. */
function sunsetInTime({ operations }: Contract): Finding[] {
  return operations.flatMap(({ id, place: { source, path }, deprecation }) => {
    if (!deprecation?.sunset) return []
    const { since, sunset } = deprecation
    const earliest = `${Number(since.slice(0, 4)) + 1}${since.slice(4)}`
    if (sunset >= earliest) return []
    return [
      {
        source,
        path: [...path, 'x-sunset'],
        problem: `${id} must not go before ${earliest}, a year after its deprecation: set a later day`,
      },
    ]
  })
}
