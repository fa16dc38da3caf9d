import pg from 'pg'

/** A server that hangs does not close its connections. */
const CLOSE_TIMEOUT_MS = 2_000

/** Uses a connection to PostgreSQL outside of the pool, and closes it. */
export async function withConnection<T>(
  config: pg.ClientConfig,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(config)
  // Without a listener, the error of a lost connection would end the process. The running query
  // throws the error as well.
  client.on('error', () => undefined)
  await client.connect()
  return use(client).finally(() => {
    const stuck = setTimeout(() => client.connection.stream.destroy(), CLOSE_TIMEOUT_MS)
    return client.end().finally(() => clearTimeout(stuck))
  })
}
