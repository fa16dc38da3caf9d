/** A connection to PostgreSQL beside those of the service. */
import pg from 'pg'

export type PostgresClient = pg.Client & AsyncDisposable

export async function connectTo(connectionString: string): Promise<PostgresClient> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}
