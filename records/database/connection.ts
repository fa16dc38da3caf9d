import pg from 'pg'

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
  return use(client).finally(() => client.end())
}
