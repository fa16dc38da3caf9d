/** A new event type: what a person writes in the two contracts, and what `generate` adds. */
import { expect, test } from 'vitest'
import { copyOfRepository } from './tree.ts'

const TIMEOUT_MS = 240_000

/** The component in asyncapi.yaml from its name to the next one. */
function componentOf(asyncapi: string, kind: string, name: string): string {
  const start = asyncapi.indexOf(`    ${name}:\n`, asyncapi.indexOf(`\n  ${kind}:\n`))
  return asyncapi.slice(start, start + asyncapi.slice(start).search(/(?<=\n)(?! {5})/))
}

test('an event type is written in four places, and generate adds the lists', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using tree = await copyOfRepository()
  const asyncapi = await tree.read('asyncapi.yaml')
  for (const kind of ['messages', 'schemas']) {
    const updated = componentOf(asyncapi, kind, 'ParticipantUpdated')
    const archived = updated
      .replaceAll('ParticipantUpdated', 'ParticipantArchived')
      .replaceAll('updated', 'archived')
    await tree.replace('asyncapi.yaml', updated, updated + archived)
  }
  const emits = 'x-emits: [participant.updated'
  await tree.replace('openapi.yaml', emits, `${emits}, participant.archived`)
  const lint = () => tree.muster(['lint'])
  expect((await lint()).output).toMatch(
    /^asyncapi\.yaml:\d+:\d+ .*no alternative of the schema Event lists participant\.archived/m,
  )
  const types = 'enum: [participant.created, participant.updated'
  await tree.replace('openapi.yaml', types, `${types}, participant.lost, participant.archived`)
  expect((await lint()).output).toMatch(/^openapi\.yaml:\d+:\d+ .*lists participant\.lost, no /m)
  await tree.replace('openapi.yaml', 'participant.lost, ', '')

  const read = () => Promise.all(['openapi.yaml', 'asyncapi.yaml'].map(tree.read))
  const [openapiByHand = '', asyncapiByHand = ''] = await read()
  expect(await tree.muster(['generate', '--check'])).toMatchObject({
    status: 1,
    output: expect.stringMatching(/^openapi\.yaml is stale\nasyncapi\.yaml is stale\n/m),
  })
  expect(await read()).toEqual([openapiByHand, asyncapiByHand])
  expect((await tree.muster(['generate'])).output).toMatch(
    /^wrote openapi\.yaml\nwrote asyncapi\.yaml\nwrote generated\//,
  )
  const [openapi = '', complete = ''] = await read()
  const inList = ['        - participant.archived', '        - A participant was archived.']
  expect(addedLines(openapiByHand, openapi)).toEqual([
    // EventTypeName, WebhookEventType and DeliveredEventType
    ...[...inList, ...inList, ...inList],
    "          participant.archived: '#/components/schemas/ParticipantEvent'",
    '        - A participant was archived.',
  ])
  expect(addedLines(asyncapiByHand, complete)).toEqual([
    '      ParticipantArchived:',
    "        $ref: '#/components/messages/ParticipantArchived'",
  ])
  const fresh = { status: 0, output: 'generated/ is fresh.\n' }
  expect(await tree.muster(['generate', '--check'])).toEqual(fresh)
  expect(await lint()).toMatchObject({ status: 0 })
  expect(await tree.run('node_modules/typescript/bin/tsc', [])).toEqual({ status: 0, output: '' })
})

/** The lines of `after` that `before` does not have. Throws if a line of `before` is gone. */
function addedLines(before: string, after: string): string[] {
  const rest = before.split('\n')
  const added = after.split('\n').filter((line) => {
    const isKept = line === rest[0]
    if (isKept) rest.shift()
    return !isKept
  })
  if (rest.length > 0) throw new Error(`This line is gone: ${rest[0]}`)
  return added
}
