/** A thread that runs Dredd and its servers. Dredd takes a third of the whole run's processor time,
 *  and this thread uses a second core for it. */
import { fileURLToPath } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { runDreddSuite } from '../scripts/contract/dredd/dredd-suite.ts'
import { readContract } from '../scripts/model/yaml.ts'
import { startDreddServers } from './contract-service.ts'

// Dredd's old dependencies trigger Node.js warnings.
process.removeAllListeners('warning')
const contract = await readContract(fileURLToPath(new URL('..', import.meta.url)))
await using servers = await startDreddServers()
parentPort?.postMessage(await runDreddSuite(contract, servers, workerData as string[]))
