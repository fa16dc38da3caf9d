/** What `muster doctor` says about standbys and about Patroni. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { newMuster } from '../cli/muster.ts'
import { until } from '../helpers.ts'
import { startPostgres } from '../postgres.ts'
import { connectTo } from './postgres-client.ts'

const onPostgres = test.skipIf(inject('database') !== 'postgres')
const SECRET_KEY = 'a secret key that only tests would ever use'

/** Its database belongs to a user without privileges. */
async function startServer(settings: Record<string, string> = {}) {
  const server = await startPostgres({ settings })
  const url = new URL(await server.createDatabase())
  const admin = await connectTo(server.url('postgres'))
  await admin.query('create role muster login')
  await admin.query(`alter database ${url.pathname.slice(1)} owner to muster`)
  return {
    ...server,
    admin,
    superuserUrl: url.href,
    userUrl: Object.assign(url, { username: 'muster' }).href,
    async [Symbol.asyncDispose]() {
      await admin.end()
      await server.stop()
    },
  }
}

async function findStandbys(databaseUrl: string): Promise<{ level: string; text: string }[]> {
  await using muster = await newMuster()
  const environment = { DATABASE_URL: databaseUrl, SECRET_KEY }
  const { findings } = await muster.json(['doctor'], { environment })
  return findings
    .filter(({ check }: { check: string }) => check === 'standbys')
    .map(({ level, text }: { level: string; text: string }) => ({ level, text }))
}

const NONE_IS_SYNCHRONOUS = {
  level: 'warning',
  text: expect.stringMatching(/^Standbys that stream: 1, but none is synchronous\. /),
}

onPostgres(
  'standbys that are not synchronous, and commits that wait for one: warnings',
  async () => {
    await using server = await startServer()
    const { admin, superuserUrl, userUrl } = server
    expect(await findStandbys(userUrl)).toEqual([])
    const standby = await server.startStandby()
    try {
      const setSynchronous = async (names: string): Promise<void> => {
        await admin.query(`alter system set synchronous_standby_names = '${names}'`)
        await admin.query('select pg_reload_conf()')
      }
      const untilState = (state: string) =>
        until(`the standby is ${state}`, async () => {
          const { rows } = await admin.query('select sync_state from pg_stat_replication')
          return rows[0]?.sync_state === state
        })
      await untilState('async')
      for (const url of [superuserUrl, userUrl])
        expect(await findStandbys(url)).toEqual([NONE_IS_SYNCHRONOUS])

      await setSynchronous('*')
      await untilState('sync')
      for (const url of [superuserUrl, userUrl])
        expect(await findStandbys(url)).toEqual([{ level: 'ok', text: 'Standbys that stream: 1.' }])

      await setSynchronous('nosuch')
      await untilState('async')
      await using client = await connectTo(userUrl)
      const change = client.query('create table notes (id int)')
      const waits = { level: 'warning', text: 'Commits that wait for a standby: 1.' }
      await until('doctor warns', async () => {
        const found = await findStandbys(userUrl)
        return found.some(({ text }) => text === waits.text)
      })
      expect(await findStandbys(userUrl)).toEqual([waits])
      expect(await findStandbys(superuserUrl)).toEqual([NONE_IS_SYNCHRONOUS, waits])
      await setSynchronous('')
      await change
    } finally {
      await standby.stop()
    }
  },
)

onPostgres('a backup that runs is no standby', async () => {
  await using server = await startServer()
  const config = { connectionString: server.superuserUrl, application_name: 'pg_basebackup' }
  // The types of pg lack the option.
  const backup = new pg.Client({ ...config, replication: 'true' } as pg.ClientConfig)
  await backup.connect()
  try {
    const { rows } = await server.admin.query('select application_name from pg_stat_replication')
    expect(rows).toEqual([{ application_name: 'pg_basebackup' }])
    expect(await findStandbys(server.userUrl)).toEqual([])
  } finally {
    await backup.end()
  }
})

onPostgres('a version of Patroni that may lose changes: a warning', async () => {
  // Patroni's port is fixed, so the test takes an IP address of its own.
  const host = `127.${randomInt(1, 255)}.${randomInt(255)}.${randomInt(1, 255)}`
  await using server = await startServer({ listen_addresses: `127.0.0.1,${host}` })
  const url = Object.assign(new URL(server.userUrl), { hostname: host }).href
  let version = '3.0.2'
  await using patroni = createServer((_, response) => {
    response.end(JSON.stringify({ state: 'running', patroni: { version, scope: 'muster' } }))
  }).listen(8008, host)
  await once(patroni, 'listening')
  expect(await findStandbys(url)).toEqual([])
  await server.admin.query("set application_name = 'Patroni heartbeat'")
  expect(await findStandbys(url)).toEqual([
    { level: 'warning', text: 'Patroni 3.0.2 may lose changes when a former primary returns.' },
  ])
  for (version of ['4.1.5', '4.1.10']) expect(await findStandbys(url)).toEqual([])
  // Nothing responds on the port of this IP address.
  expect(await findStandbys(server.userUrl)).toEqual([])
})
