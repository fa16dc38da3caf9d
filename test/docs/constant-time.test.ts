/** The sample receivers compare signatures in constant time: service-spec §5 "Webhook
 *  signature". */
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const folder = new URL('../../docs/receivers/', import.meta.url)
/** The constant-time comparison of each language. */
const COMPARISONS: Record<string, string> = {
  'receiver.ts': 'timingSafeEqual(',
  'receiver.py': 'hmac.compare_digest(',
  'receiver.php': 'hash_equals(',
  'receiver.go': 'hmac.Equal(',
  'receiver.rb': 'OpenSSL.secure_compare(',
  'Receiver.java': 'MessageDigest.isEqual(',
}

test.each(await readdir(folder))('%s compares both signatures in constant time', async (name) => {
  const code = await readFile(new URL(name, folder), 'utf8')
  expect(code).toContain(COMPARISONS[name])
  const comparisons = code.split('\n').filter((line) => /[!=]=|\.equals\(/.test(line))
  expect(comparisons.filter((line) => /signature|digest|hmac/i.test(line))).toEqual([])
})
