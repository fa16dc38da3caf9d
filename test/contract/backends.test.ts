/** The places of connections to PostgreSQL that were given up. */
import { expect, inject, test } from 'vitest'
import { Backends } from '../../records/database/backends.ts'
import { connectTo } from './postgres-client.ts'

test.skipIf(inject('database') !== 'postgres')(
  'another session with the process ID of a connection that was given up goes on, and its place is free',
  async () => {
    const connectionString = inject('postgresUrl')
    await using other = await connectTo(`${connectionString}?application_name=other`)
    const { rows } = await other.query('select pg_backend_pid() as id')
    const backends = new Backends(1, { connectionString, application_name: 'muster' })
    await backends.enter()
    // After a failover, or a restart of PostgreSQL in a container.
    backends.lose({ processId: rows[0].id, openedAtMs: performance.now() })
    await backends.enter()
    expect((await other.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  },
)
