import autocannon from 'autocannon'

export interface Load {
  url: string
  token: string
  connections: number
  seconds: number
}

/** Repeats one request. Throws when a response is not a success. */
export async function load({
  url,
  token,
  connections,
  seconds,
}: Load): Promise<{ requests: number; perSecond: number }> {
  const headers = { Authorization: `Bearer ${token}` }
  const result = await autocannon({ url, headers, connections, duration: seconds, sampleInt: 100 })
  if (result.errors + result.non2xx > 0)
    throw new Error(`${url}: ${result.errors} errors, ${result.non2xx} responses without success`)
  return { requests: result['2xx'], perSecond: result['2xx'] / result.duration }
}
